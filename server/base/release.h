// The release of this build, such as "0.1.0".
#pragma once

namespace penstock {

inline constexpr char kRelease[] = PENSTOCK_RELEASE;

}  // namespace penstock
