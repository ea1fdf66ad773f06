#include "server/engine/plan/order_class.h"

#include <algorithm>
#include <memory>

namespace penstock {

bool DecidedByValues(const OrderNode& node) {
  return node.decided_by_values || std::any_of(node.inputs.begin(), node.inputs.end(),
                                               [](const std::unique_ptr<OrderNode>& input) {
                                                 return DecidedByValues(*input);
                                               });
}

CursorClass WorstClass(const OrderNode& node) {
  CursorClass worst = node.cursor_class;
  if (worst == CursorClass::kReplayOrder && DecidedByValues(node)) worst = CursorClass::kReplayData;
  // Places in nested datasets are found by going through their order, unless their counts tell.
  if (node.nested != nullptr) {
    worst = std::max(worst, WorstClass(*node.nested));
    if (DecidedByValues(node)) worst = CursorClass::kReplayData;
  }
  for (const std::unique_ptr<OrderNode>& input : node.inputs)
    worst = std::max(worst, WorstClass(*input));
  return worst;
}

}  // namespace penstock
