// What a pipeline has fetched of files at addresses, in words.
#pragma once

#include <string>

#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

// One line. REQUIRES: stats.has_remote().
std::string DescribeRemote(const v1::PipelineStats& stats);

}  // namespace penstock::ctl
