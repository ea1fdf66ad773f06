// Where bytes are written to from front to back: a file of this machine, an object of another.
//
// Threads:  one.
// Owns:     what it writes. Until Close() nobody sees it; a sink that is destroyed before leaves nothing behind.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual absl::Status Write(absl::string_view bytes) = 0;
  // Gives what was written its name. Nothing may be written afterwards.
  virtual absl::Status Close() = 0;
};

}  // namespace penstock
