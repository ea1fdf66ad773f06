#include "server/helpers/step_sink.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace penstock {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kSpare = 64;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

// Pages are taken as they are written: how much variable memory a step needs only the data tells.
struct StepSink::Memory {
  Memory(uint64_t size, std::shared_ptr<MemoryAccount> of) : bytes(size), account(std::move(of)) {
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) begin = static_cast<uint8_t*>(mapped);
  }
  ~Memory() {
    if (begin != nullptr) munmap(begin, bytes);
    if (account != nullptr) account->GiveBack(charged);
  }
  // So many of its bytes are about to be written. Throws MemoryLimitError.
  void Charge(uint64_t written) {
    if (account == nullptr || written <= charged) return;
    account->Take(written - charged);
    charged = written;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const uint64_t bytes;
  const std::shared_ptr<MemoryAccount> account;
  uint64_t charged = 0;
  uint8_t* begin = nullptr;  // null: the system has no memory
};

StepSink::StepSink(const Plan& plan, uint64_t first_step, int most_steps,
                   std::shared_ptr<MemoryAccount> account, std::function<void()> ring)
    : tensors_(plan.tensors()),
      variable_bytes_(plan.variable_bytes()),
      most_steps_(most_steps),
      account_(std::move(account)),
      ring_(std::move(ring)),
      next_(first_step),
      passed_(first_step) {}

StepSink::~StepSink() = default;

bool StepSink::Want(uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (static_cast<int>(asked_.size()) >= most_steps_) return false;
  const bool can_be_made = !finished_ && step >= next_;
  asked_.push_back({step, can_be_made});
  if (!can_be_made) return true;
  wanted_.insert(step);
  passed_ = std::max(passed_, step + 1);
  changed_.notify_all();
  return true;
}

void StepSink::Passed(uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex_);
  passed_ = std::max(passed_, step);
  changed_.notify_all();
}

std::optional<StepSink::Made> StepSink::TakeMade() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (asked_.empty()) return std::nullopt;
  const Asked& first = asked_.front();
  const auto found = std::find_if(made_.begin(), made_.end(),
                                  [&](const Made& one) { return one.step == first.step; });
  Made made;
  if (found != made_.end()) {
    made = std::move(*found);
    made_.erase(found);
  } else if (finished_ || !first.can_be_made) {
    made.step = first.step;
  } else {
    return std::nullopt;
  }
  asked_.pop_front();
  return made;
}

void StepSink::GiveBack(const Made& made) {
  if (!made.is_made) return;
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(made.slot.slot);
  changed_.notify_all();
}

std::optional<absl::Status> StepSink::Failure() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (end_.ok()) return std::nullopt;
  return end_;
}

void StepSink::MakeRoom(int slot, uint64_t bytes) {
  Memory* memory = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    memory = memory_[slot].get();
  }
  memory->Charge(memory->bytes - variable_bytes_ + std::min(bytes, variable_bytes_));
}

bool StepSink::CanClaim() const {
  if (finished_) return false;
  if (wanted_.count(next_) == 0) return next_ < passed_;
  return !idle_.empty() || static_cast<int>(memory_.size()) < most_steps_;
}

bool StepSink::TryClaim(ClaimedSlot* slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!CanClaim()) return false;
  slot->tensors.assign(tensors_.size(), nullptr);
  slot->variable = nullptr;
  slot->variable_bytes = 0;
  slot->grows = nullptr;
  slot->slot = kUnwantedSlot;
  if (wanted_.count(next_) == 0) {
    ++next_;
    return true;
  }
  uint64_t bytes = variable_bytes_ + kSpare;
  for (const BatchTensor& tensor : tensors_)
    if (tensor.fixed()) bytes += Aligned(*NumBytes(tensor.type)) + kSpare;
  if (idle_.empty()) {
    auto memory = std::make_unique<Memory>(bytes, account_);
    // The worker that claims ends the stream then.
    if (memory->begin == nullptr) throw MemoryLimitError("the system has no memory for a step");
    memory->Charge(bytes - variable_bytes_);
    memory_.push_back(std::move(memory));
    idle_.push_back(static_cast<int>(memory_.size()) - 1);
  }
  wanted_.erase(next_++);
  slot->slot = idle_.back();
  idle_.pop_back();
  uint8_t* place = memory_[slot->slot]->begin;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].fixed()) continue;
    slot->tensors[i] = place;
    place += Aligned(*NumBytes(tensors_[i].type)) + kSpare;
  }
  if (variable_bytes_ > 0) {
    slot->variable = place;
    slot->variable_bytes = variable_bytes_;
    slot->grows = this;
  }
  return true;
}

void StepSink::Publish(const ClaimedSlot& slot, const StepInfo& info) {
  if (IsUnwanted(slot)) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    made_.push_back({info.step, true, info, slot});
  }
  ring_();
}

void StepSink::Finish(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
    end_ = status;
    changed_.notify_all();
  }
  ring_();
}

void StepSink::WaitForSlot(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                    [this] { return interrupted_ || CanClaim(); });
  interrupted_ = false;
}

void StepSink::Interrupt() {
  std::lock_guard<std::mutex> lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

}  // namespace penstock
