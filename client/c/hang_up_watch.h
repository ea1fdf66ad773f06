// A thread that brings loaders back to a daemon that has gone away, while their program is busy
// with a batch: whoever takes longer for one than the daemon waits for its consumers (rejoin_s)
// would be lost otherwise.
//
// It only begins what penstock_next would do at the end of the ring, and does nothing to a loader
// in whose next some thread is. Until a daemon accepts a connection, batches that are ready are
// still served from the old ring; from then on they are the next ring's, from the same step.
//
// Threads:  any. One thread of its own for a process, from its first loader on; signals are blocked
//           in it. Where it cannot be made, loaders come back in their next call, as they do
//           without reconnect_seconds too.
// Owns:     nothing of a loader. The watch lives as long as the process. A forked child has none
//           until it attaches.
// Cost:     nothing until a socket hangs up; then a connection every 20 ms, and after five seconds
//           two in a second.
#pragma once

#include <cstdint>

struct penstock_loader;

namespace penstock_client {

// From now on, until Unwatch(), the loader comes back by itself. REQUIRES: it is attached.
void Watch(penstock_loader* loader);
// Another source: its socket is the one that counts. Does nothing for a loader that is not watched.
// To be called under its next_mutex.
void WatchSource(const penstock_loader& loader);
// When it returns, the watch does not touch the loader any more. Not under its next_mutex.
void Unwatch(penstock_loader* loader);

}  // namespace penstock_client
