#include "io/remote/remote_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <utility>

#include "io/remote/disk_cache.h"

namespace penstock {
namespace {

// What a cache folder keeps whole pages of.
constexpr uint64_t kPageBytes = DiskCache::kPageBytes;
// What a job of somebody who waits is cut into where nobody reads on.
constexpr uint64_t kAloneBytes = SpanPool::kBlockBytes;

}  // namespace

// Who waits for several spans.
struct RemoteBytes::Waiter {
  std::atomic<int> left{1};
  std::mutex mutex;
  absl::Status status;
  Done done;

  void OneLess(const absl::Status& one) {
    if (!one.ok()) {
      std::lock_guard<std::mutex> lock(mutex);
      status.Update(one);
    }
    if (left.fetch_sub(1) == 1) done(status);
  }
};

RemoteBytes::RemoteBytes(std::shared_ptr<RequestMaker> maker, SpanPool& pool, RangeSource& source)
    : maker_(std::move(maker)), pool_(pool), source_(source) {}

RemoteBytes::~RemoteBytes() {
  std::lock_guard<std::mutex> lock(pool_.mutex());
  for (auto& [offset, span] : spans_) pool_.Remove(span.get());
  EndsReading();
}

uint64_t RemoteBytes::Clipped(uint64_t offset, uint64_t bytes) const {
  const uint64_t size = state().size;
  return offset >= size ? offset : offset + std::min(bytes, size - offset);
}

RemoteBytes::Spans::iterator RemoteBytes::First(uint64_t offset) const {
  auto next = spans_.upper_bound(offset);
  if (next != spans_.begin() && std::prev(next)->second->end() > offset) --next;
  return next;
}

bool RemoteBytes::Has(uint64_t offset, uint64_t bytes) const {
  std::lock_guard<std::mutex> lock(pool_.mutex());
  const uint64_t end = Clipped(offset, bytes);
  for (auto it = First(offset); offset < end; ++it) {
    if (it == spans_.end() || it->second->offset > offset) return false;
    if (it->second->state == Span::State::kFailed) return true;
    if (!it->second->Has(end)) return false;
    offset = it->second->end();
  }
  return true;
}

std::optional<absl::StatusOr<size_t>> RemoteBytes::Read(uint64_t offset, absl::Span<uint8_t> out,
                                                        const FetchCounters* counters) {
  struct Piece {
    std::shared_ptr<uint8_t> memory;
    uint64_t from = 0;
    uint64_t bytes = 0;
  };
  std::vector<Piece> pieces;
  const uint64_t begin = offset;
  bool is_passed = false;
  {
    std::lock_guard<std::mutex> lock(pool_.mutex());
    const uint64_t end = Clipped(offset, out.size());
    for (auto it = First(offset); offset < end; ++it) {
      if (it == spans_.end() || it->second->offset > offset) return std::nullopt;
      Span* const span = it->second.get();
      if (span->state == Span::State::kFailed) {
        // Told once: who asks again has it tried again.
        absl::Status error = span->error;
        Unpin(begin, end);
        for (auto failed = First(begin); failed != spans_.end() && failed->first < end;) {
          Span* const one = (failed++)->second.get();
          if (one->state == Span::State::kFailed) Forget(one);
        }
        return absl::StatusOr<size_t>(std::move(error));
      }
      if (!span->Has(end)) return std::nullopt;
      const uint64_t to = std::min(end, span->end());
      pieces.push_back({span->memory, offset - span->offset, to - offset});
      offset = to;
    }
    is_passed = HasRead(begin, end);
  }
  if (is_passed) source_.Passed(*maker_, counters);
  uint8_t* to = out.data();
  for (const Piece& piece : pieces) {
    std::memcpy(to, piece.memory.get() + piece.from, piece.bytes);
    to += piece.bytes;
  }
  return absl::StatusOr<size_t>(static_cast<size_t>(to - out.data()));
}

std::shared_ptr<const uint8_t> RemoteBytes::Lend(uint64_t offset, uint64_t bytes, uint64_t padding,
                                                 const FetchCounters* counters) {
  std::shared_ptr<const uint8_t> lent;
  bool is_passed = false;
  {
    std::lock_guard<std::mutex> lock(pool_.mutex());
    const uint64_t end = offset + bytes;
    const auto it = First(offset);
    if (it == spans_.end() || it->second->offset > offset) return nullptr;
    const Span& span = *it->second;
    // What is small is copied sooner than it is counted.
    if (!span.Has(end) || span.bytes < SpanPool::kLentLeast) return nullptr;
    if (end + padding > span.end() || !pool_.MayLend()) return nullptr;
    lent = {span.memory, span.memory.get() + (offset - span.offset)};
    is_passed = HasRead(offset, end);
  }
  if (is_passed) source_.Passed(*maker_, counters);
  return lent;
}

bool RemoteBytes::HasRead(uint64_t begin, uint64_t end) {
  Unpin(begin, end);
  for (auto it = First(begin); it != spans_.end() && it->first < end; ++it)
    pool_.Touch(it->second.get(), it->second->end() <= end);
  return end == state().size && EndsReading();
}

void RemoteBytes::Unpin(uint64_t begin, uint64_t end) {
  for (auto demand = demands_.begin(); demand != demands_.end();) {
    const bool is_other = demand->end <= begin || demand->offset >= end;
    demand = is_other ? std::next(demand) : Drop(demand);
  }
}

std::list<RemoteBytes::Demand>::iterator RemoteBytes::Drop(std::list<Demand>::iterator demand) {
  for (const auto& [offset, number] : demand->pinned) {
    const auto it = spans_.find(offset);
    if (it == spans_.end() || it->second->number != number) continue;
    Span* const span = it->second.get();
    --span->pins;
    pool_.Add(span);
    // Nobody is left who would be told.
    if (span->pins == 0 && span->state == Span::State::kFailed) Forget(span);
  }
  return demands_.erase(demand);
}

void RemoteBytes::GiveUp(uint64_t demand) {
  std::lock_guard<std::mutex> lock(pool_.mutex());
  for (auto it = demands_.begin(); it != demands_.end(); ++it) {
    if (it->number != demand) continue;
    Drop(it);
    return;
  }
}

void RemoteBytes::GiveUpAll(const void* asker) {
  std::lock_guard<std::mutex> lock(pool_.mutex());
  for (auto it = demands_.begin(); it != demands_.end();)
    it = it->asker == asker ? Drop(it) : std::next(it);
}

void RemoteBytes::Send(std::vector<RangeJob> jobs, const Counters& counters) {
  for (RangeJob& job : jobs) {
    job.counters = counters;
    source_.Fetch(std::move(job));
  }
}

std::pair<uint64_t, uint64_t> RemoteBytes::BlockAround(uint64_t offset) const {
  const uint64_t block = pool_.block_bytes();
  if (offset < SpanPool::kFirstBytes) return {0, SpanPool::kFirstBytes};
  const uint64_t begin = offset / block * block;
  return {std::max(begin, SpanPool::kFirstBytes), begin + block};
}

bool RemoteBytes::Cover(uint64_t offset, uint64_t end, bool alone, bool is_wanted,
                        std::vector<RangeJob>* jobs) {
  const uint64_t size = state().size;
  if (alone) {
    offset = offset / kPageBytes * kPageBytes;
    end = std::min(size, (end + kPageBytes - 1) / kPageBytes * kPageBytes);
  }
  while (offset < end) {
    const auto it = First(offset);
    if (it != spans_.end() && it->second->offset <= offset) {
      offset = it->second->end();
      continue;
    }
    // Blocks from a page on, so that they are where they were the last time; but over nothing that
    // is there.
    const uint64_t next = it == spans_.end() ? size : it->second->offset;
    uint64_t begin = offset;
    uint64_t stop = std::min({offset + kAloneBytes, end, next});
    if (!alone) {
      const auto [block_begin, block_end] = BlockAround(offset);
      begin = block_begin;
      if (it != spans_.begin()) begin = std::max(begin, std::prev(it)->second->end());
      stop = std::min({block_end, size, next});
    }
    std::shared_ptr<uint8_t> memory = pool_.Take(stop - begin, is_wanted);
    if (memory == nullptr) return false;
    auto span = std::make_unique<Span>();
    Span* const made = span.get();
    made->owner = this;
    made->number = ++span_number_;
    made->offset = begin;
    made->bytes = stop - begin;
    made->memory = memory;
    made->is_in_order = !alone;
    spans_.emplace(begin, std::move(span));
    RangeJob job;
    job.maker = maker_;
    job.offset = begin;
    job.bytes = stop - begin;
    job.to = std::move(memory);
    job.is_wanted = is_wanted;
    job.done = [self = shared_from_this(), made](absl::Status status) {
      self->Arrived(made, std::move(status));
    };
    // Behind the first block it would be told often, and is mostly asked for ahead.
    if (!alone && begin < SpanPool::kBlockBytes) {
      job.reached = [self = shared_from_this(), made](uint64_t count) {
        self->Reached(made, count);
      };
    }
    jobs->push_back(std::move(job));
    offset = stop;
  }
  return true;
}

void RemoteBytes::Reached(Span* span, uint64_t bytes) {
  std::vector<Span::Waiting> waiting;
  {
    std::lock_guard<std::mutex> lock(pool_.mutex());
    span->reached = bytes;
    const auto here =
        std::partition(span->waiting.begin(), span->waiting.end(),
                       [bytes](const Span::Waiting& one) { return one.until > bytes; });
    std::move(here, span->waiting.end(), std::back_inserter(waiting));
    span->waiting.erase(here, span->waiting.end());
  }
  for (const Span::Waiting& one : waiting) one.tell(absl::OkStatus());
}

void RemoteBytes::Arrived(Span* span, absl::Status status) {
  std::vector<Span::Waiting> waiting;
  {
    std::lock_guard<std::mutex> lock(pool_.mutex());
    span->state = status.ok() ? Span::State::kHere : Span::State::kFailed;
    span->error = status;
    waiting.swap(span->waiting);
    if (status.ok()) {
      pool_.Add(span);
    } else if (span->pins == 0) {
      // Nobody has asked for it, or he has given it up: who does has it tried again.
      Forget(span);
    }
  }
  for (const Span::Waiting& one : waiting) one.tell(status);
}

void RemoteBytes::BeginsToRead() {
  if (!std::exchange(is_read_, true)) pool_.Reads(1);
}

bool RemoteBytes::EndsReading() {
  if (!std::exchange(is_read_, false)) return false;
  pool_.Reads(-1);
  ahead_to_ = 0;
  window_ = 0;
  return true;
}

void RemoteBytes::GoAhead(uint64_t offset, std::vector<RangeJob>* jobs) {
  BeginsToRead();
  const int at_once = source_.AtOnce();
  const uint64_t farthest = pool_.ahead_bytes(at_once);
  if (window_ == 0) window_ = pool_.first_window(at_once);
  // A jump begins anew.
  if (offset > ahead_to_ || ahead_to_ > offset + 2 * std::max(farthest, pool_.farthest_window())) {
    ahead_to_ = offset;
    window_ = SpanPool::kFirstBytes;
  }
  const uint64_t window = std::min(window_, farthest);
  const uint64_t target = std::min(state().size, offset + window);
  // By the block: who waited until half of the window is read would have half as many under way.
  const uint64_t step = std::min(window / 2, pool_.block_bytes());
  if (target <= ahead_to_ || (target - ahead_to_ < step && target < state().size)) return;
  if (!Cover(ahead_to_, target, /*alone=*/false, /*is_wanted=*/false, jobs)) return;
  ahead_to_ = target;
  const auto last = First(target == 0 ? 0 : target - 1);
  if (last != spans_.end()) ahead_to_ = std::max(ahead_to_, last->second->end());
  window_ = std::min(std::max(2 * window, 2 * pool_.block_bytes()), farthest);
  pool_.ReadsAhead(window_);
}

uint64_t RemoteBytes::Want(uint64_t offset, uint64_t bytes, bool alone, const Counters& counters,
                           Done done, const void* asker) {
  const auto waiter = std::make_shared<Waiter>();
  waiter->done = std::move(done);
  std::vector<RangeJob> jobs;
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(pool_.mutex());
    number = ++demand_number_;
    const uint64_t end = Clipped(offset, bytes);
    // Those that are here must not make room for those that are not.
    Demand demand{number, asker, offset, end, {}};
    for (auto it = First(offset); it != spans_.end() && it->first < end; ++it) {
      ++it->second->pins;
      pool_.Touch(it->second.get(), false);
      demand.pinned.emplace_back(it->first, it->second->number);
    }
    const uint64_t before = span_number_;
    Cover(offset, end, alone, /*is_wanted=*/true, &jobs);
    for (auto it = First(offset); it != spans_.end() && it->first < end; ++it) {
      Span* const span = it->second.get();
      if (span->number > before) {
        ++span->pins;
        demand.pinned.emplace_back(it->first, span->number);
      }
      if (span->state != Span::State::kComing || span->Has(end)) continue;
      waiter->left.fetch_add(1);
      span->waiting.push_back({std::min(end, span->end()) - span->offset,
                               [waiter](const absl::Status& status) { waiter->OneLess(status); }});
    }
    if (offset < end) demands_.push_back(std::move(demand));
    if (!alone) GoAhead(end, &jobs);
  }
  Send(std::move(jobs), counters);
  waiter->OneLess(absl::OkStatus());
  return number;
}

void RemoteBytes::WillNeed(uint64_t offset, uint64_t bytes, const Counters& counters) {
  std::vector<RangeJob> jobs;
  {
    std::lock_guard<std::mutex> lock(pool_.mutex());
    if (is_read_ && offset <= ahead_to_ + SpanPool::kFirstBytes) {
      GoAhead(std::min(offset, state().size), &jobs);
    } else {
      Cover(offset, Clipped(offset, bytes), /*alone=*/true, /*is_wanted=*/false, &jobs);
    }
  }
  Send(std::move(jobs), counters);
}

void RemoteBytes::Forget(Span* span) {
  pool_.Remove(span);
  spans_.erase(span->offset);
}

}  // namespace penstock
