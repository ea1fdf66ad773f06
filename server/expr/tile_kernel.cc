#include "server/expr/tile_kernel.h"

#include <utility>

namespace penstock::expr {
namespace {

// Makes the filter when the first tile is asked for, so that functions draw in the order in which
// they work.
class LateFilter final : public TileFilter {
 public:
  LateFilter(const RowKernel& taker, const Shape& image, absl::Span<const RowValue> others,
             Arena& scratch, RowOutput& out)
      : taker_(taker), image_(image), others_(others), scratch_(scratch), out_(out) {}

  uint8_t* Reserve(size_t bytes) override { return filter().Reserve(bytes); }
  void Commit() override { filter().Commit(); }
  bool TakeMirrored() override { return filter().TakeMirrored(); }
  absl::Status Finish() override { return filter().Finish(); }

 private:
  TileFilter& filter() {
    if (filter_ == nullptr) filter_ = taker_.NewTileFilter(image_, others_, scratch_, out_);
    return *filter_;
  }

  const RowKernel& taker_;
  const Shape& image_;
  const absl::Span<const RowValue> others_;
  Arena& scratch_;
  RowOutput& out_;
  std::unique_ptr<TileFilter> filter_;
};

class TileKernel final : public RowKernel {
 public:
  TileKernel(std::shared_ptr<const RowKernel> maker, size_t maker_arguments, const Shape& image,
             std::shared_ptr<const RowKernel> taker)
      : maker_(std::move(maker)),
        maker_arguments_(maker_arguments),
        image_(image),
        taker_(std::move(taker)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    LateFilter filter(*taker_, image_, arguments.subspan(maker_arguments_), scratch, out);
    const absl::Status status = maker_->Run(arguments.first(maker_arguments_), scratch, filter);
    return status.ok() ? filter.Finish() : status;
  }

  const RowKernel& maker() const { return *maker_; }

 private:
  const std::shared_ptr<const RowKernel> maker_;
  const size_t maker_arguments_;
  const Shape image_;
  const std::shared_ptr<const RowKernel> taker_;
};

}  // namespace

std::shared_ptr<const RowKernel> MakeTileKernel(std::shared_ptr<const RowKernel> maker,
                                                size_t maker_arguments, const Shape& image,
                                                std::shared_ptr<const RowKernel> taker) {
  return std::make_shared<TileKernel>(std::move(maker), maker_arguments, image, std::move(taker));
}

const RowKernel* TileMaker(const RowKernel& kernel) {
  const auto* const tiles = dynamic_cast<const TileKernel*>(&kernel);
  return tiles == nullptr ? nullptr : &tiles->maker();
}

}  // namespace penstock::expr
