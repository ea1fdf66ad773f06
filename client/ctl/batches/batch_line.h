// A batch as one line of text: step, epoch, and each tensor with its type, shape and checksum.
//
// Threads: safe from any thread.
// Cost:    reads all of the batch once, some 10 GB/s.
#pragma once

#include <string>

#include "penstock.hpp"

namespace penstock::ctl {

// "step 3  epoch 0  x float32 (512, 8) crc32c=4c2f1a09": the checksum is that of the arrays which
// WriteNpz makes of the tensor, one after another. Without a line end.
std::string BatchLine(const Batch& batch);

}  // namespace penstock::ctl
