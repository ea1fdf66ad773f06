// A pipeline of one user, newcomers of that user and of others, and cursors of any of its steps.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ring/attach.h"
#include "ring/descriptor.h"
#include "ring/reader.h"
#include "server/service/pipeline/pipeline.h"
#include "tests/service/counting.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {

inline constexpr uint32_t kOwner = 54321;
inline constexpr uint32_t kGuest = 54322;

// A pipeline of the owner's: batches of four of sixteen numbers, again and again.
class Owned {
 public:
  // `first_free`: of an earlier daemon; `returns`, `options`: as PipelineOptions.
  explicit Owned(uint64_t first_free = 0, bool returns = false, PipelineOptions options = {}) {
    WriteShard(folder_ / "n", 0, 16);
    options.owner.uid = kOwner;
    options.returns = returns;
    if (first_free > 0) {
      options.high_water =
          HighWater::Create({.pipeline = "p", .limit = first_free, .is_of_before = true});
    }
    pipeline_ = Make(4, options);
  }
  ~Owned() { pipeline_->Close(absl::CancelledError("the end")); }

  Pipeline& operator*() { return *pipeline_; }
  Pipeline* operator->() { return pipeline_.get(); }

  Newcomer At(uint32_t uid, uint64_t step) {
    Newcomer newcomer;
    newcomer.uid = newcomer.spec.uid = uid;
    newcomer.spec.identity = ++last_identity_;
    newcomer.position.step = step;
    newcomer.position.cursor = Cursor(step);
    return newcomer;
  }
  static Newcomer Anywhere(uint32_t uid) {
    Newcomer newcomer;
    newcomer.uid = newcomer.spec.uid = uid;
    return newcomer;
  }
  // Where a consumer of the owner's begins that has no cursor.
  uint64_t WhereItIsLeft() {
    const auto attached = pipeline_->Attach(Anywhere(kOwner));
    REQUIRE(attached.ok());
    attached->stream->writer().Detach(attached->handle.id);
    return attached->handle.start_step;
  }
  // Seconds in which nobody does anything.
  void Wait() {
    for (uint64_t second = 1; second < 20; ++second)
      pipeline_->Tick(second * 1'000'000'000, 10'000'000'000);
  }

 private:
  std::shared_ptr<Pipeline> Make(int slots, const PipelineOptions& options) {
    v1::PipelineSpec spec = CountingSpec(folder_ / "n", "p", "stage { repeat {} }");
    spec.mutable_ring()->set_slots(slots);
    const auto created = Pipeline::Create(spec, options, LocalFileSystem());
    INFO(created.status().ToString());
    REQUIRE(created.ok());
    return *created;
  }
  // Of a run with the same spec.
  std::string Cursor(uint64_t step) {
    PipelineOptions options;
    options.owner.uid = kOwner;
    const auto other = Make(60, options);
    Until([&] { return other->Stats().steps() > step; });
    const auto attached = other->Attach(Anywhere(kOwner));
    REQUIRE(attached.ok());
    std::string cursor = attached->stream->writer().Cursor(step);
    REQUIRE(!cursor.empty());
    other->Close(absl::CancelledError("the end"));
    return cursor;
  }

  const ScratchFolder folder_;
  std::shared_ptr<Pipeline> pipeline_;
  uint64_t last_identity_ = 0;
};

// Who reads a stream from where it was let in.
class Reading {
 public:
  explicit Reading(const Attached& attached) : next_(attached.handle.start_step) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    daemon_end_ = ring::Descriptor(ends[0]);
    const ring::Attachment attachment = {.socket = ends[1],
                                         .segment_fd = dup(attached.handle.segment_fd),
                                         .control_fd = dup(attached.handle.control_fd),
                                         .bell_fd = dup(attached.handle.bell_fd),
                                         .consumer = attached.handle.id,
                                         .start_step = attached.handle.start_step};
    REQUIRE(ring::Reader::Open(attachment, &reader_).ok());
  }
  // The steps of the spec whose numbers the next `count` steps have, from the first of an epoch on.
  std::vector<int64_t> Take(uint64_t count) {
    std::vector<int64_t> places;
    for (uint64_t i = 0; i < count; ++i, ++next_) {
      ring::Lease lease;
      const ring::Reader::Result result = reader_->Next(60'000'000'000, &lease);
      INFO(reader_->error().message);
      REQUIRE(result == ring::Reader::Result::kBatch);
      CHECK(lease.step == next_);
      int64_t number;
      std::memcpy(&number, lease.data + reader_->tensors()[0].offset, sizeof number);
      places.push_back(number / 4);
      reader_->Release(lease);
    }
    return places;
  }

  ring::Reader& reader() { return *reader_; }

 private:
  ring::Descriptor daemon_end_;
  std::unique_ptr<ring::Reader> reader_;
  uint64_t next_;
};

}  // namespace penstock::test
