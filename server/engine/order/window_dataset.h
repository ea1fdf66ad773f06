// The dataset that nested stages make of a window of elements: one after another of many windows.
//
// Threads:  one at a time (the front's lock).
// Owns:     the references of the window that is open.
#pragma once

#include <cstdint>
#include <memory>

#include "server/engine/order/dataset.h"
#include "server/engine/order/order_op.h"

namespace penstock {

class WindowDataset {
 public:
  // Both must outlive it.
  WindowDataset(const FrontContext& outer, const OrderNode& nested)
      : outer_(outer), paths_(nested.elements_paths.get()), context_(outer) {
    context_.window = &window_;
    context_.nested = true;
    op_ = MakeOrder(nested, context_);
  }
  WindowDataset(const WindowDataset&) = delete;
  WindowDataset& operator=(const WindowDataset&) = delete;

  bool is_open() const { return is_open_; }

  // Begins with another window, number `ordinal` of a pass, whose references it takes over.
  // `scope_pass`: what the outer context's was at the beginning of that pass.
  void Open(RecordList window, uint64_t epoch, uint64_t ordinal, uint64_t scope_pass) {
    window_ = std::move(window);
    if (paths_ != nullptr && !window_.empty())
      context_.scope = ScopeOf(outer_, scope_pass, paths_->PathOf(window_.data()));
    is_open_ = true;
    context_.element_epoch = outer_.PassOf(epoch);
    if (!window_.empty()) {
      context_.element_file = window_.front().file;
      context_.element_epoch = LaterPass(window_.front(), context_.element_epoch);
    }
    op_->Restart(NestedEpoch(epoch, ordinal));
  }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) {
    const size_t before = out.size();
    const Pulled result = op_->Pull(count, out, pulled);
    // Nested passes are numbered by their windows too; what is handed on belongs to that of its
    // window.
    for (size_t i = before; i < out.size(); ++i) out[i].epoch = context_.element_epoch;
    return result;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) { return op_->Skip(count, skipped); }

  void Close() {
    if (!is_open_) return;
    op_->Restart(0);
    context_.store.Release(window_);
    window_.clear();
    is_open_ = false;
  }

  uint32_t width() const { return op_->width(); }
  absl::Status status() const { return op_->status(); }

 private:
  const FrontContext& outer_;
  const WorkNode* const paths_;  // of the window's first element; null where nobody asks
  FrontContext context_;
  RecordList window_;
  std::unique_ptr<OrderOp> op_;
  bool is_open_ = false;
};

}  // namespace penstock
