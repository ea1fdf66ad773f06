#include <utility>

#include "server/engine/op_registry.h"

namespace penstock {
namespace {

// Every row is the element that it was; those that failed before have not come so far.
class PassOp final : public SplitOp {
 public:
  explicit PassOp(Signature signature) : signature_(std::move(signature)) {}

  const Signature& output() const override { return signature_; }

  RowStatus Run(int, absl::Span<const Column> in, Split* split, absl::Span<Column> out,
                Arena&) const override {
    for (uint32_t& count : split->counts) count = 1;
    for (size_t i = 0; i < out.size(); ++i) out[i] = in[i];
    return {};
  }

 private:
  const Signature signature_;
};

const OpRegistration<v1::IgnoreErrors> kIgnoreErrors(
    "ignore_errors", [](const v1::IgnoreErrors& options, PlanBuilder& plan) -> absl::Status {
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      SkipLimits limits;
      if (absl::Status status = ReadSkipLimits(options, "", &limits); !status.ok()) return status;
      plan.EndSegment(std::make_unique<PassOp>(plan.signature()), plan.structure(), &limits);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
