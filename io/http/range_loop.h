// The thread of a RangeFetcher: what is queued, what is under way, and when what is tried again.
//
// Threads:  Add() and stats() from any thread; everything else is the loop's own.
// Owns:     the thread and libcurl's handles.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "io/http/aimd.h"
#include "io/http/curl_handle.h"
#include "io/http/first_bytes.h"
#include "io/http/http_error.h"
#include "io/http/range_fetcher.h"
#include "io/http/retry_budget.h"

namespace penstock {

class RangeFetcher::Loop {
 public:
  explicit Loop(const Options& options);
  ~Loop();

  // Once, before all else: an error where there is no thread to be had.
  absl::Status Start();

  void Add(RangeJob job);
  FetcherStats stats() const;
  int limit() const { return static_cast<int>(limit_.load(std::memory_order_relaxed)); }

 private:
  struct Job;

  // One request for the rest of a job. Two of them write the same bytes to the same places.
  struct Attempt {
    CurlRequest kept;
    CurlHandle curl;
    Job* job = nullptr;  // which outlives it
    Loop* loop = nullptr;
    uint64_t begin = 0;  // where in the job it began
    uint64_t at = 0;     // and where it is
    int64_t begun_ns = 0;
    bool is_checked = false;
    bool has_first_byte = false;
    bool is_anew = false;  // after one that was refused
    absl::Status bad;      // what was found wrong with its head
    bool is_too_long = false;
  };

  struct Job {
    RangeJob what;
    uint64_t reached = 0;
    int64_t progress_ns = 0;  // of the last further byte, or of the first request
    int64_t next_try_ns = 0;
    int tries = 0;
    bool was_refused = false;
    bool tells_refusal = false;  // who makes the next request has not heard of it yet
    int attempts = 0;
    bool has_hedged = false;
    bool waits_for_keys = false;
    std::list<std::unique_ptr<Job>>::iterator place;
  };

  // Rung when credentials have come, which may be when the loop is gone.
  struct Bell {
    std::mutex mutex;
    CURLM* multi = nullptr;  // under mutex; null: nobody listens any more
    bool has_rung = false;   // under mutex
  };

  static size_t TakeBytes(char* data, size_t size, size_t count, void* user);

  void Run();
  void TakeNew();
  void StartWhatMay(int64_t now_ns);
  // False: nothing more can begin now.
  bool StartOne(int64_t now_ns);
  // False: libcurl has no memory.
  bool StartAttempt(Job* job, HttpRequest request, int64_t now_ns);
  void Hedge(int64_t now_ns);
  void Ended(Attempt* attempt, CURLcode code);
  void TryAgain(Job* job, const absl::Status& status, int64_t now_ns);
  void Finish(Job* job, absl::Status status);
  void DropAttempts(Job* job);
  int WaitMs(int64_t now_ns);
  CurlHandle TakeHandle();
  void TookFirstByte(const Attempt& attempt);

  const Options options_;
  CURLM* const multi_;
  mutable std::mutex mutex_;
  std::vector<RangeJob> new_;  // under mutex_
  bool is_over_ = false;       // under mutex_
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();

  // The loop's.
  std::list<std::unique_ptr<Job>> jobs_;  // all that are not done
  std::deque<Job*> wanted_;
  std::deque<Job*> ahead_;
  std::vector<Job*> later_;  // behind a pause, or waiting for credentials
  std::list<std::unique_ptr<Attempt>> attempts_;
  std::vector<CurlHandle> idle_;
  Aimd aimd_;
  int small_at_once_;  // of small ranges, where that is more; 0 behind a 429 or 503
  RetryBudget budget_;
  FirstBytes first_bytes_;
  int answers_ = 0;  // the first ones
  int64_t fastest_ns_ = INT64_MAX;
  std::mt19937 dice_;

  // For who looks.
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> requests_{0};
  std::atomic<uint64_t> retries_{0};
  std::atomic<uint64_t> hedges_{0};
  std::atomic<uint64_t> under_way_{0};
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> limit_{0};
  std::atomic<int64_t> first_byte_ns_{0};

  std::thread thread_;  // last: it uses all of them
};

}  // namespace penstock
