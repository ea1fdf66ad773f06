// The daemons of other hosts that make steps of a pipeline, in words.
//
// Threads: any; no state.
#pragma once

#include <string>

#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

// "helper 10.0.0.7:9466: ready, has 2 steps, made 1200 (1.2 GiB), 14.2 ms a step".
std::string DescribeHelper(const v1::HelperStats& helper);

}  // namespace penstock::ctl
