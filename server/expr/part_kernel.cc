#include "server/expr/part_kernel.h"

#include <utility>

namespace penstock::expr {
namespace {

class PartKernel final : public RowKernel {
 public:
  PartKernel(std::shared_ptr<const RowKernel> maker, size_t maker_arguments,
             std::shared_ptr<const RowKernel> taker)
      : maker_(std::move(maker)), maker_arguments_(maker_arguments), taker_(std::move(taker)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const std::unique_ptr<PartReader> reader = maker_->NewPartReader();
    const absl::StatusOr<Shape> shape = reader->Start(arguments.first(maker_arguments_));
    if (!shape.ok()) return shape.status();
    return taker_->RunOnPart(*reader, *shape, arguments.subspan(maker_arguments_), scratch, out);
  }

 private:
  const std::shared_ptr<const RowKernel> maker_;
  const size_t maker_arguments_;
  const std::shared_ptr<const RowKernel> taker_;
};

}  // namespace

std::shared_ptr<const RowKernel> MakePartKernel(std::shared_ptr<const RowKernel> maker,
                                                size_t maker_arguments,
                                                std::shared_ptr<const RowKernel> taker) {
  return std::make_shared<PartKernel>(std::move(maker), maker_arguments, std::move(taker));
}

bool IsPartKernel(const RowKernel& kernel) {
  return dynamic_cast<const PartKernel*>(&kernel) != nullptr;
}

}  // namespace penstock::expr
