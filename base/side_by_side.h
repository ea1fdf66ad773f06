// The same work on several threads at a time: what one of them waits for, another machine's answer,
// the others do not.
//
// Threads:  any. The others work with the caller's StopFlag and for its MemoryAccount, and have
//           ended when it returns.
// Cost:     a thread each, which is not kept: for what waits for the network, not for what
//           computes.
#pragma once

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"

namespace penstock {

// Calls `work` on this thread and on `threads` - 1 others, or fewer where the system gives no more
// of them. What one of them throws is thrown when all have ended. While another one hangs in a
// read, this one's PendingCall says so: `doing`, static text, and `path`.
void SideBySide(size_t threads, const char* doing, const std::string& path,
                absl::FunctionRef<void()> work);

// Calls work(i) for each i below `count`, in the order of their beginning, on at most `threads`
// threads.
void EachSideBySide(size_t threads, size_t count, const char* doing, const std::string& path,
                    absl::FunctionRef<void(size_t)> work);

}  // namespace penstock
