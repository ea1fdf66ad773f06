#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/json_decoder.h"
#include "server/codec/json_fields.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

class DecodeJsonOp final : public WorkOp {
 public:
  DecodeJsonOp(std::vector<JsonField> fields, JsonErrors errors)
      : decoder_(std::move(fields), errors) {
    for (const JsonField& field : decoder_.fields()) output_.push_back({field.name, field.type});
  }

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    static thread_local JsonScratch scratch;
    const std::vector<JsonField>& fields = decoder_.fields();
    auto* const places = arena.AllocateArray<RowBytes*>(fields.size());
    auto* const dims = arena.AllocateArray<int64_t*>(fields.size());
    for (size_t i = 0; i < fields.size(); ++i) {
      const JsonField& field = fields[i];
      places[i] = nullptr;
      dims[i] = nullptr;
      if (field.is_dense()) {
        out[i].row_bytes = field.row_values * DTypeSize(field.type.dtype);
        if (out[i].data == nullptr) out[i].data = arena.Allocate(out[i].row_bytes * rows);
        continue;
      }
      out[i] = Column{};
      out[i].rows = places[i] = arena.AllocateArray<RowBytes>(rows);
      if (field.list_axes > 0 && !field.type.packed())
        out[i].dims = dims[i] = arena.AllocateArray<int64_t>(rows * field.shape.size());
    }
    std::vector<JsonDecoder::Target> targets(fields.size());
    for (int row = 0; row < rows; ++row) {
      for (size_t i = 0; i < fields.size(); ++i) {
        targets[i].to = places[i] == nullptr ? out[i].data + row * out[i].row_bytes : nullptr;
        targets[i].row = places[i] == nullptr ? nullptr : places[i] + row;
        targets[i].dims = dims[i] == nullptr ? nullptr : dims[i] + row * fields[i].shape.size();
      }
      absl::Status status =
          decoder_.Decode({reinterpret_cast<const char*>(in[0].row(row)), in[0].row_size(row)},
                          targets, arena, scratch);
      if (!status.ok()) return {std::move(status), row};
    }
    return {};
  }

 private:
  const JsonDecoder decoder_;
  Signature output_;
};

const OpRegistration<v1::DecodeJson> kDecodeJson(
    "decode_json", {.gives = Given::kOneEach},
    [](const v1::DecodeJson& options, PlanBuilder& plan) -> absl::Status {
      const Signature& input = plan.signature();
      if (input.size() != 1 || input[0].type != TensorType{DType::kString, {}}) {
        return absl::InvalidArgumentError(absl::StrCat(
            "expected one string scalar, found ", input.size(), " feature(s), the first \"",
            input[0].name, "\" ", TypeToString(input[0].type)));
      }
      absl::StatusOr<JsonErrors> errors = JsonErrorsFromName(options.errors());
      if (!errors.ok()) return errors.status();
      absl::StatusOr<std::vector<JsonField>> fields =
          PlanJsonFields(options.feature(), plan.batched());
      if (!fields.ok()) return fields.status();
      bool pads = false;
      std::vector<std::string> paddings;
      for (const JsonField& field : *fields) {
        pads = pads || field.pads;
        paddings.push_back(field.padding);
      }
      plan.AddWork(std::make_unique<DecodeJsonOp>(*std::move(fields), *errors));
      if (plan.batched() && pads) plan.PadBatch(std::move(paddings));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
