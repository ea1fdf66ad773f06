// The release of this build, such as "0.1.0".
//
// Threads:  a constant.
#pragma once

namespace penstock {

extern const char kRelease[];

}  // namespace penstock
