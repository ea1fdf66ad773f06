// The worker processes of one Python function, and what waits for them.
//
//     Begin()   cuts a block into sheets, as many rows as take about three milliseconds
//     Deal()    lays sheets on free trays: whoever has one copies it there and tells the worker
//     the pool's thread   starts workers, takes what they have made, ends calls, and sees deaths,
//                         rows that take too long and calls that nobody wants any more
//
// A row whose worker dies is tried once more, alone, by another one; then it is that row's failure
// (DataLoss). Six deaths within a minute, and no row made in between, are the function's: all calls
// fail (FailedPrecondition), as where it cannot be loaded. So do three deaths one after the other
// while the function is loaded, however long each has taken, where no worker has loaded it.
//
// Threads:  Begin() from any; the rest on the pool's own, which begins with the first call.
// Owns:     the workers; a call's rows between Begin() and its end.
// Limits:   `workers` processes, kTrays sheets each; calls wait in a queue without one, as they are
//           blocks of steps and sections, which have theirs.
// Cost:     a copy of what goes in and one of what comes out; for each sheet two messages and a
//           wake-up of either side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/completion.h"
#include "server/engine/order/away_work_op.h"
#include "server/python/function_file.h"
#include "server/python/sheet_form.h"

namespace penstock::python {

struct PoolOptions {
  std::string name = {};           // of the function, in messages
  std::string configuration = {};  // JSON for the workers
  int workers = 1;
  // Whether that is the most, of which as many are there as are needed (worker_count.h).
  bool chooses = false;
  int64_t timeout_ms = 0;  // of one row; 0: none
  // Where a row has a limit, that of loading the function, unless a row's is longer: it may import
  // what takes long.
  int64_t load_timeout_ms = 120'000;
  // And that of what a worker does between rows, which is its own affair: it loads what draws, and
  // may have no processor meanwhile.
  int64_t between_rows_ms = 60'000;
  int64_t max_rows_per_worker = 0;  // behind them it is replaced; 0: never
  // Whether workers stay for the next pipeline of the same function, for a while (kept_pools.h).
  bool outlives = false;
  // Whether its worker, when nobody uses the pool any more, goes to the next pool of that function,
  // whatever that one is told: its pipeline only finds out what a function returns, this one or one
  // behind it, and another pipeline of the same functions follows.
  bool lends = false;
  int64_t threads = 0;  // of a worker; 0: one, or what the environment says
};

class PoolCore;

class Pool {
 public:
  // `in`: of the columns that Begin() is given; `out`: of those that it sets.
  Pool(FunctionFile function, SheetForm in, SheetForm out, PoolOptions options);
  // Kills the workers, unless they outlive it. REQUIRES: no call is under way.
  ~Pool();

  void Begin(AwayRows* rows, Completion end);

  // As AwayWorkOp has them. Of a pool that pipelines share: what all of them had done.
  AwayWorkers Workers() const;
  std::vector<AwaySpan> SpansSince(uint64_t monotonic_ns) const;

 private:
  const bool outlives_;
  const std::shared_ptr<PoolCore> core_;
};

}  // namespace penstock::python
