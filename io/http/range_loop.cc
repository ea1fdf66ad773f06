#include "io/http/range_loop.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "base/nanoseconds.h"
#include "base/new_thread.h"
#include "io/http/range_checks.h"

namespace penstock {
namespace {

// For the process, and for who asked.
void Count(std::atomic<uint64_t>& all, std::atomic<uint64_t> FetchCounters::*of_one,
           const RangeJob& job, uint64_t number = 1) {
  all.fetch_add(number, std::memory_order_relaxed);
  if (job.counters != nullptr)
    ((*job.counters).*of_one).fetch_add(number, std::memory_order_relaxed);
}

// Connections that are kept when nothing is under way.
constexpr long kKeptConnections = 256;
constexpr int kLongestWaitMs = 1'000;
// What 100 ms to the first byte and a gigabyte a second ask for, in blocks of 8 MiB and a margin.
constexpr int kFirstAtOnceFar = 32;
// A server is far whose first byte comes no sooner than this, behind the request on an open
// connection. The fastest of the first answers counts, since busy processors delay most of them.
constexpr int64_t kFarNs = 5 * kNsPerMs;
constexpr int kFirstAnswers = 16;
// Ranges that take the wait for their first byte and little besides, such as the ends of files: as
// many as kFirstAtOnceFar are under way from the beginning on.
constexpr uint64_t kSmallBytes = uint64_t{256} << 10;

}  // namespace

RangeFetcher::Loop::Loop(const Options& options)
    : options_(options),
      multi_((InitCurl(), curl_multi_init())),
      aimd_(kFirstAtOnce, options.most_under_way),
      small_at_once_(std::min(kFirstAtOnceFar, options.most_under_way)),
      dice_(options.seed != 0 ? options.seed : std::random_device{}()) {
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kKeptConnections);
  bell_->multi = multi_;
  limit_ = static_cast<uint64_t>(aimd_.limit());
}

absl::Status RangeFetcher::Loop::Start() {
  absl::StatusOr<std::thread> thread = NewThread("fetching", [this] { Run(); });
  if (thread.ok()) thread_ = *std::move(thread);
  return thread.status();
}

RangeFetcher::Loop::~Loop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  curl_multi_wakeup(multi_);
  if (thread_.joinable()) thread_.join();
  {
    std::lock_guard<std::mutex> lock(bell_->mutex);
    bell_->multi = nullptr;
  }
  curl_multi_cleanup(multi_);
}

void RangeFetcher::Loop::Add(RangeJob job) {
  queued_.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    new_.push_back(std::move(job));
  }
  curl_multi_wakeup(multi_);
}

FetcherStats RangeFetcher::Loop::stats() const {
  FetcherStats stats;
  stats.bytes = bytes_.load(std::memory_order_relaxed);
  stats.requests = requests_.load(std::memory_order_relaxed);
  stats.retries = retries_.load(std::memory_order_relaxed);
  stats.hedges = hedges_.load(std::memory_order_relaxed);
  stats.under_way = under_way_.load(std::memory_order_relaxed);
  stats.queued = queued_.load(std::memory_order_relaxed);
  stats.limit = limit_.load(std::memory_order_relaxed);
  stats.first_byte_ns = first_byte_ns_.load(std::memory_order_relaxed);
  return stats;
}

size_t RangeFetcher::Loop::TakeBytes(char* data, size_t size, size_t count, void* user) {
  auto* const attempt = static_cast<Attempt*>(user);
  const size_t bytes = size * count;
  Job* const job = attempt->job;
  if (!attempt->is_checked) {
    attempt->is_checked = true;
    long status = 0;
    curl_easy_getinfo(attempt->curl.get(), CURLINFO_RESPONSE_CODE, &status);
    attempt->kept.response.status = static_cast<int>(status);
    if (status >= 200 && status < 300) {
      attempt->bad = CheckRange(attempt->kept.response, job->what.maker->state(),
                                job->what.offset + attempt->begin, job->what.bytes - attempt->begin,
                                job->what.maker->shown());
      if (!attempt->bad.ok()) return 0;
    }
  }
  if (attempt->kept.response.status >= 300) {
    // The beginning of an error's body names its code.
    std::string& body = attempt->kept.response.body;
    if (body.size() < 4096) body.append(data, std::min<size_t>(bytes, 4096));
    return bytes;
  }
  if (!std::exchange(attempt->has_first_byte, true)) attempt->loop->TookFirstByte(*attempt);
  if (bytes > job->what.bytes - attempt->at) {
    attempt->is_too_long = true;
    return 0;
  }
  // What another attempt has brought is not written again: somebody may look at it.
  const uint64_t there =
      std::min<uint64_t>(bytes, job->reached - std::min(job->reached, attempt->at));
  std::memcpy(job->what.to.get() + attempt->at + there, data + there, bytes - there);
  attempt->at += bytes;
  Count(attempt->loop->bytes_, &FetchCounters::bytes, job->what, bytes);
  if (attempt->at > job->reached) {
    job->reached = attempt->at;
    job->progress_ns = MonotonicNs();
    // Of the last ones `done` tells, so that who has read all of it finds it done.
    if (job->what.reached && job->reached < job->what.bytes) job->what.reached(job->reached);
  }
  return bytes;
}

void RangeFetcher::Loop::TookFirstByte(const Attempt& attempt) {
  const int64_t took_ns = MonotonicNs() - attempt.begun_ns;
  first_bytes_.Took(took_ns);
  first_byte_ns_.store(first_bytes_.MedianNs(), std::memory_order_relaxed);
  if (answers_ == kFirstAnswers) return;
  // Without what a new connection took.
  curl_off_t connected_us = 0;
  curl_easy_getinfo(attempt.curl.get(), CURLINFO_PRETRANSFER_TIME_T, &connected_us);
  fastest_ns_ = std::min(fastest_ns_, took_ns - int64_t{connected_us} * 1000);
  if (++answers_ == kFirstAnswers && fastest_ns_ >= kFarNs) aimd_.Raise(kFirstAtOnceFar);
}

CurlHandle RangeFetcher::Loop::TakeHandle() {
  if (idle_.empty()) return CurlHandle(curl_easy_init());  // null where there is no memory
  CurlHandle curl = std::move(idle_.back());
  idle_.pop_back();
  curl_easy_reset(curl.get());
  return curl;
}

void RangeFetcher::Loop::TakeNew() {
  std::vector<RangeJob> added;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    added.swap(new_);
  }
  for (RangeJob& what : added) {
    jobs_.push_back(std::make_unique<Job>());
    Job* const job = jobs_.back().get();
    job->place = std::prev(jobs_.end());
    job->what = std::move(what);
    (job->what.is_wanted ? wanted_ : ahead_).push_back(job);
  }
}

void RangeFetcher::Loop::StartWhatMay(int64_t now_ns) {
  bool keys_came = false;
  {
    std::lock_guard<std::mutex> lock(bell_->mutex);
    keys_came = std::exchange(bell_->has_rung, false);
  }
  for (size_t i = 0; i < later_.size();) {
    Job* const job = later_[i];
    const bool is_due = job->waits_for_keys ? keys_came : job->next_try_ns <= now_ns;
    if (!is_due || (!job->waits_for_keys && job->tries > 0 && !budget_.Take(now_ns))) {
      ++i;
      continue;
    }
    job->waits_for_keys = false;
    // What was begun goes first.
    wanted_.push_front(job);
    later_[i] = later_.back();
    later_.pop_back();
  }
  while (StartOne(now_ns)) continue;
  limit_.store(aimd_.limit(), std::memory_order_relaxed);
  queued_.store(wanted_.size() + ahead_.size() + later_.size(), std::memory_order_relaxed);
  under_way_.store(attempts_.size(), std::memory_order_relaxed);
}

bool RangeFetcher::Loop::StartOne(int64_t now_ns) {
  std::deque<Job*>& queue = wanted_.empty() ? ahead_ : wanted_;
  if (queue.empty()) return false;
  Job* const job = queue.front();
  const bool is_small = job->what.bytes <= kSmallBytes;
  const int limit = is_small ? std::max(aimd_.limit(), small_at_once_) : aimd_.limit();
  if (static_cast<int>(attempts_.size()) >= limit) return false;
  queue.pop_front();
  std::optional<absl::StatusOr<HttpRequest>> request =
      job->what.maker->Make(job->what.offset + job->reached, job->what.bytes - job->reached,
                            std::exchange(job->tells_refusal, false), [bell = bell_] {
                              std::lock_guard<std::mutex> lock(bell->mutex);
                              bell->has_rung = true;
                              if (bell->multi != nullptr) curl_multi_wakeup(bell->multi);
                            });
  if (!request) {
    job->waits_for_keys = true;
    later_.push_back(job);
  } else if (!request->ok()) {
    Finish(job, request->status());
  } else if (!StartAttempt(job, **std::move(request), now_ns)) {
    Finish(job, absl::ResourceExhaustedError(absl::StrCat("libcurl has no memory for a request (",
                                                          job->what.maker->shown(), ")")));
  }
  return true;
}

bool RangeFetcher::Loop::StartAttempt(Job* job, HttpRequest request, int64_t now_ns) {
  CurlHandle curl = TakeHandle();
  if (curl == nullptr) return false;
  attempts_.push_back(std::make_unique<Attempt>());
  Attempt* const attempt = attempts_.back().get();
  attempt->job = job;
  attempt->loop = this;
  attempt->begin = attempt->at = job->reached;
  attempt->begun_ns = now_ns;
  attempt->is_anew = job->was_refused;
  attempt->curl = std::move(curl);
  attempt->kept.request = std::move(request);
  // Only stalls end it.
  attempt->kept.request.timeout_ms = 0;
  Prepare(attempt->curl.get(), &attempt->kept);
  curl_easy_setopt(attempt->curl.get(), CURLOPT_WRITEFUNCTION, TakeBytes);
  curl_easy_setopt(attempt->curl.get(), CURLOPT_WRITEDATA, attempt);
  curl_easy_setopt(attempt->curl.get(), CURLOPT_PRIVATE, attempt);
  // What was waited for in the queue, or for credentials, is not the server's.
  if (job->attempts == 0 && job->tries == 0) job->progress_ns = now_ns;
  ++job->attempts;
  Count(requests_, &FetchCounters::requests, job->what);
  curl_multi_add_handle(multi_, attempt->curl.get());
  return true;
}

void RangeFetcher::Loop::Hedge(int64_t now_ns) {
  const int64_t after_ns = first_bytes_.HedgeAfterNs();
  if (after_ns == 0) return;
  std::vector<Job*> late;
  for (const std::unique_ptr<Attempt>& attempt : attempts_) {
    if (attempt->has_first_byte || attempt->job->has_hedged) continue;
    if (now_ns - attempt->begun_ns >= after_ns) late.push_back(attempt->job);
  }
  for (Job* const job : late) {
    if (!FirstBytes::MayHedge(hedges_.load(), requests_.load())) return;
    std::optional<absl::StatusOr<HttpRequest>> request = job->what.maker->Make(
        job->what.offset + job->reached, job->what.bytes - job->reached, false, [] {});
    job->has_hedged = true;
    if (!request || !request->ok()) continue;
    if (StartAttempt(job, **std::move(request), now_ns))
      Count(hedges_, &FetchCounters::hedges, job->what);
  }
}

void RangeFetcher::Loop::DropAttempts(Job* job) {
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    if ((*it)->job != job) {
      ++it;
      continue;
    }
    // A connection in the middle of an answer is of no use.
    curl_multi_remove_handle(multi_, (*it)->curl.get());
    idle_.push_back(std::move((*it)->curl));
    it = attempts_.erase(it);
  }
}

void RangeFetcher::Loop::Finish(Job* job, absl::Status status) {
  DropAttempts(job);
  const std::unique_ptr<Job> kept = std::move(*job->place);
  jobs_.erase(job->place);
  kept->what.done(std::move(status));
}

void RangeFetcher::Loop::TryAgain(Job* job, const absl::Status& status, int64_t now_ns) {
  if (now_ns - job->progress_ns > options_.give_up_ns) {
    return Finish(job,
                  absl::Status(status.code(), absl::StrCat(status.message(), "; given up after ",
                                                           job->tries, " further tries")));
  }
  job->next_try_ns = now_ns + RetryPauseNs(job->tries++, dice_);
  job->has_hedged = false;
  Count(retries_, &FetchCounters::retries, job->what);
  later_.push_back(job);
}

void RangeFetcher::Loop::Ended(Attempt* attempt, CURLcode code) {
  Job* const job = attempt->job;
  const int64_t now_ns = MonotonicNs();
  const bool was_full = static_cast<int>(attempts_.size()) >= aimd_.limit();
  // An answer without a body has not been looked at yet.
  long answered = 0;
  curl_easy_getinfo(attempt->curl.get(), CURLINFO_RESPONSE_CODE, &answered);
  attempt->kept.response.status = static_cast<int>(answered);
  curl_multi_remove_handle(multi_, attempt->curl.get());
  idle_.push_back(std::move(attempt->curl));
  const auto place =
      std::find_if(attempts_.begin(), attempts_.end(),
                   [attempt](const auto& candidate) { return candidate.get() == attempt; });
  const std::unique_ptr<Attempt> kept = std::move(*place);
  attempts_.erase(place);
  --job->attempts;
  const std::string& shown = job->what.maker->shown();
  const bool is_whole = job->reached == job->what.bytes;
  // What a server leaves out behind the last byte, such as the end of its chunks, is no matter.
  if (is_whole && (code == CURLE_OK || (kept->bad.ok() && !kept->is_too_long))) {
    aimd_.Arrived(kept->at - kept->begin, now_ns, was_full);
    budget_.Good();
    return Finish(job, absl::OkStatus());
  }
  if (!kept->bad.ok()) return Finish(job, kept->bad);
  if (kept->is_too_long) {
    return Finish(job, absl::DataLossError(
                           absl::StrCat("the server sends more bytes than it said (", shown, ")")));
  }
  Outcome outcome = JudgeTransfer(code, kept->kept, shown);
  if (outcome.verdict == Verdict::kGood)
    outcome = JudgeStatus(kept->kept.response.status, kept->kept.response, shown);
  switch (outcome.verdict) {
    case Verdict::kGood:
      // Fewer bytes than the head said, where libcurl did not see it.
      outcome.status = absl::UnavailableError(absl::StrCat("the answer was cut (", shown, ")"));
      break;
    case Verdict::kSlower:
      aimd_.TooMuch(now_ns);
      small_at_once_ = 0;
      break;
    case Verdict::kAgain:
      break;
    case Verdict::kRefused:
      if (kept->is_anew) return Finish(job, outcome.status);
      // Another one that is under way was made with the same credentials.
      job->was_refused = job->tells_refusal = true;
      if (job->attempts == 0) wanted_.push_front(job);
      return;
    case Verdict::kElsewhere:
      if (job->tries++ > 5 || !job->what.maker->TakeRedirect(kept->kept.response))
        return Finish(job, outcome.status);
      if (job->attempts == 0) wanted_.push_front(job);
      return;
    case Verdict::kFinal:
      return Finish(job, outcome.status);
  }
  // The other one may still bring them.
  if (job->attempts > 0) return;
  TryAgain(job, outcome.status, now_ns);
}

int RangeFetcher::Loop::WaitMs(int64_t now_ns) {
  int64_t wait_ns = kLongestWaitMs * kNsPerMs;
  for (const Job* const job : later_) {
    if (job->waits_for_keys) continue;
    // At least 10 ms: a budget that is used up is looked at again.
    wait_ns = std::min(wait_ns, std::max<int64_t>(job->next_try_ns - now_ns, 10 * kNsPerMs));
  }
  if (const int64_t after_ns = first_bytes_.HedgeAfterNs(); after_ns != 0) {
    for (const std::unique_ptr<Attempt>& attempt : attempts_) {
      if (attempt->has_first_byte || attempt->job->has_hedged) continue;
      wait_ns =
          std::min(wait_ns, std::max<int64_t>(attempt->begun_ns + after_ns - now_ns, 5 * kNsPerMs));
    }
  }
  return static_cast<int>(wait_ns / kNsPerMs);
}

void RangeFetcher::Loop::Run() {
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (is_over_) break;
    }
    TakeNew();
    int64_t now_ns = MonotonicNs();
    StartWhatMay(now_ns);
    Hedge(now_ns);
    int running = 0;
    curl_multi_perform(multi_, &running);
    int left = 0;
    bool has_ended = false;
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Attempt* attempt = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &attempt);
      has_ended = true;
      Ended(attempt, message->data.result);
    }
    if (has_ended) continue;
    now_ns = MonotonicNs();
    curl_multi_poll(multi_, nullptr, 0, WaitMs(now_ns), nullptr);
  }
  while (!jobs_.empty())
    Finish(jobs_.front().get(), absl::CancelledError("nothing is fetched any more"));
  TakeNew();
  while (!jobs_.empty())
    Finish(jobs_.front().get(), absl::CancelledError("nothing is fetched any more"));
  attempts_.clear();
  idle_.clear();
}

}  // namespace penstock
