// Looks for bytes that make the decoder of JSON documents read or write where it must not, or
// disagree with itself: a line that is whole JSON must be one for the source's check and for the
// decoder alike, and whatever is replaced must leave UTF-8. The first byte says which.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "base/arena.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "google/protobuf/text_format.h"
#include "server/codec/json_decoder.h"

namespace {

constexpr char kFeatures[] = R"(
  feature { name: "a" dtype: "int64" default_value { ints: 0 } }
  feature { name: "f" path: "a" dtype: "float32" from_text: true default_value { floats: 0 } }
  feature { name: "s" path: "b.s" dtype: "string" default_value { strings: "" } }
  feature { name: "l" path: "l" dtype: "string" shape: -1 allow_missing: true default_value { strings: "-" } }
  feature { name: "r" path: "m[].r" dtype: "int32" shape: [-1, -1] allow_missing: true }
  feature { name: "v" path: "v" dtype: "float64" shape: [2, 2] default_value { floats: 1 } }
  feature { name: "p" path: "l[1]" dtype: "bool" from_text: true default_value { bools: true } }
  feature { name: "t" path: "t" dtype: "string" default_value { strings: "" } })";

penstock::JsonDecoder MakeDecoder(penstock::JsonErrors errors) {
  penstock::v1::DecodeJson options;
  if (!google::protobuf::TextFormat::ParseFromString(kFeatures, &options)) std::abort();
  auto fields = penstock::PlanJsonFields(options.feature(), /*batched=*/false);
  if (!fields.ok()) std::abort();
  return penstock::JsonDecoder(*std::move(fields), errors);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const penstock::JsonDecoder strict = MakeDecoder(penstock::JsonErrors::kStrict);
  static const penstock::JsonDecoder replaces = MakeDecoder(penstock::JsonErrors::kReplace);
  const bool any_bytes = data[0] % 2 == 1;
  const penstock::JsonDecoder& decoder = any_bytes ? replaces : strict;
  const absl::string_view document(reinterpret_cast<const char*>(data + 1), size - 1);

  penstock::JsonTokens tokens;
  const penstock::JsonFault fault = penstock::CheckJsonText(document, any_bytes, tokens);
  // What is replaced grows, and offsets are those of the text with it.
  if (fault && !any_bytes && fault.offset > document.size()) std::abort();

  penstock::Arena arena;
  penstock::JsonScratch scratch;
  const size_t count = decoder.fields().size();
  std::vector<uint64_t> numbers(count * 4);
  std::vector<penstock::RowBytes> rows(count);
  std::vector<int64_t> dims(count * 2);
  std::vector<penstock::JsonDecoder::Target> targets(count);
  for (size_t i = 0; i < count; ++i) {
    const penstock::JsonField& field = decoder.fields()[i];
    if (field.is_dense()) {
      targets[i].to = reinterpret_cast<uint8_t*>(numbers.data() + i * 4);
    } else {
      targets[i].row = &rows[i];
      if (field.list_axes > 0 && !field.type.packed()) targets[i].dims = dims.data() + i * 2;
    }
  }
  const absl::Status status = decoder.Decode(document, targets, arena, scratch);
  const bool is_json = status.ok() || !absl::StartsWith(status.message(), "not JSON");
  if (is_json == static_cast<bool>(fault)) std::abort();
  if (!status.ok()) return 0;
  const penstock::RowBytes& text = rows[2];
  const absl::string_view written(reinterpret_cast<const char*>(text.data), text.size);
  if (penstock::ReplaceNoUtf8(written) != written) std::abort();
  return 0;
}
