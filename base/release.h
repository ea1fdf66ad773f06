// The release of this build, such as "0.1.0".
#pragma once

namespace penstock {

extern const char kRelease[];

}  // namespace penstock
