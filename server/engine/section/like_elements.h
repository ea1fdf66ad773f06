// Several datasets whose elements are to stand in one sequence.
//
// Threads:  no state; MakeAlike() is called while a plan is built.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "server/engine/order/dataset.h"

namespace penstock {

// Gives the elements of all inputs the order of features of those of the first, and sizes that only
// the data tells where the inputs' sizes differ. What that takes is done as work of `stage`.
//
// InvalidArgument where there is no input, or elements differ otherwise: in names, types, or
// numbers of axes.
absl::Status MakeAlike(int stage, std::vector<Dataset>* inputs);

}  // namespace penstock
