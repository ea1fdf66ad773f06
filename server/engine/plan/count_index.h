// Indices of tokens in a plan: which stages may have one (CountableLoader), and the plan made of
// those that have.
//
// A stage that needs a number of each element alone can have an index where the number is a matter
// of one record: its elements are made of the records of plain files, one of each, by work that
// draws nothing and that this process does. Order ops may stand anywhere in front of it.
//
// Threads:  one thread, while a plan is made; FindCounted() any.
// Cost:     for a plan without such stages a walk over its work; else a look at the head of each
//           file's index, or at the first one that is missing.
#pragma once

#include <string>
#include <vector>

#include "server/engine/compute/countable_loader.h"
#include "server/engine/plan/built_plan.h"

namespace penstock {

// A stage that counts.
struct CountedStage {
  int stage = 0;
  const CountableLoader* rows = nullptr;
  // Why it can have no index; "": it can.
  std::string reason;
  // Where it can: its elements, what the index of each file is of, and which files these are.
  const WorkNode* elements = nullptr;
  FileRange files;
  OnDamage on_damage = OnDamage::kFail;
  std::string key;
};

// Those of a plan that UseCountIndices() has not changed yet.
std::vector<CountedStage> FindCounted(const BuiltPlan& plan);

// Where every file of such a stage has an index, the stage goes by it: no element is computed for
// its number. Says of each stage what has become of it.
void UseCountIndices(BuiltPlan* plan);

}  // namespace penstock
