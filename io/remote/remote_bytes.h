// The bytes of one object in one state: which of them are near, which are coming, and what is asked
// for ahead of who reads.
//
// Who reads from front to back gets blocks of up to 8 MiB, aligned in the object (the first 256 KiB
// alone, so that there is something to begin with, and of the first 8 MiB what has come before all
// of them have), and ever more of them ahead, as long as there is memory. Who wants single records
// gets these, to the page.
//
// Threads:  safe from any thread. Owned by a shared_ptr: what is coming keeps it.
// Owns:     its spans; the pool and the source of ranges must outlive it.
// Cost:     a lock and a look into a map for each read.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/http/range_fetcher.h"
#include "io/remote/span_pool.h"

namespace penstock {

class RemoteBytes : public std::enable_shared_from_this<RemoteBytes> {
 public:
  RemoteBytes(std::shared_ptr<RequestMaker> maker, SpanPool& pool, RangeSource& source);
  ~RemoteBytes();
  RemoteBytes(const RemoteBytes&) = delete;
  RemoteBytes& operator=(const RemoteBytes&) = delete;

  using Done = std::function<void(const absl::Status& status)>;
  // What is fetched counts there; may be null.
  using Counters = std::shared_ptr<FetchCounters>;

  // Whether Read() of these bytes has an answer, which may be an error.
  bool Has(uint64_t offset, uint64_t bytes) const;
  // All of `out`, or the end of the object; absent where some are not near. `counters`: of who
  // reads; may be null.
  std::optional<absl::StatusOr<size_t>> Read(uint64_t offset, absl::Span<uint8_t> out,
                                             const FetchCounters* counters = nullptr);
  // Read() without a copy: these bytes where they lie, with `padding` behind them that may be
  // loaded, as long as what is returned lives. Null where they do not lie in one block, are not
  // here, or SpanPool::MayLend() does not allow it.
  std::shared_ptr<const uint8_t> Lend(uint64_t offset, uint64_t bytes, uint64_t padding,
                                      const FetchCounters* counters = nullptr);
  // Asks for bytes; `done` is told when Read() has an answer, and they stay until they have been
  // read, or given up. `alone`: nobody reads on behind them. Returns the number of what was asked
  // for. `asker`: for GiveUpAll(); null: nobody.
  uint64_t Want(uint64_t offset, uint64_t bytes, bool alone, const Counters& counters, Done done,
                const void* asker = nullptr);
  // Who asked reads them no more: they may go, once they have come. Nothing where they have been
  // read.
  void GiveUp(uint64_t demand);
  // All that the asker has asked for.
  void GiveUpAll(const void* asker);
  // Somebody will read these, and perhaps on.
  void WillNeed(uint64_t offset, uint64_t bytes, const Counters& counters);

  const ObjectState& state() const { return maker_->state(); }
  const std::string& shown() const { return maker_->shown(); }

 private:
  friend class SpanPool;
  struct Waiter;
  struct Demand {
    uint64_t number;
    const void* asker;
    uint64_t offset;
    uint64_t end;
    // The spans that it holds, by offset and number: another one may take a span's place.
    std::vector<std::pair<uint64_t, uint64_t>> pinned;
  };
  using Spans = std::map<uint64_t, std::unique_ptr<Span>>;  // by offset; they do not overlap

  // All of these with the pool's mutex held.
  Spans::iterator First(uint64_t offset) const;
  uint64_t Clipped(uint64_t offset, uint64_t bytes) const;
  // Has what is not there of [offset, end) fetched, in blocks; adds the jobs. False where there was
  // no memory.
  bool Cover(uint64_t offset, uint64_t end, bool alone, bool is_wanted,
             std::vector<RangeJob>* jobs);
  void GoAhead(uint64_t offset, std::vector<RangeJob>* jobs);
  void Forget(Span* span);
  // Somebody has had these bytes, which are here. Whether he has read the object to its end.
  bool HasRead(uint64_t begin, uint64_t end);
  // Who asked for these bytes has looked at them: they may go.
  void Unpin(uint64_t begin, uint64_t end);
  std::list<Demand>::iterator Drop(std::list<Demand>::iterator demand);
  void Send(std::vector<RangeJob> jobs, const Counters& counters);
  void BeginsToRead();
  // Whether somebody read it from front to back.
  bool EndsReading();
  // Where the block that holds this place begins and ends.
  std::pair<uint64_t, uint64_t> BlockAround(uint64_t offset) const;

  void Reached(Span* span, uint64_t bytes);
  void Arrived(Span* span, absl::Status status);

  const std::shared_ptr<RequestMaker> maker_;
  SpanPool& pool_;
  RangeSource& source_;
  mutable Spans spans_;
  std::list<Demand> demands_;
  uint64_t demand_number_ = 0;
  uint64_t span_number_ = 0;
  uint64_t ahead_to_ = 0;
  uint64_t window_ = 0;  // 0: nobody has begun to read
  bool is_read_ = false;
};

}  // namespace penstock
