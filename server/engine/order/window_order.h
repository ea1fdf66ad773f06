// The order of a window's elements (FrontContext::window), whose owner the window stays.
//
// Threads: one at a time (the front's lock).
#pragma once

#include <cstdint>
#include <memory>

#include "server/engine/order/order_op.h"

namespace penstock {

// `width`: references of an element.
std::unique_ptr<OrderOp> MakeWindowOrder(FrontContext& context, uint32_t width);

}  // namespace penstock
