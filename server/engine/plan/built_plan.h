// What the stages of a spec have become: all that a plan keeps of the builder.
//
// Threads:  constant.
#pragma once

#include "server/engine/order/dataset.h"
#include "server/engine/plan/plan_files.h"
#include "server/engine/plan/stage_table.h"

namespace penstock {

struct BuiltPlan {
  StageTable stages;
  PlanFiles files;
  Dataset dataset;
};

}  // namespace penstock
