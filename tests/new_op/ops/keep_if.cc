#include <utility>

#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/predicate.h"

namespace penstock {
namespace {

// Hands on the rows that meet the condition.
class KeepIfOp final : public SplitOp {
 public:
  KeepIfOp(Signature signature, Predicate predicate)
      : signature_(std::move(signature)), predicate_(std::move(predicate)) {}

  const Signature& output() const override { return signature_; }

  bool draws() const override { return predicate_.draws(); }

  RowStatus Run(int rows, absl::Span<const Column> in, Split* split, absl::Span<Column> out,
                Arena& arena) const override {
    const uint8_t* holds = nullptr;
    if (RowStatus status = predicate_.Run(rows, in, &holds, arena); !status.ok()) return status;
    auto* kept = arena.AllocateArray<uint32_t>(rows);
    size_t num_kept = 0;
    for (int row = 0; row < rows; ++row) {
      split->counts[row] = holds[row] != 0 ? 1 : 0;
      if (holds[row] != 0) kept[num_kept++] = row;
    }
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = SelectRows(signature_[i].type, in[i], {kept, num_kept}, arena);
    return {};
  }

 private:
  const Signature signature_;
  const Predicate predicate_;
};

const OpRegistration<v1::KeepIf> kKeepIf(
    "keep_if", {.expressions = {v1::KeepIf::kLetFieldNumber, v1::KeepIf::kPredicateFieldNumber}},
    [](const v1::KeepIf& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<Predicate> predicate = Predicate::Read(options, plan);
      if (!predicate.ok()) return predicate.status();
      plan.EndSection(std::make_unique<KeepIfOp>(plan.signature(), *std::move(predicate)),
                      plan.structure());
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
