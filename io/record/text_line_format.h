// Lines without their ends, "\n" or "\r\n". A last line needs none, and an end makes no empty line
// behind it. As in tf.data, a "\r" elsewhere is dropped too.
//
// Threads:  as RecordFormat: constant, and safe from any thread.
#pragma once

#include <memory>

#include "io/record/record_format.h"

namespace penstock {

std::shared_ptr<const RecordFormat> TextLineFormat();

}  // namespace penstock
