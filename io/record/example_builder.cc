#include "io/record/example_builder.h"

#include <bit>

namespace penstock {
namespace {

// Field numbers: Example.features, Features.feature, its entry's key and value, and Feature.kind.
constexpr int kFeatures = 1;
constexpr int kFeature = 1;
constexpr int kKey = 1;
constexpr int kValue = 2;
constexpr int kBytesList = 1;
constexpr int kFloatList = 2;
constexpr int kInt64List = 3;
constexpr int kListValue = 1;

void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

size_t VarintSize(uint64_t value) {
  return value == 0 ? 1 : (static_cast<size_t>(std::bit_width(value)) + 6) / 7;
}

// The head of a length-delimited field. All field numbers here are below 16: the tag is one byte.
void AppendHead(std::string* out, int field, size_t length) {
  out->push_back(static_cast<char>(field << 3 | 2));
  AppendVarint(out, length);
}

size_t FieldSize(size_t length) { return 1 + VarintSize(length) + length; }

}  // namespace

void ExampleBuilder::AddBytesList(std::string_view key, absl::Span<const std::string_view> values) {
  list_.clear();
  for (std::string_view value : values) {
    AppendHead(&list_, kListValue, value.size());
    list_.append(value);
  }
  AddEntry(key, kBytesList);
}

void ExampleBuilder::AddFloat(std::string_view key, absl::Span<const float> values) {
  list_.clear();
  if (!values.empty()) AppendHead(&list_, kListValue, 4 * values.size());
  for (float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (int i = 0; i < 4; ++i) list_.push_back(static_cast<char>(bits >> (8 * i) & 0xff));
  }
  AddEntry(key, kFloatList);
}

void ExampleBuilder::AddInt64(std::string_view key, absl::Span<const int64_t> values) {
  list_.clear();
  size_t packed = 0;
  for (int64_t value : values) packed += VarintSize(static_cast<uint64_t>(value));
  if (!values.empty()) AppendHead(&list_, kListValue, packed);
  for (int64_t value : values) AppendVarint(&list_, static_cast<uint64_t>(value));
  AddEntry(key, kInt64List);
}

void ExampleBuilder::AddEntry(std::string_view key, int kind) {
  const size_t feature = FieldSize(list_.size());
  AppendHead(&features_, kFeature, FieldSize(key.size()) + FieldSize(feature));
  AppendHead(&features_, kKey, key.size());
  features_.append(key);
  AppendHead(&features_, kValue, feature);
  AppendHead(&features_, kind, list_.size());
  features_.append(list_);
}

std::string_view ExampleBuilder::Serialize() {
  message_.clear();
  AppendHead(&message_, kFeatures, features_.size());
  message_.append(features_);
  return message_;
}

}  // namespace penstock
