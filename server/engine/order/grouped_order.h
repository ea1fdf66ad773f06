// The order of ops that gather elements by the number in front of them
// (engine/stage/keyed_elements.h): group_by_window and bucket_by_sequence_length.
//
// A group that is full becomes a window; at the end of the pass those become windows that are left,
// in the order of their keys. What waits is a matter of all elements before, so that the position
// is the pass and the number of elements that have been taken.
//
// Threads: one at a time (the front's lock).
// Owns:     the references of elements that wait: one group of each key.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/order/dataset.h"
#include "server/engine/order/order_op.h"

namespace penstock {

struct Grouping {
  // How the front numbers the group of an element's number.
  std::function<int64_t(int64_t number)> key_of;
  // How many elements a window of that key has, at least 1. Asked once for each window.
  std::function<absl::StatusOr<uint64_t>(int64_t key)> window_size;
  // Windows that are not full at the end of the pass are left out.
  bool drop_remainder = false;
};

// A window is handed on as one element: the references of a batch.
std::unique_ptr<OrderOp> BatchesOfGroups(FrontContext& context, Grouping grouping,
                                         std::unique_ptr<OrderOp> input);
// The elements of the dataset that `nested` makes of each window, one dataset after another.
std::unique_ptr<OrderOp> DatasetsOfGroups(FrontContext& context, const OrderNode& nested,
                                          Grouping grouping, std::unique_ptr<OrderOp> input);

}  // namespace penstock
