// An address as a message may show it: without users, passwords, queries and fragments, where
// secrets stand.
//
// Threads:  any; no state.
// Limits:   512 bytes of it.
#pragma once

#include <string>

namespace penstock {

// Of any text: one that is no address is shown as it is. Keys of s3:// and gs:// may hold "?" and
// "#", which are cut where a signature follows.
std::string ShownUrl(const std::string& text);

}  // namespace penstock
