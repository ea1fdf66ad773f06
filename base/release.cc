#include "base/release.h"

namespace penstock {

const char kRelease[] = PENSTOCK_RELEASE;

}  // namespace penstock
