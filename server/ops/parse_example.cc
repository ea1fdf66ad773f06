#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/example.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

constexpr size_t kMaxFeatures = 4096;
// How far ahead a record is called nearer once more: what the block runner fetched for a whole strip may have left the first cache.
constexpr int kFetchedRows = 10;
constexpr size_t kFetchedBytes = 512;
constexpr int64_t kMaxValues = 1 << 26;  // of one feature: a default is kept in memory

// One parsed feature of the plan.
struct Parsed {
  bool gathered = false;     // ExampleFeature::gathered: a scattered row
  bool variable = false;     // of any length; missing is empty
  bool fixed_bytes = false;  // uint8 (length,) instead of a string
  size_t length = 0;         // of fixed bytes
  bool has_default = false;
  std::vector<uint8_t> default_value;  // as it lies in memory, with Arena::kPadding behind it
  size_t row_bytes = 0;                // of numbers and fixed bytes
};

class ParseExampleOp final : public WorkOp {
 public:
  ParseExampleOp(size_t input, std::vector<ExampleFeature> wanted, std::vector<Parsed> features,
                 Signature output)
      : input_(input),
        features_(std::move(features)),
        output_(std::move(output)),
        parser_(std::move(wanted)) {}

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    const Column& records = in[input_];
    const size_t num_features = features_.size();
    auto* values = arena.AllocateArray<ExampleValue>(num_features);
    auto** numbers = arena.AllocateArray<void*>(num_features);
    auto** places = arena.AllocateArray<RowBytes*>(num_features);
    auto** dims = arena.AllocateArray<int64_t*>(num_features);
    for (size_t i = 0; i < num_features; ++i) {
      numbers[i] = nullptr;
      places[i] = nullptr;
      dims[i] = nullptr;
      const Parsed& feature = features_[i];
      if (feature.variable) out[i].dims = dims[i] = arena.AllocateArray<int64_t>(rows);
      if (IsElsewhere(i)) {
        // Bytes stay where they are in the record, unless the slot itself is filled.
        if (out[i].data == nullptr) out[i].rows = places[i] = arena.AllocateArray<RowBytes>(rows);
      } else if (out[i].data == nullptr) {
        out[i].data = arena.Allocate(feature.row_bytes * rows);
      }
      out[i].row_bytes = feature.row_bytes;
    }
    for (int row = 0; row < rows; ++row) {
      if (row + kFetchedRows < rows) {
        const uint8_t* next = records.row(row + kFetchedRows);
        const size_t bytes = std::min(records.row_size(row + kFetchedRows), kFetchedBytes);
        for (size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(next + offset);
      }
      for (size_t i = 0; i < num_features; ++i) {
        if (!IsElsewhere(i)) numbers[i] = out[i].data + row * features_[i].row_bytes;
      }
      absl::Status status =
          parser_.Parse(records.row(row), records.row_size(row), values, numbers, &arena);
      for (size_t i = 0; status.ok() && i < num_features; ++i) {
        if (dims[i] != nullptr) dims[i][row] = values[i].present ? values[i].count : 0;
        status = Finish(i, values[i], places[i] ? places[i] + row : nullptr,
                        out[i].data + row * features_[i].row_bytes);
      }
      if (!status.ok()) return {std::move(status), row};
    }
    return {};
  }

 private:
  // Whether the parser finds or makes it somewhere else than in its column.
  bool IsElsewhere(size_t i) const {
    const Parsed& feature = features_[i];
    return feature.fixed_bytes || feature.gathered || output_[i].type.dtype == DType::kString;
  }

  // Puts one value of one row in its place: a default if it is missing, a view or a copy of bytes.
  absl::Status Finish(size_t i, const ExampleValue& value, RowBytes* place, uint8_t* target) const {
    const Parsed& feature = features_[i];
    if (!value.present && !feature.has_default && !feature.variable) {
      return absl::DataLossError(absl::StrCat("feature \"", output_[i].name,
                                              "\": missing, and the spec gives no default"));
    }
    if (!IsElsewhere(i)) {
      if (!value.present) std::memcpy(target, feature.default_value.data(), feature.row_bytes);
      return absl::OkStatus();
    }
    RowBytes bytes{value.bytes, value.size};
    if (!value.present) {
      bytes = feature.variable ? RowBytes{kNoValues, 0}
                               : RowBytes{feature.default_value.data(),
                                          feature.default_value.size() - Arena::kPadding};
    }
    if (feature.fixed_bytes && bytes.size != feature.length) {
      return absl::DataLossError(absl::StrCat("feature \"", output_[i].name, "\": expected ",
                                              feature.length, " bytes, found ", bytes.size));
    }
    if (place != nullptr) {
      *place = bytes;
    } else {
      std::memcpy(target, bytes.data, bytes.size);
    }
    return absl::OkStatus();
  }

  // Readable, as behind every row.
  alignas(64) static constexpr uint8_t kNoValues[Arena::kPadding] = {};

  const size_t input_;  // the column that holds the serialized Examples
  const std::vector<Parsed> features_;
  const Signature output_;
  const ExampleParser parser_;
};

// A list of any length has neither shape nor default.
absl::Status PlanVariable(const std::string& key, bool has_more, ExampleFeature* wanted,
                          Parsed* parsed, TensorType* type) {
  if (has_more) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature \"", key,
        "\": variable_length: expected no shape, length or default_value beside it, found one"));
  }
  wanted->count = ExampleFeature::kAnyCount;
  wanted->gathered = parsed->gathered = parsed->variable = true;
  type->shape = {kUnknownSize};
  return absl::OkStatus();
}

// Default values as they lie in memory: one for all, or one for each.
template <typename T, typename Values>
absl::Status SetDefault(const std::string& key, const Values& values, int64_t count,
                        Parsed* parsed) {
  parsed->row_bytes = count * sizeof(T);
  if (values.empty()) return absl::OkStatus();
  if (values.size() != 1 && values.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("feature \"", key,
                                                   "\": default_value: expected 1 or ", count,
                                                   " values, found ", values.size()));
  }
  parsed->has_default = true;
  parsed->default_value.resize(parsed->row_bytes + Arena::kPadding);
  for (int64_t i = 0; i < count; ++i) {
    const T value = values.size() == 1 ? values.Get(0) : values.Get(i);
    std::memcpy(parsed->default_value.data() + i * sizeof(T), &value, sizeof(T));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CheckShape(const std::string& key,
                                   const google::protobuf::RepeatedField<int64_t>& sizes,
                                   Shape* shape) {
  shape->assign(sizes.begin(), sizes.end());
  const std::optional<int64_t> count = NumElements(*shape);
  if (!count || *count < 1 || *count > kMaxValues) {
    return absl::InvalidArgumentError(
        absl::StrCat("feature \"", key, "\": shape: expected sizes of at least 1 and at most ",
                     kMaxValues, " values, found ", ShapeToString(*shape)));
  }
  return *count;
}

// Several strings: a row of them is their sizes and then their bytes (server/base/column.h).
absl::Status PlanStrings(const v1::ParsedBytes& spec, int64_t count, ExampleFeature* wanted,
                         Parsed* parsed) {
  wanted->count = count;
  wanted->gathered = parsed->gathered = true;
  if (!spec.has_default_value()) return absl::OkStatus();
  const std::string& value = spec.default_value();
  if (value.size() > static_cast<size_t>(kMaxValues / count)) {
    return absl::InvalidArgumentError(absl::StrCat("default_value: longer than limit: ", count,
                                                   " times ", value.size(), " > ", kMaxValues,
                                                   " bytes"));
  }
  parsed->has_default = true;
  const auto size = static_cast<uint32_t>(value.size());
  const auto* size_bytes = reinterpret_cast<const uint8_t*>(&size);
  std::vector<uint8_t>& row = parsed->default_value;
  for (int64_t i = 0; i < count; ++i) row.insert(row.end(), size_bytes, size_bytes + sizeof(size));
  for (int64_t i = 0; i < count; ++i) row.insert(row.end(), value.begin(), value.end());
  row.resize(row.size() + Arena::kPadding);
  return absl::OkStatus();
}

absl::Status PlanFeature(const v1::ParsedFeature& spec, ExampleFeature* wanted, Parsed* parsed,
                         TensorType* type) {
  wanted->key = spec.key();
  switch (spec.kind_case()) {
    case v1::ParsedFeature::kBytes: {
      const v1::ParsedBytes& bytes = spec.bytes();
      wanted->kind = DType::kString;
      wanted->count = 1;
      type->dtype = DType::kString;
      if (bytes.variable_length()) {
        return PlanVariable(
            spec.key(), bytes.has_length() || bytes.has_default_value() || bytes.shape_size() > 0,
            wanted, parsed, type);
      }
      if (bytes.shape_size() > 0) {
        if (bytes.has_length()) {
          return absl::InvalidArgumentError(absl::StrCat(
              "feature \"", spec.key(), "\": expected one of shape and length, found both"));
        }
        absl::StatusOr<int64_t> count = CheckShape(spec.key(), bytes.shape(), &type->shape);
        if (!count.ok()) return count.status();
        return PlanStrings(bytes, *count, wanted, parsed);
      }
      if (spec.bytes().has_length()) {
        const int64_t length = spec.bytes().length();
        if (length < 1 || length > int64_t{1} << 28) {
          return absl::InvalidArgumentError(absl::StrCat(
              "feature \"", spec.key(), "\": length: expected at least 1, found ", length));
        }
        *type = {DType::kUint8, {length}};
        parsed->fixed_bytes = true;
        parsed->length = parsed->row_bytes = length;
      }
      if (spec.bytes().has_default_value()) {
        const std::string& value = spec.bytes().default_value();
        if (parsed->fixed_bytes && value.size() != parsed->length) {
          return absl::InvalidArgumentError(
              absl::StrCat("feature \"", spec.key(), "\": default_value: expected ", parsed->length,
                           " bytes, found ", value.size()));
        }
        parsed->has_default = true;
        parsed->default_value.assign(value.begin(), value.end());
        parsed->default_value.resize(value.size() + Arena::kPadding);
      }
      return absl::OkStatus();
    }
    case v1::ParsedFeature::kInt64: {
      wanted->kind = type->dtype = DType::kInt64;
      if (spec.int64().variable_length()) {
        return PlanVariable(spec.key(),
                            spec.int64().shape_size() + spec.int64().default_value_size() > 0,
                            wanted, parsed, type);
      }
      absl::StatusOr<int64_t> count = CheckShape(spec.key(), spec.int64().shape(), &type->shape);
      if (!count.ok()) return count.status();
      wanted->count = *count;
      return SetDefault<int64_t>(spec.key(), spec.int64().default_value(), *count, parsed);
    }
    case v1::ParsedFeature::kFloat: {
      wanted->kind = type->dtype = DType::kFloat32;
      if (spec.float_().variable_length()) {
        return PlanVariable(spec.key(),
                            spec.float_().shape_size() + spec.float_().default_value_size() > 0,
                            wanted, parsed, type);
      }
      absl::StatusOr<int64_t> count = CheckShape(spec.key(), spec.float_().shape(), &type->shape);
      if (!count.ok()) return count.status();
      wanted->count = *count;
      return SetDefault<float>(spec.key(), spec.float_().default_value(), *count, parsed);
    }
    case v1::ParsedFeature::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "feature \"", spec.key(), "\": expected one of bytes, int64 and float, found none"));
}

const OpRegistration<v1::ParseExample> kParseExample(
    "parse_example", [](const v1::ParseExample& options, PlanBuilder& plan) -> absl::Status {
      const Signature& input = plan.signature();
      if (input.size() != 1 || input[0].type != TensorType{DType::kString, {}}) {
        return absl::InvalidArgumentError(absl::StrCat(
            "expected one string scalar, found ", input.size(), " feature(s), the first \"",
            input[0].name, "\" ", TypeToString(input[0].type)));
      }
      if (options.feature().empty() || static_cast<size_t>(options.feature_size()) > kMaxFeatures) {
        return absl::InvalidArgumentError(absl::StrCat(
            "expected 1 to ", kMaxFeatures, " features, found ", options.feature_size()));
      }
      std::vector<ExampleFeature> wanted;
      std::vector<Parsed> parsed;
      Signature output;
      std::set<std::string> keys;
      for (const v1::ParsedFeature& feature : options.feature()) {
        if (feature.key().empty()) return absl::InvalidArgumentError("a feature has no key");
        if (!keys.insert(feature.key()).second)
          return absl::InvalidArgumentError(
              absl::StrCat("feature \"", feature.key(), "\" is listed twice"));
        Feature result{feature.key(), {}};
        absl::Status status =
            PlanFeature(feature, &wanted.emplace_back(), &parsed.emplace_back(), &result.type);
        if (!status.ok()) return status;
        output.push_back(std::move(result));
      }
      plan.AddWork(std::make_unique<ParseExampleOp>(0, std::move(wanted), std::move(parsed),
                                                    std::move(output)));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
