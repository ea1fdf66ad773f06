#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/example.h"
#include "server/codec/parsed_features.h"
#include "server/codec/parsed_rows.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

using Kind = ParsedFeaturePlan::Kind;

// How far ahead a record is called nearer once more: what the block runner fetched for a whole strip may have left the first cache.
constexpr int kFetchedRows = 10;
constexpr size_t kFetchedBytes = 512;

class ParseExampleOp final : public WorkOp {
 public:
  explicit ParseExampleOp(ParsedFeatures parsed)
      : features_(std::move(parsed.features)),
        num_lists_(parsed.lists.size()),
        parser_(std::move(parsed.lists)) {
    for (const ParsedFeaturePlan& feature : features_)
      output_.push_back({feature.name, feature.type});
  }

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    const Column& records = in[0];
    const size_t num_features = features_.size();
    auto* values = arena.AllocateArray<ExampleValue>(num_lists_);
    auto** numbers = arena.AllocateArray<void*>(num_lists_);
    auto** places = arena.AllocateArray<RowBytes*>(num_features);
    auto** dims = arena.AllocateArray<int64_t*>(num_features);
    std::fill_n(numbers, num_lists_, nullptr);
    for (size_t i = 0; i < num_features; ++i) {
      places[i] = nullptr;
      dims[i] = nullptr;
      const ParsedFeaturePlan& feature = features_[i];
      if (feature.kind != Kind::kFixed && !feature.type.packed())
        out[i].dims = dims[i] = arena.AllocateArray<int64_t>(rows * feature.type.shape.size());
      if (IsElsewhere(feature)) {
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
        const ParsedFeaturePlan& feature = features_[i];
        if (!IsElsewhere(feature)) numbers[feature.list] = out[i].data + row * feature.row_bytes;
      }
      absl::Status status =
          parser_.Parse(records.row(row), records.row_size(row), values, numbers, &arena);
      for (size_t i = 0; status.ok() && i < num_features; ++i) {
        const ParsedFeaturePlan& feature = features_[i];
        if (feature.kind == Kind::kFixed) {
          status = Finish(feature, values[feature.list], places[i] ? places[i] + row : nullptr,
                          out[i].data + row * feature.row_bytes);
        } else {
          status = MakeParsedRow(
              feature, absl::MakeConstSpan(values, num_lists_), arena, &places[i][row],
              dims[i] != nullptr ? dims[i] + row * feature.type.shape.size() : nullptr);
        }
      }
      if (!status.ok()) return {std::move(status), row};
    }
    return {};
  }

 private:
  // Whether the parser finds or makes it somewhere else than in its column.
  static bool IsElsewhere(const ParsedFeaturePlan& feature) {
    return feature.fixed_bytes || feature.kind != Kind::kFixed ||
           feature.type.dtype == DType::kString;
  }

  // Puts one value of one row in its place: a default if it is missing, a view or a copy of bytes.
  static absl::Status Finish(const ParsedFeaturePlan& feature, const ExampleValue& value,
                             RowBytes* place, uint8_t* target) {
    if (!value.present && !feature.has_default) {
      return absl::DataLossError(
          absl::StrCat("feature \"", feature.name, "\": missing, and the spec gives no default"));
    }
    if (!IsElsewhere(feature)) {
      if (!value.present) std::memcpy(target, feature.default_value.data(), feature.row_bytes);
      return absl::OkStatus();
    }
    RowBytes bytes{value.bytes, value.size};
    if (!value.present) {
      bytes = {feature.default_value.data(), feature.default_value.size() - Arena::kPadding};
    }
    if (feature.fixed_bytes && bytes.size != feature.length) {
      return absl::DataLossError(absl::StrCat("feature \"", feature.name, "\": expected ",
                                              feature.length, " bytes, found ", bytes.size));
    }
    if (place != nullptr) {
      *place = bytes;
    } else {
      std::memcpy(target, bytes.data, bytes.size);
    }
    return absl::OkStatus();
  }

  const std::vector<ParsedFeaturePlan> features_;
  const size_t num_lists_;
  const ExampleParser parser_;
  Signature output_;
};

const OpRegistration<v1::ParseExample> kParseExample(
    "parse_example", [](const v1::ParseExample& options, PlanBuilder& plan) -> absl::Status {
      const Signature& input = plan.signature();
      if (input.size() != 1 || input[0].type != TensorType{DType::kString, {}}) {
        return absl::InvalidArgumentError(absl::StrCat(
            "expected one string scalar, found ", input.size(), " feature(s), the first \"",
            input[0].name, "\" ", TypeToString(input[0].type)));
      }
      absl::StatusOr<ParsedFeatures> parsed = PlanParsedFeatures(options.feature(), plan.batched());
      if (!parsed.ok()) return parsed.status();
      if (parsed->features.empty())
        return absl::InvalidArgumentError("expected at least 1 feature, found none");
      bool pads = false;
      std::vector<std::string> paddings;
      for (const ParsedFeaturePlan& feature : parsed->features) {
        if (feature.kind == Kind::kSequence && !feature.allow_missing) {
          return absl::InvalidArgumentError(absl::StrCat(
              "feature \"", feature.name, "\": sequence: expected allow_missing, found none"));
        }
        pads = pads || feature.kind == Kind::kSequence;
        paddings.push_back(feature.padding);
      }
      plan.AddWork(std::make_unique<ParseExampleOp>(*std::move(parsed)));
      if (plan.batched() && pads) plan.PadBatch(std::move(paddings));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
