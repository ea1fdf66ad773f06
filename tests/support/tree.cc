#include "tests/support/tree.h"

namespace penstock::testing {

std::string InTree(const std::string& path) { return PENSTOCK_SOURCE_DIR "/" + path; }

}  // namespace penstock::testing
