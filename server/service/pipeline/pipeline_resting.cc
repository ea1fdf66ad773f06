// A pipeline that nobody reads gives its memory and its threads back, and goes on where it was when
// somebody comes.

#include <memory>
#include <mutex>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/service/pipeline/pipeline_streams.h"
#include "spdlog/spdlog.h"

namespace penstock {

bool PipelineStreams::MayRest(uint64_t now_ns, uint64_t idle_ns) {
  const std::shared_ptr<Stream> stream = shared();
  if (stream == nullptr) return false;
  const std::optional<absl::Status> outcome = stream->outcome();
  // A device's ring is laid out once; and a failure is kept for who comes late.
  if (!stream->writer().IsDeserted() || stream->device() != nullptr ||
      (outcome && !outcome->ok()) ||
      !absl::StartsWith(keeper_.timeline().known().plan->DescribeCursor(), "seek")) {
    idle_since_ns_ = 0;
    return false;
  }
  if (idle_since_ns_ == 0) idle_since_ns_ = now_ns;
  if (now_ns - idle_since_ns_ < idle_ns) return false;
  idle_since_ns_ = 0;
  return true;
}

void PipelineStreams::Rest() {
  const std::unique_lock<std::mutex> making_lock = Lock();
  const std::shared_ptr<Stream> stream = shared();
  if (stream == nullptr || !stream->writer().IsDeserted() || !Replays().empty()) return;
  const std::optional<absl::Status> outcome = stream->outcome();
  if (outcome && !outcome->ok()) return;
  // What guests have left goes with the ring, and is not to come back with a later one.
  for (const ring::GroupStats& group : stream->writer().Groups()) {
    stream->writer().DropGroup(group.name, "DETACHED: the pipeline rests");
    spdlog::info(
        "pipeline {}: split group {} of user {}, who may only attach, was left and is forgotten",
        name_, group.name, group.uid);
  }
  RestingAt resting;
  resting.finished = outcome.has_value();
  resting.at.step = stream->writer().floor();
  resting.at.cursor = stream->writer().Cursor(resting.at.step);
  // Only the beginning needs none.
  if (resting.at.cursor.empty() && resting.at.step != 0) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    shared_ = nullptr;
    resting_ = resting;
  }
  stream->Stop(absl::CancelledError("the pipeline rests"));
  spdlog::info("pipeline {}: nobody reads it; its memory is given back (step {})", name_,
               resting.at.step);
}

absl::Status PipelineStreams::EndRest() {
  std::optional<RestingAt> resting;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    resting = resting_;
  }
  if (!resting) return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<Stream>> stream =
      Make(resting->at.cursor, numbers_.slots(), options_.owner);
  absl::Status status = stream.ok() ? (*stream)->Start() : stream.status();
  // Else it rests on, and who comes next may find more memory.
  if (!status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return absl::NotFoundError(absl::StrCat("pipeline ", name_, " was deleted"));
  shared_ = *std::move(stream);
  resting_.reset();
  failure_ = absl::OkStatus();
  return absl::OkStatus();
}

}  // namespace penstock
