// Where the project's own files are, for tests that read them. The path stands in one object file:
// a definition on each test program would keep it from the others' precompiled headers, and its
// objects from other checkouts' caches.
#pragma once

#include <string>

namespace penstock::testing {

// The path of a file or folder, "docs/functions.json".
std::string InTree(const std::string& path);

}  // namespace penstock::testing
