// Pools by what they run, so that workers outlive a pipeline: a trainer's epochs are pipelines of
// one function, one behind the other, and what its workers have imported may take seconds.
//
// A pool serves all pipelines that ask for the same one meanwhile. When the last has gone, it is
// kept for kKeptNs.
//
// Threads:  any.
// Owns:     pools, as long as somebody uses them and that time.
// Limits:   kMaxKept pools that nobody uses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/python/pool_core.h"

namespace penstock::python {

inline constexpr uint64_t kKeptNs = 10'000'000'000;
inline constexpr size_t kMaxKept = 8;

// What pools have in common that may stand for each other: the function's file, what its workers
// are told, and their limits.
std::string PoolKey(const FunctionFile& function, const PoolOptions& options);

// What pools have in common whose workers load a function in the same way; "" where the daemon does
// not start them.
std::string LoadKey(const FunctionFile& function, const PoolOptions& options);

// The pool of that key, which is made where there is none. Whoever has it gives it back.
std::shared_ptr<PoolCore> TakePool(const std::string& key,
                                   const std::function<std::shared_ptr<PoolCore>()>& make);
// REQUIRES: no call of who gives it back is under way.
void GivePoolBack(const std::shared_ptr<PoolCore>& pool);

// The worker of a pool that lends, and that nobody uses any more; none where there is none. It
// waits a moment for one that is in use. `borrower` itself lends it none.
LentWorker BorrowWorker(const std::string& load_key, const PoolCore* borrower);

}  // namespace penstock::python
