#include <utility>

#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/predicate.h"

namespace penstock {
namespace {

// Hands on rows up to the first that does not meet the condition, which ends the pass.
class TakeWhileOp final : public SplitOp {
 public:
  TakeWhileOp(Signature signature, Predicate predicate)
      : signature_(std::move(signature)), predicate_(std::move(predicate)) {}

  const Signature& output() const override { return signature_; }

  bool draws() const override { return predicate_.draws(); }

  RowStatus Run(int rows, absl::Span<const Column> in, Split* split, absl::Span<Column> out,
                Arena& arena) const override {
    const uint8_t* holds = nullptr;
    if (RowStatus status = predicate_.Run(rows, in, &holds, arena); !status.ok()) return status;
    for (int row = 0; row < rows; ++row) {
      split->ends = split->ends || holds[row] == 0;
      split->counts[row] = split->ends ? 0 : 1;
    }
    for (size_t i = 0; i < out.size(); ++i) out[i] = in[i];
    return {};
  }

 private:
  const Signature signature_;
  const Predicate predicate_;
};

const OpRegistration<v1::TakeWhile> kTakeWhile(
    "take_while",
    {.expressions = {v1::TakeWhile::kLetFieldNumber, v1::TakeWhile::kPredicateFieldNumber}},
    [](const v1::TakeWhile& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<Predicate> predicate = Predicate::Read(options, plan);
      if (!predicate.ok()) return predicate.status();
      plan.EndSection(std::make_unique<TakeWhileOp>(plan.signature(), *std::move(predicate)),
                      plan.structure());
      plan.SetEndless(false);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
