#include "server/service/state/consumer_notes.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "base/nanoseconds.h"
#include "base/new_thread.h"
#include "server/engine/tasks/calls_under_way.h"
#include "spdlog/spdlog.h"

namespace penstock {

ConsumerNotes::ConsumerNotes(const PipelineJournal& journal) : journal_(journal) {
  absl::StatusOr<std::thread> thread = NewThread("journal", [this] { Work(); });
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else {
    status_ = thread.status();
  }
}

ConsumerNotes::~ConsumerNotes() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ConsumerNotes::Put(const std::string& pipeline, Consumers consumers,
                        std::function<void()> done) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Note& note = notes_[pipeline];
    note.consumers = std::move(consumers);
    if (done != nullptr) note.done.push_back(std::move(done));
  }
  wake_.notify_one();
}

void ConsumerNotes::Work() {
  const CallSpot::OfThisThread shown(spot_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !notes_.empty(); });
    if (notes_.empty()) return;
    auto first = notes_.extract(notes_.begin());
    lock.unlock();
    journal_.PutConsumers(first.key(), first.mapped().consumers);
    for (const auto& done : first.mapped().done) done();
    lock.lock();
  }
}

void ConsumerNotes::TellIfSlow() {
  const std::optional<CallSeen> seen = spot_.Look();
  const uint64_t ns = seen ? scale_.ToNanos(seen->ticks) : 0;
  if ((ns >= kHungCallNs) == is_told_) return;
  is_told_ = !is_told_;
  if (is_told_) {
    spdlog::warn("{} {} has not returned for {} s: until it does nobody new can attach",
                 seen->doing, seen->path, ns / kNsPerSecond);
  } else {
    spdlog::info("the state folder is written again");
  }
}

}  // namespace penstock
