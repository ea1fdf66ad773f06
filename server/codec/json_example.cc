#include "server/codec/json_example.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"

namespace penstock {
namespace {

// TensorFlow's messages, as server/codec/example.h shows them. Names matter: they are those of the
// JSON.
constexpr char kMessages[] = R"(
name: "example.proto" package: "penstock_json" syntax: "proto3"
message_type { name: "BytesList"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "FloatList"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_FLOAT options { packed: true } } }
message_type { name: "Int64List"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 options { packed: true } } }
message_type { name: "Feature" oneof_decl { name: "kind" }
  field { name: "bytes_list" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".penstock_json.BytesList" oneof_index: 0 }
  field { name: "float_list" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".penstock_json.FloatList" oneof_index: 0 }
  field { name: "int64_list" number: 3 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".penstock_json.Int64List" oneof_index: 0 } }
message_type { name: "Features"
  field { name: "feature" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".penstock_json.Features.FeatureEntry" }
  nested_type { name: "FeatureEntry" options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".penstock_json.Feature" } } }
message_type { name: "Example"
  field { name: "features" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".penstock_json.Features" } }
)";

// Never destroyed: other threads may still be at work when the process ends.
// An Example has seven. The library counts messages only, and takes 300 bytes for each list that is
// open.
constexpr size_t kDepthMax = 100;

google::protobuf::util::TypeResolver& Resolver() {
  static google::protobuf::util::TypeResolver* const resolver = [] {
    google::protobuf::FileDescriptorProto file;
    if (!google::protobuf::TextFormat::ParseFromString(kMessages, &file)) std::abort();
    auto* pool = new google::protobuf::DescriptorPool();
    if (pool->BuildFile(file) == nullptr) std::abort();
    return google::protobuf::util::NewTypeResolverForDescriptorPool("penstock", pool);
  }();
  return *resolver;
}

// What the library does not look at.
struct Brackets {
  bool too_deep = false;
  bool null_in_list = false;  // of a text that the library has read
};
Brackets LookAtBrackets(std::string_view json) {
  Brackets found;
  std::string open;  // the brackets around what is looked at
  StopLook look;
  for (size_t at = 0, last = 0; at < json.size() && !found.too_deep; ++at) {
    look.Did(at - std::exchange(last, at));
    const char byte = json[at];
    if (byte == '"' || byte == '\'') {
      for (++at; at < json.size() && json[at] != byte; ++at) at += json[at] == '\\';
    } else if (byte == '[' || byte == '{') {
      open.push_back(byte);
      found.too_deep = open.size() > kDepthMax;
    } else if ((byte == ']' || byte == '}') && !open.empty()) {
      open.pop_back();
    } else if (byte == 'n' && !open.empty() && open.back() == '[' && json.substr(at, 4) == "null") {
      found.null_in_list = true;
    }
  }
  return found;
}

}  // namespace

absl::StatusOr<std::string> SerializeJsonExample(std::string_view json) {
  const Brackets brackets = LookAtBrackets(json);
  if (brackets.too_deep) {
    return absl::DataLossError(absl::StrCat("not a tf.train.Example in JSON: more than ", kDepthMax,
                                            " brackets are open"));
  }
  std::string example;
  const auto status = google::protobuf::util::JsonToBinaryString(
      &Resolver(), "penstock/penstock_json.Example",
      google::protobuf::StringPiece(json.data(), json.size()), &example);
  // The library leaves it out, so that all behind it would move; that of later TensorFlows puts a 0
  // there.
  if (status.ok() && brackets.null_in_list)
    return absl::DataLossError("not a tf.train.Example in JSON: a list has a null in it");
  if (status.ok()) return example;
  return absl::DataLossError(
      absl::StrCat("not a tf.train.Example in JSON: ",
                   std::string(status.message().data(), status.message().size())));
}

}  // namespace penstock
