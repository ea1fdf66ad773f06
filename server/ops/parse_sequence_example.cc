#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/packed_row.h"
#include "server/codec/example.h"
#include "server/codec/parsed_features.h"
#include "server/codec/parsed_rows.h"
#include "server/codec/sequence_example.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

using Kind = ParsedFeaturePlan::Kind;

// Lists of any number of steps, of any length each, and the number of steps where that is asked
// for.
struct SequencePlan {
  std::vector<ParsedFeaturePlan> context;
  std::vector<ParsedFeaturePlan> lists;
  bool counts_steps = false;
};

class ParseSequenceExampleOp final : public WorkOp {
 public:
  ParseSequenceExampleOp(SequencePlan plan, std::vector<ExampleFeature> context,
                         std::vector<ExampleFeature> lists, Signature output)
      : plan_(std::move(plan)),
        num_context_(context.size()),
        num_lists_(lists.size()),
        context_(std::move(context)),
        lists_(std::move(lists)),
        output_(std::move(output)) {}

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    const Column& records = in[0];
    auto* context = arena.AllocateArray<ExampleValue>(num_context_);
    auto* lists = arena.AllocateArray<SequenceValue>(num_lists_);
    auto** numbers = arena.AllocateArray<void*>(num_context_);
    std::fill_n(numbers, num_context_, nullptr);
    std::vector<RowBytes*> places(out.size());
    std::vector<int64_t*> dims(out.size());
    // What the slot itself is to hold is copied into it.
    std::vector<uint8_t*> slots(out.size(), nullptr);
    for (size_t i = 0; i < out.size(); ++i) {
      const TensorType& type = output_[i].type;
      places[i] = arena.AllocateArray<RowBytes>(rows);
      if (out[i].data != nullptr) {
        slots[i] = out[i].data;
        out[i].row_bytes = static_cast<size_t>(NumBytes(type).value_or(0));
        continue;
      }
      out[i].rows = places[i];
      if (!type.packed() && std::count(type.shape.begin(), type.shape.end(), kUnknownSize) > 0)
        out[i].dims = dims[i] = arena.AllocateArray<int64_t>(rows * type.shape.size());
    }
    for (int row = 0; row < rows; ++row) {
      const RowBytes record{records.row(row), records.row_size(row)};
      absl::Status status = context_.Parse(record.data, record.size, context, numbers, &arena);
      if (status.ok()) status = lists_.Parse(record.data, record.size, lists, arena);
      size_t column = 0;
      const auto dims_of = [&](size_t i) {
        return dims[i] != nullptr ? dims[i] + row * output_[i].type.shape.size() : nullptr;
      };
      for (size_t i = 0; status.ok() && i < plan_.context.size(); ++i, ++column) {
        status =
            ContextRow(plan_.context[i], context, arena, &places[column][row], dims_of(column));
      }
      for (size_t i = 0; status.ok() && i < plan_.lists.size(); ++i, ++column) {
        status = ListRow(plan_.lists[i], absl::MakeConstSpan(lists, num_lists_), arena,
                         &places[column][row], dims_of(column));
      }
      for (size_t i = 0; plan_.counts_steps && status.ok() && i < plan_.lists.size(); ++i) {
        if (plan_.lists[i].kind != Kind::kSequence) continue;
        auto* steps = arena.AllocateArray<int64_t>(1);
        *steps = lists[plan_.lists[i].list].steps;
        places[column++][row] = {reinterpret_cast<const uint8_t*>(steps), sizeof(*steps)};
      }
      if (!status.ok()) return {std::move(status), row};
      for (size_t i = 0; i < out.size(); ++i) {
        if (slots[i] != nullptr)
          std::memcpy(slots[i] + row * out[i].row_bytes, places[i][row].data, out[i].row_bytes);
      }
    }
    return {};
  }

 private:
  absl::Status ContextRow(const ParsedFeaturePlan& feature, const ExampleValue* values,
                          Arena& arena, RowBytes* row, int64_t* dims) const {
    if (feature.kind != Kind::kFixed)
      return MakeParsedRow(feature, absl::MakeConstSpan(values, num_context_), arena, row, dims);
    const ExampleValue& value = values[feature.list];
    if (value.present) {
      if (feature.fixed_bytes && value.size != feature.length) {
        return absl::DataLossError(absl::StrCat("feature \"", feature.name, "\": expected ",
                                                feature.length, " bytes, found ", value.size));
      }
      *row = {value.bytes, value.size};
      return absl::OkStatus();
    }
    if (!feature.has_default) {
      return absl::DataLossError(
          absl::StrCat("feature \"", feature.name, "\": missing, and the spec gives no default"));
    }
    *row = {feature.default_value.data(), feature.default_value.size() - Arena::kPadding};
    return absl::OkStatus();
  }

  static absl::Status ListRow(const ParsedFeaturePlan& feature,
                              absl::Span<const SequenceValue> lists, Arena& arena, RowBytes* row,
                              int64_t* dims) {
    if (feature.kind == Kind::kRagged) return MakeRaggedSteps(feature, lists, arena, row);
    const SequenceValue& value = lists[feature.list];
    alignas(64) static constexpr uint8_t kNoValues[Arena::kPadding] = {};
    const bool present = value.values.present;
    const RowBytes bytes =
        present ? RowBytes{value.values.bytes, value.values.size} : RowBytes{kNoValues, 0};
    if (feature.kind == Kind::kSequence) {
      if (!present && !feature.allow_missing) {
        return absl::DataLossError(absl::StrCat("feature list \"", feature.name,
                                                "\": missing, and allow_missing is not set"));
      }
      std::copy(feature.type.shape.begin(), feature.type.shape.end(), dims);
      dims[0] = value.steps;
      *row = bytes;
      return absl::OkStatus();
    }
    const PackedValues packed = ReadDenseRow(feature.type.dtype, value.values.count, bytes);
    std::vector<int64_t> indices;
    int64_t sizes[2] = {value.steps, 0};
    for (uint32_t step = 0; step < value.steps; ++step) {
      sizes[1] = std::max(sizes[1], value.lengths[step]);
      for (int64_t i = 0; i < value.lengths[step]; ++i) {
        indices.push_back(step);
        indices.push_back(i);
      }
    }
    *row = PackSparse(sizes, indices, packed, arena);
    return absl::OkStatus();
  }

  const SequencePlan plan_;
  const size_t num_context_;
  const size_t num_lists_;
  const ExampleParser context_;
  const SequenceParser lists_;
  const Signature output_;
};

// A dict of these, as JSON, whose paths begin with `place`.
std::string AddDict(int place, const std::vector<const ParsedFeaturePlan*>& features,
                    Signature* output, bool steps = false) {
  Signature dict;
  for (const ParsedFeaturePlan* feature : features) {
    dict.push_back({feature->name, feature->type});
    output->push_back({absl::StrCat(place, "/", feature->name),
                       steps ? TensorType{DType::kInt64, {}} : feature->type});
  }
  return DictStructure(dict);
}

const OpRegistration<v1::ParseSequenceExample> kParseSequenceExample(
    "parse_sequence_example", {.gives = Given::kOneEach},
    [](const v1::ParseSequenceExample& options, PlanBuilder& plan) -> absl::Status {
      const Signature& input = plan.signature();
      if (input.size() != 1 || input[0].type != TensorType{DType::kString, {}}) {
        return absl::InvalidArgumentError(absl::StrCat(
            "expected one string scalar, found ", input.size(), " feature(s), the first \"",
            input[0].name, "\" ", TypeToString(input[0].type)));
      }
      absl::StatusOr<ParsedFeatures> context =
          PlanParsedFeatures(options.context(), plan.batched());
      if (!context.ok()) return context.status();
      absl::StatusOr<ParsedFeatures> lists = PlanParsedFeatures(options.sequence(), plan.batched());
      if (!lists.ok()) return lists.status();
      if (context->features.empty() && lists->features.empty())
        return absl::InvalidArgumentError("expected at least 1 feature, found none");
      // Numbers are put together in the arena, since their columns are scattered.
      for (ExampleFeature& feature : context->lists)
        feature.gathered = feature.gathered || feature.kind != DType::kString;
      for (ParsedFeaturePlan& feature : lists->features) {
        Shape& shape = feature.type.shape;
        ExampleFeature& list = lists->lists[feature.list];
        if (feature.kind == Kind::kSequence) {
          list.count = feature.group;
          continue;
        }
        if (feature.kind == Kind::kRagged) {
          shape.insert(shape.begin(), kUnknownSize);
          feature.type.form = RowForm::kPackedRagged;
          feature.type.narrow_splits = feature.narrow_splits;
          continue;
        }
        if (feature.kind != Kind::kList) {
          return absl::InvalidArgumentError(
              absl::StrCat("feature list \"", feature.name,
                           "\": expected sequence, sparse or ragged, found another kind"));
        }
        shape = {kUnknownSize, kUnknownSize};
        feature.type.form = RowForm::kPackedSparse;
      }
      Signature output;
      std::vector<const ParsedFeaturePlan*> parts[3];
      std::vector<std::string> paddings;
      for (const ParsedFeaturePlan& feature : context->features) {
        parts[0].push_back(&feature);
        paddings.push_back(feature.padding);
      }
      for (const ParsedFeaturePlan& feature : lists->features) {
        parts[1].push_back(&feature);
        if (feature.kind == Kind::kSequence) parts[2].push_back(&feature);
        paddings.push_back(feature.padding);
      }
      const bool pads = plan.batched();
      // One after another: the output has their order.
      std::string structure = "[" + AddDict(0, parts[0], &output);
      absl::StrAppend(&structure, ",", AddDict(1, parts[1], &output));
      if (pads) {
        absl::StrAppend(&structure, ",", AddDict(2, parts[2], &output, /*steps=*/true));
        paddings.resize(output.size());
      }
      structure += "]";
      plan.AddWork(std::make_unique<ParseSequenceExampleOp>(
                       SequencePlan{std::move(context->features), std::move(lists->features), pads},
                       std::move(context->lists), std::move(lists->lists), std::move(output)),
                   std::move(structure));
      if (pads) plan.PadBatch(std::move(paddings));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
