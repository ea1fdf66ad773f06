#include "ring/reader.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "ring/aligned_map.h"
#include "ring/futex.h"
#include "ring/left_wakes.h"
#include "ring/segment_plan.h"

namespace penstock::ring {
namespace {

// Spins in vain, one after the other, before waits begin without one; then one in so many spins.
constexpr uint32_t kTrustedSpins = 4;
constexpr uint32_t kWaitsPerSpin = 8;

// Adds to a number that one thread writes and others read: no locked instruction is needed.
void Add(uint64_t amount, std::atomic<uint64_t>* number) {
  number->store(number->load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

std::atomic<uint32_t> num_forks{0};

void CountForks() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, +[] { num_forks.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
}

Status SystemError(const char* what) {
  return {errno == ENOMEM ? Code::kResourceExhausted : Code::kInternal,
          std::string(what) + ": " + std::strerror(errno)};
}

// The time `delay_ns` later; a thousand years stand for ever.
uint64_t After(uint64_t start_ns, uint64_t delay_ns) {
  return start_ns + std::min(delay_ns, uint64_t{1} << 62);
}

Status Malformed(const std::string& what) {
  return {Code::kInternal, "the ring that penstockd sent is malformed: " + what};
}

}  // namespace

uint32_t NumForks() { return num_forks.load(std::memory_order_relaxed); }

Status Reader::Open(const Attachment& attachment, std::unique_ptr<Reader>* out,
                    const WaitTimes& times, const Mapped& mapped) {
  Descriptor socket(attachment.socket), segment_fd(attachment.segment_fd);
  Descriptor control_fd(attachment.control_fd), bell_fd(attachment.bell_fd);
  std::unique_ptr<Reader> reader(new Reader);
  reader->socket_ = std::move(socket);
  reader->segment_fd_ = std::move(segment_fd);
  reader->control_fd_ = std::move(control_fd);
  reader->bell_fd_ = std::move(bell_fd);
  reader->consumer_ = attachment.consumer;
  reader->times_ = times;
  CountForks();
  reader->fork_count_ = NumForks();
  if (Status status = reader->Map(mapped); !status.ok()) return status;
  *out = std::move(reader);
  return {};
}

Reader::~Reader() {
  // A child that was forked has the socket too, and would keep the place until it ends.
  if (socket_.get() >= 0 && fork_count_ == NumForks()) shutdown(socket_.get(), SHUT_RDWR);
  if (!owns_mappings_) return;
  if (segment_ != nullptr) munmap(const_cast<uint8_t*>(segment_), segment_bytes_);
  if (page_ != nullptr) munmap(page_, sizeof(ControlPage));
}

Status Reader::Map(const Mapped& mapped) {
  struct stat info = {};
  if (fstat(segment_fd_.get(), &info) != 0) return SystemError("cannot look at the ring");
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);
  if (file_bytes < sizeof(SegmentHeader)) return Malformed("it is too small");
  segment_bytes_ = file_bytes;
  owns_mappings_ = mapped.segment == nullptr;
  if (owns_mappings_) {
    void* segment = MapAligned(segment_fd_.get(), file_bytes, PROT_READ, MAP_SHARED);
    if (segment == MAP_FAILED) return SystemError("cannot map the ring");
    segment_ = static_cast<const uint8_t*>(segment);
  } else {
    segment_ = mapped.segment;
  }
  if (Status status = CheckSegment(file_bytes); !status.ok()) return status;
  if (owns_mappings_) {
    void* page = mmap(nullptr, sizeof(ControlPage), PROT_READ | PROT_WRITE, MAP_SHARED,
                      control_fd_.get(), 0);
    if (page == MAP_FAILED) return SystemError("cannot map the control page");
    page_ = static_cast<ControlPage*>(page);
  } else {
    page_ = mapped.page;
  }
  if (page_->magic != kControlMagic || page_->generation != header().generation ||
      page_->index >= kMaxConsumers) {
    return Malformed("the control page does not belong to it");
  }
  index_ = page_->index;
  takes_grants_ = page_->takes_grants != 0;
  // So that a lease is noted, and let go of, whether there is memory then or not.
  held_.reserve(kMaxSlots);
  returned_.reserve(kMaxReportedLeases + 1);
  next_step_.store(page_->start_step, std::memory_order_relaxed);
  position_.store(takes_grants_ ? 0 : page_->start_step, std::memory_order_relaxed);
  cursor_bytes_ = std::min(page_->start_cursor_bytes, kMaxCursorBytes);
  std::memcpy(cursor_, page_->start_cursor, cursor_bytes_);
  const SegmentHeader& head = header();
  slot_table_ = reinterpret_cast<const SlotEntry*>(segment_ + head.slot_table_offset);
  ring_table_ = reinterpret_cast<const RingEntry*>(segment_ + head.ring_table_offset);
  extent_table_ = reinterpret_cast<const TensorExtent*>(segment_ + head.extent_table_offset);
  slot_data_ = segment_ + head.slot_data_offset;
  slot_stride_ = head.slot_stride;
  slots_max_ = head.slots_max;
  ring_mask_ = head.ring_entries - 1;
  structure_.assign(reinterpret_cast<const char*>(segment_ + head.structure_offset),
                    head.structure_bytes);
  pass_last_rows_ = head.pass_last_rows;
  if (head.num_steps_plus_1 > 0) {
    num_steps_ = head.num_steps_plus_1 - 1;
    pass_steps_ = head.pass_steps;
  } else if (head.uncounted_bytes > 0) {
    uncounted_.assign(head.uncounted, head.uncounted_bytes);
  } else {
    uncounted_ = "the daemon does not tell";
  }
  const auto* entries = reinterpret_cast<const TensorEntry*>(segment_ + head.tensor_table_offset);
  tensors_.assign(entries, entries + head.num_tensors);
  return CheckTensors();
}

Status Reader::CheckTensors() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorEntry& entry = tensors_[i];
    if (const char* error = CheckEntry(entry, slot_stride_); error != nullptr) {
      return Malformed(error + std::string(" (tensor ") + std::to_string(i) + ")");
    }
  }
  return {};
}

Status Reader::CheckSegment(uint64_t file_bytes) const {
  const SegmentHeader& head = header();
  if (head.magic != kSegmentMagic) return Malformed("it begins with other bytes");
  if (head.abi_version != kAbiVersion) {
    return {Code::kFailedPrecondition,
            "client and penstockd speak different versions of the ring's ABI: the client " +
                std::to_string(kAbiVersion) + ", the daemon " + std::to_string(head.abi_version) +
                "; install the same release of both"};
  }
  if (head.header_bytes != sizeof(SegmentHeader) ||
      head.tensor_entry_bytes != sizeof(TensorEntry) ||
      head.slot_entry_bytes != sizeof(SlotEntry) || head.ring_entry_bytes != sizeof(RingEntry) ||
      head.control_page_bytes != sizeof(ControlPage)) {
    return Malformed("its tables have other sizes");
  }
  if (head.segment_bytes != file_bytes || head.num_tensors > kMaxTensors ||
      head.slots_max > kMaxSlots || head.ring_entries < head.slots_max ||
      (head.ring_entries & (head.ring_entries - 1)) != 0 || head.pipeline_bytes > kMaxNameBytes ||
      head.structure_bytes > kMaxStructureBytes || head.uncounted_bytes > kMaxUncountedBytes ||
      head.variable_offset > head.slot_stride ||
      head.variable_bytes > head.slot_stride - head.variable_offset) {
    return Malformed("its sizes do not fit together");
  }
  const auto lies_inside = [file_bytes](uint64_t offset, uint64_t count, uint64_t bytes) {
    return offset % kCacheLine == 0 && offset <= file_bytes &&
           (count == 0 || bytes <= (file_bytes - offset) / count);
  };
  if (!lies_inside(head.tensor_table_offset, head.num_tensors, sizeof(TensorEntry)) ||
      !lies_inside(head.slot_table_offset, head.slots_max, sizeof(SlotEntry)) ||
      !lies_inside(head.ring_table_offset, head.ring_entries, sizeof(RingEntry)) ||
      !lies_inside(head.extent_table_offset, uint64_t{head.slots_max} * head.num_tensors,
                   sizeof(TensorExtent)) ||
      !lies_inside(head.structure_offset, head.structure_bytes, 1) ||
      !lies_inside(head.slot_data_offset, head.slots_max, head.slot_stride)) {
    return Malformed("its tables do not lie inside of it");
  }
  return {};
}

std::string_view Reader::pipeline() const { return {header().pipeline, header().pipeline_bytes}; }
uint64_t Reader::published() const { return header().published.load(std::memory_order_relaxed); }
uint32_t Reader::lease_share() const {
  return header().lease_share.load(std::memory_order_relaxed);
}

bool Reader::Ready() const { return !over_ && !ended_ && !again_ && IsThere(); }

ReaderStats Reader::stats() const {
  return {batches_.load(std::memory_order_relaxed), waits_.load(std::memory_order_relaxed),
          sleeps_.load(std::memory_order_relaxed), wait_ns_.load(std::memory_order_relaxed),
          skipped_.load(std::memory_order_relaxed)};
}

Reader::Result Reader::Fail(Code code, std::string message) {
  over_ = true;
  error_ = {code, std::move(message)};
  return Result::kFailed;
}

Reader::Result Reader::WaitForStep(uint64_t timeout_ns) {
  if (over_) return Result::kFailed;
  if (ended_) return Result::kEnd;
  if (again_) return Result::kAgain;
  if (fork_count_ != NumForks()) return Fail(Code::kFailedPrecondition, kOfParent);
  if (takes_grants_) Ask();
  return IsThere() ? Result::kBatch : Wait(timeout_ns);
}

uint32_t Reader::NextSlot() const {
  const uint64_t number = position();
  return takes_grants_ ? static_cast<uint32_t>(page_->grants[number % kMaxSlots].slot)
                       : ring_table_[number & ring_mask_].slot;
}

Reader::Result Reader::TakeStep(Lease* out) { return takes_grants_ ? TakeGrant(out) : Take(out); }

Reader::Result Reader::Next(uint64_t timeout_ns, Lease* out) {
  while (true) {
    if (Result result = WaitForStep(timeout_ns); result != Result::kBatch) return result;
    // The steps up to another one are left out: it takes that one.
    if (const Result result = TakeStep(out); result != Result::kTimeout) return result;
  }
}

void Reader::FillIn(uint32_t slot, uint64_t step, Lease* out) const {
  const SlotEntry& held = slot_table_[slot];
  out->slot = slot;
  out->rows = held.rows;
  out->valid_rows = std::min(held.valid_rows, out->rows);
  out->step = step;
  out->epoch = held.epoch;
  out->data = slot_data_ + slot * slot_stride_;
  out->cursor = held.cursor;
  out->cursor_bytes = std::min(held.cursor_bytes, kMaxCursorBytes);
  out->redelivered = false;
}

void Reader::RememberCursor(const Lease& lease) {
  next_step_.store(lease.step + 1, std::memory_order_relaxed);
  cursor_bytes_ = lease.cursor_bytes;
  std::memcpy(cursor_, lease.cursor, cursor_bytes_);
}

Reader::Result Reader::Take(Lease* out) {
  const uint64_t step = position();
  const RingEntry& entry = ring_table_[step & ring_mask_];
  const uint32_t slot = entry.slot;
  const uint64_t found = entry.step;
  position_.store(step + 1, std::memory_order_relaxed);
  // SYNC verdict: from here on the step is this consumer's, or the daemon's word is seen.
  page_->position.store(step + 1, std::memory_order_seq_cst);
  if (page_->verdict.load(std::memory_order_seq_cst) != 0) {
    position_.store(step, std::memory_order_relaxed);
    return ObeyVerdict();
  }
  if (const uint64_t skip_to = page_->skip_to.load(std::memory_order_seq_cst); skip_to > step) {
    Add(skip_to - step, &skipped_);
    position_.store(skip_to, std::memory_order_relaxed);
    // The daemon may have seen the step as taken.
    if (slot < slots_max_) page_->released[slot].store(step + 1, std::memory_order_seq_cst);
    page_->position.store(skip_to, std::memory_order_seq_cst);
    RingBell();
    return Result::kTimeout;
  }
  if (found != step || slot >= slots_max_) {
    return Fail(Code::kInternal, "step " + std::to_string(step) +
                                     " is not in the ring; it holds step " + std::to_string(found) +
                                     " there");
  }
  FillIn(slot, step, out);
  RememberCursor(*out);
  Add(1, &batches_);
  leases_.fetch_add(1, std::memory_order_relaxed);
  return Result::kBatch;
}

void Reader::Ask() {
  if (page_->asked.load(std::memory_order_relaxed) > position()) return;
  // SYNC step-grant: the wish comes before the look at what was granted.
  page_->asked.store(position() + 1, std::memory_order_seq_cst);
  // Always: the daemon may have nothing else that makes it look here.
  if (!IsThere()) RingBell();
}

Reader::Result Reader::TakeGrant(Lease* out) {
  const uint64_t number = position();
  const StepGrant grant = page_->grants[number % kMaxSlots];
  const uint64_t step = grant.step & ~kRedelivered;
  if (grant.slot >= slots_max_ || slot_table_[grant.slot].step != step) {
    return Fail(Code::kInternal, "step " + std::to_string(step) + " was granted, and slot " +
                                     std::to_string(grant.slot) + " does not hold it");
  }
  position_.store(number + 1, std::memory_order_relaxed);
  page_->position.store(number + 1, std::memory_order_relaxed);
  FillIn(static_cast<uint32_t>(grant.slot), step, out);
  out->redelivered = (grant.step & kRedelivered) != 0;
  RememberCursor(*out);
  {
    std::lock_guard<std::mutex> lock(leases_mutex_);
    held_.push_back(step);
  }
  Add(1, &batches_);
  leases_.fetch_add(1, std::memory_order_relaxed);
  return Result::kBatch;
}

Reader::Result Reader::ObeyVerdict() {
  const int32_t verdict = page_->verdict.load(std::memory_order_acquire);
  if (verdict == kVerdictReattach) return Again("");
  return Fail(
      static_cast<Code>(verdict),
      std::string(page_->verdict_message, std::min(page_->verdict_bytes, kMaxVerdictBytes)));
}

Reader::Result Reader::Again(std::string message) {
  again_ = true;
  error_ = {Code::kUnavailable, std::move(message)};
  return Result::kAgain;
}

ConsumerPosition Reader::Where() const {
  ConsumerPosition where;
  if (!takes_grants_) {
    where.step = position();
    // Behind a skip the cursor is not known.
    if (next_step() == where.step) {
      where.cursor.assign(reinterpret_cast<const char*>(cursor_), cursor_bytes_);
    }
    return where;
  }
  std::lock_guard<std::mutex> lock(leases_mutex_);
  where.held = held_;
  where.returned = returned_;
  return where;
}

void Reader::ReturnEarlier(uint32_t index) {
  if (fork_count_ != NumForks()) return;
  page_->returned.fetch_or(uint64_t{1} << index, std::memory_order_seq_cst);
  RingBell();
}

bool Reader::Find(const Lease& lease, uint32_t tensor, TensorParts* out) {
  // A copy, so that what is checked is what is used.
  const TensorExtent extent = extent_table_[uint64_t{lease.slot} * tensors_.size() + tensor];
  const char* error =
      FindParts(tensors_[tensor], extent, lease.rows, lease.data, slot_stride_, out);
  if (error == nullptr) return true;
  FailTorn(lease, tensor, error);
  return false;
}

void Reader::FailTorn(const Lease& lease, uint32_t tensor, const char* error) {
  const Status status = Malformed(error);
  Fail(status.code, status.message + " (step " + std::to_string(lease.step) + ", tensor " +
                        std::to_string(tensor) + ")");
}

void Reader::Release(const Lease& lease) {
  if (fork_count_ != NumForks()) return;
  if (takes_grants_) {
    std::lock_guard<std::mutex> lock(leases_mutex_);
    const auto held = std::find(held_.begin(), held_.end(), lease.step);
    if (held != held_.end()) held_.erase(held);
    if (returned_.size() >= kMaxReportedLeases) returned_.erase(returned_.begin());
    returned_.push_back(lease.step);
  }
  // SYNC slot-release: the consumer's reads of the slot come before.
  page_->released[lease.slot].store(lease.step + 1, std::memory_order_seq_cst);
  // Not before: whoever takes another one in its place would hold more than its share to the
  // daemon.
  leases_.fetch_sub(1, std::memory_order_release);
  // SYNC release-wake: the daemon announces its sleep before it looks at `released` again.
  if (header().waits_for.load(std::memory_order_seq_cst) >> index_ & 1) RingBell();
}

void Reader::RingBell() { eventfd_write(bell_fd_.get(), 1); }

void Reader::Leave() {
  if (over_ || again_ || fork_count_ != NumForks()) return;
  page_->stop_at.store(position(), std::memory_order_seq_cst);
  RingBell();
  Fail(Code::kFailedPrecondition, "the loader is closed");
}

Reader::Result Reader::EndOfStream() {
  const SegmentHeader& head = header();
  if (head.end_code == 0) {
    ended_ = true;
    return Result::kEnd;
  }
  const std::string message(head.end_message, std::min(head.end_message_bytes, kMaxMessageBytes));
  // A daemon that was stopped may be started again.
  if (head.end_code == static_cast<int32_t>(Code::kUnavailable)) return Again(message);
  return Fail(static_cast<Code>(head.end_code), message);
}

bool Reader::HungUp() const {
  pollfd entry = {socket_.get(), POLLIN | POLLRDHUP, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

bool Reader::IsDeserted() const {
  if (over_ || ended_ || fork_count_ != NumForks()) return false;
  const bool is_over = (takes_grants_ ? page_->grants_ended.load(std::memory_order_acquire)
                                      : header().ended.load(std::memory_order_acquire)) != 0;
  if (is_over && header().end_code != static_cast<int32_t>(Code::kUnavailable)) return false;
  const int32_t verdict = page_->verdict.load(std::memory_order_acquire);
  return (verdict == 0 || verdict == kVerdictReattach) && HungUp();
}

void Reader::Sleep(uint64_t wake_at, uint64_t deadline_ns, bool soon) {
  // SYNC consumer-wake: the word is read before the announcement; the daemon changes it between its
  // look at wake_at and the wake-up.
  const uint32_t word = header().wake_word.load(std::memory_order_seq_cst);
  page_->processor.store(soon ? ProcessorHere() : 0, std::memory_order_relaxed);
  page_->wake_at.store(wake_at, std::memory_order_seq_cst);
  if (!IsThere() && !IsOver()) {
    Add(1, &sleeps_);
    FutexWait(header().wake_word, word, uint32_t{1} << (index_ % 32), deadline_ns);
  }
  page_->wake_at.store(kAwake, std::memory_order_relaxed);
}

Reader::Result Reader::Wait(uint64_t timeout_ns) {
  const uint64_t start_ns = MonotonicNs();
  const uint64_t deadline_ns = After(start_ns, timeout_ns);
  uint64_t now_ns = start_ns;
  Add(1, &waits_);
  // A spin that was in vain before will hardly help now, and costs the producers their core.
  const bool spins = vain_spins_ < kTrustedSpins || vain_spins_ % kWaitsPerSpin == 0;
  const uint64_t spin_ns = spins ? times_.spin_ns : 0;
  // Two come within the longer patience where each takes less than half of it.
  const uint64_t trusting_ns = std::max(times_.patience_ns, times_.trusting_patience_ns);
  const uint64_t soon_ns = std::max(times_.patience_ns, trusting_ns / 2);
  const uint64_t patience_ns = pace_ == Pace::kSoon   ? trusting_ns
                               : pace_ == Pace::kLate ? 0
                                                      : times_.patience_ns;
  bool hung_up = false;
  Result result;
  while (true) {
    if (IsThere()) {
      vain_spins_ = now_ns - start_ns <= spin_ns && spins ? 0 : vain_spins_ + 1;
      const uint64_t came = takes_grants_ ? 1 : std::max(published(), position() + 1) - position();
      pace_ = (now_ns - start_ns) / came < soon_ns ? Pace::kSoon : Pace::kLate;
      result = Result::kBatch;
      break;
    }
    if (page_->verdict.load(std::memory_order_acquire) != 0) {
      result = ObeyVerdict();
      break;
    }
    // SYNC stream-end: every step was published before; so look once more.
    if (IsOver()) {
      // A verdict makes an end, too, and may have come since the look at it.
      if (IsThere() || page_->verdict.load(std::memory_order_seq_cst) != 0) continue;
      result = EndOfStream();
      break;
    }
    if (hung_up) {
      result = Again("penstockd has gone away: it was killed, or it crashed, before step " +
                     std::to_string(position()));
      break;
    }
    if (now_ns - start_ns < spin_ns) {
      // A look costs nothing as long as nobody writes there; a pause takes up to 140 cycles.
      for (int i = 0; i < 16 && !IsThere(); ++i) SpinPause();
    } else if (now_ns >= deadline_ns) {
      result = Result::kTimeout;
      break;
    } else if (now_ns - start_ns < patience_ns) {
      Sleep(position() + (takes_grants_ ? 1 : 2),
            std::min(deadline_ns, After(start_ns, patience_ns)), /*soon=*/true);
    } else {
      // A dead daemon publishes nothing more, so what is published after this look is all there is.
      hung_up = HungUp();
      if (!hung_up)
        Sleep(position() + 1, std::min(deadline_ns, After(now_ns, times_.look_ns)), /*soon=*/false);
    }
    now_ns = MonotonicNs();
  }
  Add(MonotonicNs() - start_ns, &wait_ns_);
  return result;
}

}  // namespace penstock::ring
