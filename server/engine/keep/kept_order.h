// The order of elements that are kept once they have been computed: dealt from where they are kept,
// and from the input where they are not.
//
// The input is always in its first pass. The position is the ordinal of the next element alone, so
// that it does not tell what is kept.
//
// Threads:  one at a time (the front's lock).
#pragma once

#include <cstdint>
#include <memory>

#include "server/engine/order/order_op.h"

namespace penstock {

// Where elements are kept.
class KeptElements {
 public:
  virtual ~KeptElements() = default;

  // Before the first other call of a pass, until it returns true: whether it is known what is kept.
  // Where it is not, an errand is under way whose end makes the front be asked again.
  virtual bool BeginPass() { return true; }
  // Whether Keep() may be called now, from this element on. Where it may not, the same.
  virtual bool IsReady(uint64_t /*ordinal*/) { return true; }
  // Whether this element is kept.
  virtual bool Has(uint64_t ordinal) const = 0;
  // kSome: has appended the kept element, with an owner more. kEnd: it was found to be kept no
  // more. kBlocked: that is not known yet, and an errand is under way as above. REQUIRES:
  // Has(ordinal).
  virtual Pulled Deal(uint64_t ordinal, RecordList& out) = 0;
  // Whether it waits for this element: then it is not left out but computed.
  virtual bool Wants(uint64_t) const { return false; }
  // An element has come from the input; it may be kept.
  virtual void Keep(uint64_t ordinal, const RecordRef& element) = 0;
  // The input has ended behind so many elements, or the same is asked again. kBlocked as IsReady().
  virtual Pulled End(uint64_t /*length*/) { return Pulled::kEnd; }
  // The length of the dataset, where what is kept tells it.
  virtual std::optional<uint64_t> Count() const { return std::nullopt; }
  // Gives back what it owns: nothing will be asked any more.
  virtual void GiveBack() {}
  // Why the stream cannot go on.
  virtual absl::Status status() const { return absl::OkStatus(); }
};

std::unique_ptr<OrderOp> MakeKeptOrder(FrontContext& context, std::unique_ptr<KeptElements> kept,
                                       std::unique_ptr<OrderOp> input);

}  // namespace penstock
