// A loader's beginning, and its beginning anew at another position.
//
// Threads:  Seek under the loader's next_mutex.
// Cost:     one exchange with the daemon, which may take as long as a restarted one waits for its
//           consumers.
#pragma once

#include <cstdint>

#include "client/c/loader.h"

namespace penstock_client {

// What penstock_attach_with does: PENSTOCK_OK with a loader, or the code, with its message kept.
int AttachWith(const penstock_attach_options* given, penstock_loader** loader);

// What penstock_seek does. A cursor that is not one leaves the loader where it is.
int Seek(penstock_loader* loader, const void* cursor, uint32_t bytes);

}  // namespace penstock_client
