// How long a client waits for a daemon that gives no sign of life.
//
// Threads:  any; it reads the environment.
#pragma once

#include <cstdint>

#include "ring/status.h"

namespace penstock::ring {

// $PENSTOCK_ANSWER_SECONDS, a number from 0.1 to 86400, else `default_ns`. InvalidArgument where
// the variable is no such number.
Status AnswerTime(uint64_t default_ns, uint64_t* ns);

}  // namespace penstock::ring
