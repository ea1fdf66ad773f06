#include "server/service/stream/ring_sink.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/engine/plan/cursor.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// Virtual machines report the cache of the whole host, of which they have a part.
constexpr uint64_t kMaxAssumedCacheBytes = 32 << 20;
constexpr uint64_t kFallbackCacheBytes = 8 << 20;
constexpr uint32_t kMinSlots = 3;
// A consumer that has to wait sleeps until two batches are ready, and holds one meanwhile: with a
// fourth slot the workers go on while it wakes up. Only within half of the cache: what four larger
// slots drive out of it costs more, and waking up is a smaller part of a larger batch's time.
constexpr uint32_t kMinFastSlots = 4;
constexpr uint32_t kMaxDefaultSlots = 8;
static_assert(kMaxCursorBytes == ring::kMaxCursorBytes, "a slot has room for any cursor");

}  // namespace

absl::Status FromRing(const ring::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code), status.message);
}

ring::Status ToRing(const absl::Status& status) {
  return {static_cast<ring::Code>(status.code()),
          ReadableUtf8(status.message(), ring::kMaxMessageBytes)};
}

uint64_t AssumedCacheBytes() {
  const long reported = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return reported > 0 ? std::min<uint64_t>(reported, kMaxAssumedCacheBytes) : kFallbackCacheBytes;
}

uint32_t DefaultSlots(uint64_t slot_bytes, uint64_t cache_bytes) {
  const uint64_t fitting = cache_bytes / 3 / std::max<uint64_t>(slot_bytes, 1);
  const uint64_t least = slot_bytes <= cache_bytes / 2 / kMinFastSlots ? kMinFastSlots : kMinSlots;
  return static_cast<uint32_t>(std::clamp<uint64_t>(fitting, least, kMaxDefaultSlots));
}

absl::StatusOr<std::unique_ptr<RingSink>> RingSink::Create(const std::string& pipeline,
                                                           const std::vector<BatchTensor>& tensors,
                                                           uint32_t slots, RingSinkOptions asked) {
  ring::SegmentOptions options;
  options.pipeline = pipeline;
  for (const BatchTensor& tensor : tensors) {
    ring::TensorSpec spec;
    spec.name = tensor.name;
    spec.dtype = static_cast<uint8_t>(tensor.type.dtype);
    spec.batched = tensor.batched;
    spec.narrow_splits = tensor.type.narrow_splits;
    spec.shape.assign(tensor.type.shape.begin(), tensor.type.shape.end());
    spec.kind = static_cast<ring::TensorKind>(tensor.kind);
    spec.ragged_rank = static_cast<uint32_t>(tensor.ragged_rank);
    spec.padding = tensor.padding;
    options.tensors.push_back(std::move(spec));
    if (!tensor.fixed()) options.variable_bytes = asked.variable_bytes;
  }
  options.variable_grows = asked.variable_grows;
  options.first_step = asked.first_step;
  options.first_cursor = asked.first_cursor;
  options.split_log = asked.split_log;
  options.reserve = std::move(asked.reserve);
  options.numa_node = asked.numa_node;
  options.num_steps = asked.count.steps;
  options.uncounted = asked.count.why_not;
  options.pass_steps = asked.count.pass_steps;
  options.pass_last_rows = asked.count.pass_last_rows;
  options.slots = slots;
  // Address space for the slots that more consumers will need; it costs nothing until they attach.
  options.slots_max = asked.slots_grow ? ring::kMaxSlots : slots;
  options.structure = std::move(asked.structure);
  std::unique_ptr<ring::Writer> writer;
  const ring::Status status = ring::Writer::Create(options, &writer);
  if (status.code != ring::Code::kOk) return FromRing(status);
  return std::unique_ptr<RingSink>(new RingSink(std::move(writer), pipeline,
                                                static_cast<int>(tensors.size()), asked.first_step,
                                                std::move(asked.high_water)));
}

bool RingSink::MayClaimNext() {
  if (high_water_ == nullptr || may_claim_next_) return true;
  may_claim_next_ = high_water_->MayClaim(next_.load(std::memory_order_relaxed));
  if (!may_claim_next_) {
    is_held_back_.store(true);
  } else if (is_held_back_.load(std::memory_order_relaxed)) {
    is_held_back_.store(false);
  }
  return may_claim_next_;
}

bool RingSink::TryClaim(ClaimedSlot* slot) {
  if (!MayClaimNext()) return false;
  slot->slot = writer_->TryClaim();
  if (slot->slot < 0) return false;
  next_.fetch_add(1, std::memory_order_relaxed);
  may_claim_next_ = false;
  slot->tensors.resize(num_tensors_);
  for (int i = 0; i < num_tensors_; ++i) slot->tensors[i] = writer_->tensor(slot->slot, i);
  slot->variable_bytes = writer_->variable_bytes();
  slot->variable = slot->variable_bytes > 0 ? writer_->variable(slot->slot) : nullptr;
  slot->grows = this;
  return true;
}

void RingSink::Publish(const ClaimedSlot& slot, const StepInfo& info) {
  ring::PublishInfo publish;
  publish.step = info.step;
  publish.epoch = info.epoch;
  publish.rows = std::max(info.rows, info.shape_rows);
  publish.valid_rows = info.rows;
  publish.cursor = info.cursor;
  extents_.resize(info.extents.size());
  for (size_t i = 0; i < extents_.size(); ++i) {
    for (size_t part = 0; part < ring::kMaxParts; ++part) {
      const TensorExtent::Part& from = info.extents[i].parts[part];
      extents_[i].parts[part] = {from.offset, from.bytes};
    }
  }
  publish.extents = extents_;
  // Before anybody can have it.
  if (high_water_ != nullptr) high_water_->Published(info.step + 1);
  writer_->Publish(slot.slot, publish);
}

void RingSink::Finish(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (outcome_) return;
    outcome_ = status;
  }
  if (!status.ok()) spdlog::warn("pipeline {} failed: {}", pipeline_, status.ToString());
  const ring::Status end = ToRing(status);
  writer_->Finish(end.code, end.message);
}

void RingSink::Close(const absl::Status& status) {
  if (outcome()) return;
  const ring::Status end = ToRing(status);
  writer_->Finish(end.code, end.message);
}

void RingSink::WaitForSlot(absl::Duration timeout) {
  if (is_held_back_.load()) {
    writer_->Rest();
    high_water_->WaitToClaim(next_.load(std::memory_order_relaxed), timeout);
    return;
  }
  writer_->WaitForRelease(absl::ToInt64Nanoseconds(timeout));
}

void RingSink::Interrupt() {
  writer_->Interrupt();
  if (is_held_back_.load()) high_water_->Wake();
}

std::optional<absl::Status> RingSink::outcome() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return outcome_;
}

}  // namespace penstock
