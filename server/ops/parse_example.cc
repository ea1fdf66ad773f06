#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/example.h"
#include "server/codec/example_keys.h"
#include "server/codec/parsed_features.h"
#include "server/codec/parsed_rows.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

using Kind = ParsedFeaturePlan::Kind;

class ParseExampleOp final : public WorkOp {
 public:
  explicit ParseExampleOp(ParsedFeatures parsed)
      : features_(std::move(parsed.features)),
        num_lists_(parsed.lists.size()),
        is_plain_(IsPlain(features_, parsed.lists)),
        parser_(std::move(parsed.lists)) {
    for (const ParsedFeaturePlan& feature : features_)
      output_.push_back({feature.name, feature.type});
  }

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    const Column& records = in[0];
    const size_t num_features = features_.size();
    Outputs outputs(num_lists_, num_features, arena);
    for (size_t i = 0; i < num_features; ++i) {
      const ParsedFeaturePlan& feature = features_[i];
      if (feature.kind != Kind::kFixed && !feature.type.packed())
        out[i].dims = outputs.dims[i] =
            arena.AllocateArray<int64_t>(rows * feature.type.shape.size());
      if (IsElsewhere(feature)) {
        // Bytes stay where they are in the record, unless the slot itself is filled.
        if (out[i].data == nullptr)
          out[i].rows = outputs.places[i] = arena.AllocateArray<RowBytes>(rows);
      } else if (out[i].data == nullptr) {
        out[i].data = arena.Allocate(feature.row_bytes * rows);
      }
      out[i].row_bytes = feature.row_bytes;
      outputs.known[feature.list] = {outputs.places[i], out[i].data, feature.row_bytes,
                                     feature.fixed_bytes ? feature.length : ExampleRows::kAnySize};
    }
    for (int row = 0; row < rows; ++row) {
      if (is_plain_) {
        row = parser_.ParseKnown(records, row, rows, outputs.known);
        if (row == rows) break;
      } else {
        FetchAhead(records, row, rows);
      }
      absl::Status status = ParseRow(records, row, outputs, out, arena);
      if (!status.ok()) return {std::move(status), row};
    }
    return {};
  }

 private:
  // Where the values of a block go.
  struct Outputs {
    Outputs(size_t num_lists, size_t num_features, Arena& arena)
        : values(arena.AllocateArray<ExampleValue>(num_lists)),
          numbers(arena.AllocateArray<void*>(num_lists)),
          known(arena.AllocateArray<ExampleRows>(num_lists)),
          places(arena.AllocateArray<RowBytes*>(num_features)),
          dims(arena.AllocateArray<int64_t*>(num_features)) {
      std::fill_n(numbers, num_lists, nullptr);
      std::fill_n(places, num_features, nullptr);
      std::fill_n(dims, num_features, nullptr);
    }

    ExampleValue* values;  // of one row, by list
    void** numbers;        // the same
    ExampleRows* known;    // by list; of use where is_plain_
    RowBytes** places;     // by feature; null where the values lie in the column
    int64_t** dims;
  };

  // Whether every feature is one list of fixed size, so that records of known form need no further
  // look.
  static bool IsPlain(const std::vector<ParsedFeaturePlan>& features,
                      const std::vector<ExampleFeature>& lists) {
    const auto is_plain = [&](const ParsedFeaturePlan& feature) {
      return feature.kind == Kind::kFixed && !lists[feature.list].gathered;
    };
    return features.size() == lists.size() &&
           std::all_of(features.begin(), features.end(), is_plain);
  }

  absl::Status ParseRow(const Column& records, int row, const Outputs& outputs,
                        absl::Span<Column> out, Arena& arena) const {
    for (size_t i = 0; i < features_.size(); ++i) {
      const ParsedFeaturePlan& feature = features_[i];
      if (!IsElsewhere(feature))
        outputs.numbers[feature.list] = out[i].data + row * feature.row_bytes;
    }
    absl::Status status = parser_.Parse(records.row(row), records.row_size(row), outputs.values,
                                        outputs.numbers, &arena);
    for (size_t i = 0; status.ok() && i < features_.size(); ++i) {
      const ParsedFeaturePlan& feature = features_[i];
      RowBytes* const place = outputs.places[i] == nullptr ? nullptr : outputs.places[i] + row;
      if (feature.kind == Kind::kFixed) {
        const ExampleValue& value = outputs.values[feature.list];
        status = value.present || feature.has_default
                     ? Finish(feature, value, place, out[i].data + row * feature.row_bytes)
                     : Missing(feature, records.row(row), records.row_size(row));
      } else {
        int64_t* const dims = outputs.dims[i];
        status =
            MakeParsedRow(feature, absl::MakeConstSpan(outputs.values, num_lists_), arena, place,
                          dims != nullptr ? dims + row * feature.type.shape.size() : nullptr);
      }
    }
    return status;
  }

  // Whether the parser finds or makes it somewhere else than in its column.
  static bool IsElsewhere(const ParsedFeaturePlan& feature) {
    return feature.fixed_bytes || feature.kind != Kind::kFixed ||
           feature.type.dtype == DType::kString;
  }

  static absl::Status Missing(const ParsedFeaturePlan& feature, const uint8_t* record,
                              size_t size) {
    return absl::DataLossError(absl::StrCat(
        "feature \"", feature.name,
        "\": missing, and the spec gives no default; there: ", ListExampleKeys(record, size)));
  }

  // Puts one value of one row in its place: a default if it is missing, a view or a copy of bytes.
  static absl::Status Finish(const ParsedFeaturePlan& feature, const ExampleValue& value,
                             RowBytes* place, uint8_t* target) {
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
  const bool is_plain_;
  const ExampleParser parser_;
  Signature output_;
};

const OpRegistration<v1::ParseExample> kParseExample(
    "parse_example", {.gives = Given::kOneEach},
    [](const v1::ParseExample& options, PlanBuilder& plan) -> absl::Status {
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
