// Two consumers that want one place: the same name or rank of a group, or one client that attaches
// again.
//
// Threads:  functions without state.
#pragma once

#include <cstdint>

#include "ring/consumer_spec.h"
#include "ring/status.h"

namespace penstock::ring {

bool AreRivals(const ConsumerSpec& newcomer, const ConsumerSpec& other);

// Whether the newcomer takes the place of its rival in process `pid`: kAlreadyExists where it is
// another client's and the newcomer does not want to take over, kPermissionDenied where it is
// another user's. A guest gives way to whoever is none.
Status MayReplace(const ConsumerSpec& newcomer, const ConsumerSpec& rival, int32_t pid);

// What the one is told whose place was taken.
inline constexpr char kTakenOver[] = "another consumer of this name or rank has taken over";

}  // namespace penstock::ring
