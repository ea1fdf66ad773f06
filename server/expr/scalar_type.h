// The type of a single value, of a result that is one whatever its arguments are.
//
// Threads: any; no state.
#pragma once

#include "base/signature.h"

namespace penstock::expr {

// Not inline: where g++ 12 sees that a list of sizes is empty, and that it is moved, it warns of
// the sizes that are not there.
TensorType ScalarType(DType dtype);

}  // namespace penstock::expr
