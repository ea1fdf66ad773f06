#include "server/engine/order/anchored_input.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

// What a chunk takes beside the counters of its position, about.
constexpr uint64_t kAnchorBytes = 64;

}  // namespace

uint64_t AnchoredInput::Chunk::bytes() const {
  return kAnchorBytes + start.counters().capacity() * sizeof(uint64_t);
}

Pulled AnchoredInput::Fill(uint64_t count) {
  while (resume_at_ > 0 || waiting() < count) {
    if (!pulling_) {
      if (result_ != Pulled::kSome) return result_;
      Chunk chunk;
      input_->Save(chunk.start);
      chunk_charge_.Add(chunk.bytes());
      chunks_.push_back(std::move(chunk));
      pulling_ = true;
    }
    charge_.MakeRoom(records_, kChunkElements * width());
    const Pulled result = input_->Pull(kChunkElements, records_, &chunks_.back().rows);
    if (result != Pulled::kBlocked) pulling_ = false;
    // All that came of the chunk may have been left out before it was complete.
    if (!pulling_) DropWaiting(0);
    if (result == Pulled::kEnd || result == Pulled::kFailed) result_ = result;
    if (resume_at_ > 0) {
      const uint64_t dropped = std::min(resume_at_, waiting());
      resume_at_ -= dropped;
      DropWaiting(dropped);
      // A chunk that is shorter than the cursor said would be one of other files.
      if (!pulling_) resume_at_ = 0;
    }
    if (!pulling_ && !chunks_.empty() && chunks_.back().rows == 0) {
      chunk_charge_.Remove(chunks_.back().bytes());
      chunks_.pop_back();
    }
    if (result == Pulled::kBlocked && waiting() < count) return result;
  }
  return Pulled::kSome;
}

Pulled AnchoredInput::Drop(uint64_t* count) {
  while (*count > 0) {
    if (waiting() == 0) {
      if (const Pulled result = Fill(1); result != Pulled::kSome) return result;
    }
    const uint64_t dropped = std::min(*count, waiting());
    DropWaiting(dropped);
    *count -= dropped;
  }
  return Pulled::kSome;
}

void AnchoredInput::DropWaiting(uint64_t count) {
  context_.store.Release(absl::MakeConstSpan(records_).subspan(first_ * width(), count * width()));
  first_ += count;
  left_out_ += count;
  while (!chunks_.empty() && left_out_ >= chunks_.front().rows &&
         !(pulling_ && chunks_.size() == 1)) {
    left_out_ -= chunks_.front().rows;
    chunk_charge_.Remove(chunks_.front().bytes());
    chunks_.pop_front();
  }
  if (first_ >= kChunkElements && first_ >= waiting()) {
    records_.erase(records_.begin(), records_.begin() + first_ * width());
    first_ = 0;
  }
}

void AnchoredInput::Restart(uint64_t epoch) {
  context_.store.Release(absl::MakeConstSpan(records_).subspan(first_ * width()));
  records_.clear();
  first_ = 0;
  chunks_.clear();
  chunk_charge_.Clear();
  pulling_ = false;
  left_out_ = resume_at_ = 0;
  result_ = Pulled::kSome;
  input_->Restart(epoch);
}

void AnchoredInput::Save(Position& position) const {
  position.Add(left_out_ + resume_at_);
  if (chunks_.empty()) return input_->Save(position);
  for (const uint64_t counter : chunks_.front().start.counters()) position.Add(counter);
}

absl::Status AnchoredInput::Restore(Position& position) {
  resume_at_ = position.Take();
  return input_->Restore(position);
}

}  // namespace penstock
