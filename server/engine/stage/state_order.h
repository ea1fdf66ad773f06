// The order of ops that carry a state from element to element: scan, which makes an element of
// each, and reduce, which makes one of all. Both compute in the front, one element after another.
//
// Threads: one at a time (the front's lock).
// Cost:     about a microsecond an element.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/engine/order/order_op.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/read/skip_limits.h"
#include "server/engine/stage/state_program.h"

namespace penstock {

struct StateOptions {
  std::string stage;
  std::shared_ptr<const StateProgram> program;
  const ElementCells* in = nullptr;   // of the input's elements
  const ElementCells* out = nullptr;  // of those that are made
  const WorkNode* work = nullptr;     // of the input's elements, for the addresses of errors
  bool only_last = false;             // the state behind the last element instead of outs
  bool keeps_paths = false;  // what is made of an element has its path, and not that of its place
  std::optional<IgnoredFailures> ignored;  // an element that fails is left out, and the state stays
};

std::unique_ptr<OrderOp> StateOrder(FrontContext& context, StateOptions options,
                                    std::unique_ptr<OrderOp> input);

// Reads the fields that the two share, and adds the op: as Scan, or with `only_last` as Reduce.
absl::Status AddStateOrder(StateOptions options, const std::string& structure, PlanBuilder& plan);

}  // namespace penstock
