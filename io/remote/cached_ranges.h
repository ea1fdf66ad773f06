// Ranges out of a folder where they are there, else of the network, and then into the folder.
//
//     Fetch() ──► looked for on the disk ──► there: done(OK)
//                        │ not there
//                        └──► the network ──► done(OK), and written behind it; in front of it where more than kWritesMax wait for the disk
//
// Threads:  safe from any thread; `done` is called by a thread of its own or of the network's.
// Owns:     its threads and the cache; the network must outlive it.
// Limits:   where the system gives no threads, all ranges come by the network; objects with a
//           strong tag or a generation are kept, others are not: only those tell one state from all
//           others.
// Cost:     kWritesMax blocks of memory beyond those of the pool.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/http/range_fetcher.h"
#include "io/remote/disk_cache.h"

namespace penstock {

// What the cache knows an object's state by; "" where it is not told from others for certain, so
// that nothing is kept.
std::string CacheName(const std::string& address, const ObjectState& state);
std::string CacheName(const RequestMaker& maker);

class CachedRanges final : public RangeSource {
 public:
  static constexpr size_t kWritesMax = 8;

  CachedRanges(std::unique_ptr<DiskCache> cache, RangeSource& network);
  // What is looked for is Cancelled; what is to be written is written.
  ~CachedRanges() override;

  void Fetch(RangeJob job) override;
  int AtOnce() const override;
  void Passed(const RequestMaker& maker, const FetchCounters* counters) override;

  // As long as what is returned lives, which must end before this does, a plan of the pipeline
  // whose counters these are (null: of nobody's) needs these objects: their room goes to no others
  // that are needed later. `names`: of CacheName(); those without one are passed over.
  std::shared_ptr<void> Need(std::shared_ptr<const FetchCounters> counters,
                             std::vector<std::string> names);

 private:
  struct Shared;

  static void Run(const std::shared_ptr<Shared>& shared_by_all);

  const std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace penstock
