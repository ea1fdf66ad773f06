#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/json_example.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"
#include "server/expr/scalar_type.h"

namespace penstock::expr {
namespace {

class DecodeJsonExample final : public RowKernel {
 public:
  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& json = arguments[0];
    const absl::StatusOr<std::string> example =
        SerializeJsonExample({reinterpret_cast<const char*>(json.data), json.bytes});
    if (!example.ok()) return example.status();
    uint8_t* const to = out.Reserve(example->size());
    if (!example->empty()) std::memcpy(to, example->data(), example->size());
    out.Commit();
    return absl::OkStatus();
  }
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = ReadStrings(arguments[0], "json_examples"); !status.ok()) return status;
  BoundRowFunction bound;
  bound.type = ScalarType(DType::kString);
  bound.kernel = std::make_shared<DecodeJsonExample>();
  bound.tensor_arguments = {0};
  return ForEachString(arguments[0].type.shape, std::move(bound));
}

const RowFunctionRegistration kDecodeJsonExample({
    .name = "decode_json_example",
    .signature = "decode_json_example(json_examples)",
    .doc = "The serialized tf.train.Example that a string holds as JSON, as "
           "tf.io.decode_json_example does: what parse_example takes.\n"
           "\n"
           "json_examples: a string, or a tensor of strings, as protobuf writes an Example: "
           "{\"features\": "
           "{\"feature\": {\"id\": {\"int64List\": {\"value\": [\"7\"]}}}}}; bytes in base64.\n"
           "\n"
           "Strings, of the shape of json_examples. What is no JSON of an Example is an error of "
           "its record, and so is a list with a null in it (TensorFlow: 0 or\n"
           "left out, by its release). The protobuf library reads it, some microseconds a value:\n"
           "records that are read more than once are better written as TFRecords first (penstock "
           "write --jsonl).",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
