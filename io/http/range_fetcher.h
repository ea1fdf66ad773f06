// Ranges of objects into memory, many at a time: one thread with libcurl's multi interface.
//
//     Fetch() ──► queue, wanted first ──► under way (as many as Aimd allows) ──► all bytes there: done(OK)
//                    ▲                        │ cut, stalled, 5xx: from the byte that was reached, after a pause
//                    └────────────────────────┘ no first byte for 3 × the median: a second one besides (5 % at most)
//
// Threads:  safe from any thread; `done` and what makes requests are called on the fetcher's own.
//           They are short. Where the system gives no thread, `done` is told so on the caller's.
// Owns:     its thread, from the first Fetch() on, connections and what is under way; each RangeJob
//           keeps its memory alive.
// Limits:   4 to 256 requests under way, retries by a budget, kGiveUpNs without a further byte,
//           answers that fit what was asked for.
// Cost:     one copy of bytes that are in the cache; a handle of libcurl for each request under
//           way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/fetch_numbers.h"
#include "io/http/http_message.h"

namespace penstock {

// What of an object all its ranges must be of.
struct ObjectState {
  uint64_t size = 0;
  std::string etag;           // as the server gives it, quotes included; "": none
  std::string last_modified;  // likewise
  std::string generation;     // of GCS; "": none
};

// Makes the requests of one object.
class RequestMaker {
 public:
  virtual ~RequestMaker() = default;
  // The request for `bytes` from `offset` on, signed; absent while credentials come: `ready` is
  // called once from any thread then. `refused`: the last one was, with 401 or 403.
  virtual std::optional<absl::StatusOr<HttpRequest>> Make(uint64_t offset, uint64_t bytes,
                                                          bool refused,
                                                          std::function<void()> ready) = 0;
  // A redirect says where to ask instead: true where it is gone on with.
  virtual bool TakeRedirect(const HttpResponse& response) { return false; }
  virtual const ObjectState& state() const = 0;
  // As it may be shown.
  virtual const std::string& shown() const = 0;
  // Whole: no two objects share one.
  virtual const std::string& address() const { return shown(); }
};

struct RangeJob {
  std::shared_ptr<RequestMaker> maker;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // not 0, and within the object
  std::shared_ptr<uint8_t> to;
  std::function<void(absl::Status status)> done;
  // May be empty: so many bytes of the beginning are there, before all of them are, and will not be
  // written again. Called as `done` is, and before.
  std::function<void(uint64_t bytes)> reached;
  bool is_wanted = false;                   // somebody waits for it
  std::shared_ptr<FetchCounters> counters;  // of who asked first; may be null
};

// Where ranges come from.
class RangeSource {
 public:
  static constexpr int kAtOnceMax = 256;

  virtual ~RangeSource() = default;
  // From any thread; `done` is called once, from another one, or before this returns.
  virtual void Fetch(RangeJob job) = 0;
  // A pipeline, whose counters these are, has read the object from its beginning to its end.
  virtual void Passed(const RequestMaker& maker, const FetchCounters* counters) {}
  // How many ranges at a time bring more bytes than fewer would, as far as is known. From any
  // thread.
  virtual int AtOnce() const { return kAtOnceMax; }
};

struct FetcherStats {
  uint64_t bytes = 0;
  uint64_t requests = 0;
  uint64_t retries = 0;
  uint64_t hedges = 0;
  uint64_t under_way = 0;
  uint64_t queued = 0;
  uint64_t limit = 0;
  int64_t first_byte_ns = 0;  // the median of the last ones; 0: not known
};

class RangeFetcher final : public RangeSource {
 public:
  // Of a server nearby so few requests bring all that there is: more would only fill memory ahead.
  static constexpr int kFirstAtOnce = 4;

  struct Options {
    int most_under_way = 256;
    int64_t give_up_ns = 120'000'000'000;
    uint32_t seed = 0;  // of pauses; 0: anything
  };
  RangeFetcher() : RangeFetcher(Options()) {}
  explicit RangeFetcher(const Options& options);
  // Ends all that is under way: Cancelled.
  ~RangeFetcher() override;
  RangeFetcher(const RangeFetcher&) = delete;
  RangeFetcher& operator=(const RangeFetcher&) = delete;

  void Fetch(RangeJob job) override;
  int AtOnce() const override;
  FetcherStats stats() const;

 private:
  class Loop;

  const Options options_;
  mutable std::mutex mutex_;
  std::unique_ptr<Loop> loop_;  // under mutex_; null until something is fetched
};

}  // namespace penstock
