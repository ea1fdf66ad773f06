// Consumers of any kind, attached to a writer of the same thread: what the tests of groups share.
#pragma once

#include <cstdint>
#include <memory>

#include "ring/writer.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {

inline constexpr uint64_t kSecondNs = 1'000'000'000;

// A consumer of any kind, with its reader.
class Attached {
 public:
  Attached(Writer* writer, const ConsumerSpec& spec, const ConsumerPosition& position = {})
      : writer_(writer) {
    ConsumerHandle handle;
    const Status status = writer->Attach(spec, position, getpid(), &handle);
    INFO(status.message);
    REQUIRE(status.ok());
    id_ = handle.id;
    control_fd_ = handle.control_fd;
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    daemon_end_ = Descriptor(ends[0]);
    Mapped mapped;
    if (kOneMap) {
      mapped.segment = MappedAt(handle.segment_fd);
      mapped.page = reinterpret_cast<ControlPage*>(MappedAt(handle.control_fd));
    }
    const Attachment attachment = {.socket = ends[1],
                                   .segment_fd = dup(handle.segment_fd),
                                   .control_fd = dup(handle.control_fd),
                                   .bell_fd = dup(handle.bell_fd),
                                   .consumer = handle.id,
                                   .start_step = handle.start_step};
    REQUIRE(Reader::Open(attachment, &reader_, {}, mapped).ok());
  }
  Reader& reader() { return *reader_; }
  // The next step; none in time is kTimeout.
  Reader::Result Next(Lease* lease) {
    Reader::Result result = reader_->Next(0, lease);
    if (result == Reader::Result::kTimeout) {
      writer_->Deal();
      result = reader_->Next(0, lease);
    }
    return result;
  }
  Lease Take() {
    Lease lease;
    REQUIRE(Next(&lease) == Reader::Result::kBatch);
    REQUIRE(IsIntact(lease));
    return lease;
  }
  void Die() { writer_->Detach(id_); }
  // The daemon's end of the connection closes.
  void HangUp() { daemon_end_ = Descriptor(); }
  uint32_t id() const { return id_; }
  // Until it dies.
  ControlPage& page() { return *reinterpret_cast<ControlPage*>(MappedAt(control_fd_)); }

 private:
  Writer* writer_;
  uint32_t id_ = 0;
  int control_fd_ = -1;
  Descriptor daemon_end_;
  std::unique_ptr<Reader> reader_;
};

inline ConsumerSpec Split(uint64_t identity, bool at_most_once = false) {
  ConsumerSpec spec;
  spec.group = "workers";
  spec.mode = GroupMode::kSplit;
  spec.identity = identity;
  spec.at_most_once = at_most_once;
  return spec;
}

inline ConsumerSpec Rank(uint32_t rank, uint32_t world_size) {
  ConsumerSpec spec;
  spec.group = "ranks";
  spec.mode = GroupMode::kRank;
  spec.rank = rank;
  spec.world_size = world_size;
  spec.identity = 100 + rank;
  return spec;
}

inline ConsumerSpec Slow(SlowPolicy slow, uint32_t lag_ms = 0) {
  ConsumerSpec spec;
  spec.slow = slow;
  spec.lag_ms = lag_ms;
  return spec;
}

inline bool IsSentAway(const Writer& writer, uint32_t id) {
  for (const ConsumerStats& stats : writer.Consumers()) {
    if (stats.id == id) return stats.detached;
  }
  FAIL("no such consumer");
  return false;
}

}  // namespace penstock::ring
