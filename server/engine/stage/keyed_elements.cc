#include "server/engine/stage/keyed_elements.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

class KeyOp final : public WorkOp {
 public:
  // `output` has the number in front.
  KeyOp(Signature output, std::unique_ptr<expr::Program> program, std::unique_ptr<WorkOp> then)
      : output_(std::move(output)), program_(std::move(program)), then_(std::move(then)) {}

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    out[0].row_bytes = sizeof(int64_t);
    out[0].data = arena.Allocate(rows * sizeof(int64_t));
    uint8_t* const targets[] = {out[0].data};
    RowStatus status = program_->Run(rows, in, targets, arena);
    if (!status.ok()) return status;
    if (then_ != nullptr) return then_->Run(rows, in, out.subspan(1), arena);
    std::copy(in.begin(), in.end(), out.begin() + 1);
    return {};
  }

  std::string Describe() const override { return program_->DebugString(); }

 private:
  const Signature output_;
  const std::unique_ptr<expr::Program> program_;
  const std::unique_ptr<WorkOp> then_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<expr::Program>> CompileInteger(const Signature& signature,
                                                              expr::MapSource source,
                                                              const std::string& field,
                                                              const std::string& expression) {
  if (expression.empty())
    return absl::InvalidArgumentError(absl::StrCat(field, ": expected an expression, found none"));
  source.outs = {absl::StrCat(field, " = ", expression)};
  absl::StatusOr<std::unique_ptr<expr::Program>> program = expr::Compile(signature, {source});
  if (!program.ok()) return program.status();
  if ((*program)->draws()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": expected no random functions: draw in a map before this stage"));
  }
  const TensorType type = (*program)->output().front().type;
  if (!IsInteger(type.dtype) || !type.shape.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": expected an integer (), found ", TypeToString(type)));
  }
  if (type.dtype == DType::kInt64) return program;
  source.outs = {absl::StrCat(field, " = int64(", expression, ")")};
  return expr::Compile(signature, {source});
}

absl::Status AddKey(const expr::MapSource& source, const std::string& field,
                    const std::string& expression, PlanBuilder& plan,
                    std::unique_ptr<WorkOp> then) {
  absl::StatusOr<std::unique_ptr<expr::Program>> program =
      CompileInteger(plan.signature(), source, field, expression);
  if (!program.ok()) return program.status();
  Signature output = (*program)->output();
  output.insert(output.end(), plan.signature().begin(), plan.signature().end());
  plan.EndSectionWith(
      std::make_unique<KeyOp>(std::move(output), *std::move(program), std::move(then)),
      /*hidden=*/1);
  return absl::OkStatus();
}

absl::Status AddKeyAsPair(const expr::MapSource& source, const std::string& field,
                          const std::string& expression, PlanBuilder& plan) {
  absl::StatusOr<std::unique_ptr<expr::Program>> program =
      CompileInteger(plan.signature(), source, field, expression);
  if (!program.ok()) return program.status();
  Signature pair = {{"0", {DType::kInt64, {}}}};
  const bool lone = plan.structure() == "null";
  for (const Feature& feature : plan.signature())
    pair.push_back({lone ? "1" : absl::StrCat("1/", feature.name), feature.type});
  std::string structure = absl::StrCat("[null,", plan.structure(), "]");
  plan.EndSectionWith(
      std::make_unique<KeyOp>(std::move(pair), *std::move(program), /*then=*/nullptr),
      /*hidden=*/0);
  plan.SetStructure(std::move(structure));
  return absl::OkStatus();
}

}  // namespace penstock
