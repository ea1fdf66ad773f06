// The next batch of a loader, whole or of the consumer's own size, and what is let go of with a
// loader.
//
// Threads:  under the loader's next_mutex; Unreference from any.
// Owns:     nothing; a batch that is given out holds a reference to its loader, and one to its
//           source.
// Cost:     a whole batch in place costs no copy and no allocation.
#pragma once

#include <cstdint>

#include "client/c/loader.h"

namespace penstock_client {

// PENSTOCK_OK with a batch, or the code of what there is instead, with its message kept. Waits up
// to `until_ns` of ring::MonotonicNs(): 0 does not wait, UINT64_MAX has no end.
int NextBatch(penstock_loader* loader, uint64_t until_ns, penstock_batch** out);

// The next batch of the consumer's own size (batch_rows).
int MakeOwn(penstock_loader* loader, uint64_t until_ns, penstock_batch** out);

// Lets go of a batch that was complete before anybody asked for it.
void DropReady(penstock_loader* loader);

// The last one deletes the loader.
void Unreference(penstock_loader* loader);

}  // namespace penstock_client
