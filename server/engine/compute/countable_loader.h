// Loaders of rows for which the front needs nothing of the elements in front of them but a number
// of each: that of its tokens. An index of these numbers may take the elements' place
// (server/engine/plan/count_index.h).
//
// Threads: constant after construction.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/engine/order/order_op.h"
#include "server/engine/order/work_op.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/read/document_counts.h"
#include "server/engine/read/skip_limits.h"

namespace penstock {

struct WorkNode;

class CountableLoader {
 public:
  virtual ~CountableLoader() = default;

  // Makes the number of each element, int64 (), its first feature; its failures are those of the
  // element.
  virtual const WorkOp& counting() const = 0;
  // What decides the numbers beside the elements.
  virtual std::string CountingKey() const = 0;
  // Where elements that fail are left out.
  virtual const std::optional<IgnoredFailures>& ignored() const = 0;

  // The same rows by their numbers: the order of what deals in the records of the elements, and the
  // loader (EvaluatingLoader), over the work that makes the elements, which outlives both.
  virtual OrderFactory OrderByCounts(std::shared_ptr<DocumentCounts> counts,
                                     const WorkNode* elements, std::string stage_name) const = 0;
  virtual std::unique_ptr<ColumnLoader> LoaderByCounts() const = 0;
};

}  // namespace penstock
