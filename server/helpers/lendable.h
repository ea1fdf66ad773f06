// Which specs another host can make steps of.
//
// Threads:  a function without state.
#pragma once

#include <string>

#include "penstock/v1/pipeline.pb.h"

namespace penstock {

// Why no other host can, as a sentence without its end; "" where one can.
std::string WhyNotLendable(const v1::PipelineSpec& spec);

}  // namespace penstock
