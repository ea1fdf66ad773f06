// A small ring and its consumers, without a daemon: what the tests of this folder share.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "ring/descriptor.h"
#include "ring/layout.h"
#include "ring/reader.h"
#include "ring/writer.h"
#include "tests/support/catch.h"

namespace penstock::ring {

// Words of a batch; word i of step s is WordOf(s, i), so that a slot that changes under a reader is
// noticed.
inline constexpr int kWords = 96;
inline uint64_t WordOf(uint64_t step, int i) {
  return (step + 1) * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(i);
}

inline SegmentOptions SmallRing(uint32_t slots = 3, uint32_t slots_max = 9) {
  SegmentOptions options;
  options.pipeline = "small";
  options.slots = slots;
  options.slots_max = slots_max;
  options.tensors = {{"words", static_cast<uint8_t>(TensorDType::kUint64), true, {kWords / 2, 2}},
                     {"tag", static_cast<uint8_t>(TensorDType::kInt32), false, {}}};
  return options;
}

inline std::unique_ptr<Writer> MakeWriter(const SegmentOptions& options = SmallRing()) {
  std::unique_ptr<Writer> writer;
  const Status status = Writer::Create(options, &writer);
  INFO(status.message);
  REQUIRE(status.ok());
  return writer;
}

// Fills a claimed slot and publishes it as the next step.
inline void FillAndPublish(Writer* writer, int slot, uint64_t step) {
  auto* words = reinterpret_cast<uint64_t*>(writer->tensor(slot, 0));
  for (int i = 0; i < kWords; ++i) words[i] = WordOf(step, i);
  writer->Publish(slot, {step, step / 7, kWords / 2, {}});
}

// Publishes steps until the ring is full or `end` is reached; returns how many the ring has had.
inline uint64_t Produce(Writer* writer, uint64_t end = UINT64_MAX) {
  while (writer->published() < end) {
    const int slot = writer->TryClaim();
    if (slot < 0) break;
    FillAndPublish(writer, slot, writer->published());
  }
  return writer->published();
}

inline bool IsIntact(const Lease& lease) {
  const auto* words = reinterpret_cast<const uint64_t*>(lease.data);
  for (int i = 0; i < kWords; ++i) {
    if (words[i] != WordOf(lease.step, i)) return false;
  }
  return true;
}

// The address at which this process has mapped the file behind `fd` to be written, as the writer
// has.
inline uint8_t* MappedAt(int fd) {
  struct stat info;
  REQUIRE(fstat(fd, &info) == 0);
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    std::istringstream fields(line);
    std::string range, permissions, offset, device;
    uint64_t inode = 0;
    fields >> range >> permissions >> offset >> device >> inode;
    if (inode == info.st_ino && permissions == "rw-s") {
      return reinterpret_cast<uint8_t*>(std::stoull(range, nullptr, 16));
    }
  }
  FAIL("the file is not mapped");
  return nullptr;
}

// With a race detector, consumers share the writer's own maps: it knows memory by its address.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kOneMap = true;
#else
inline constexpr bool kOneMap = false;
#endif

// One consumer with its connection; the destructor is its death, which the daemon has yet to
// notice.
class TestConsumer {
 public:
  explicit TestConsumer(Writer* writer, const WaitTimes& times = {}, const ConsumerSpec& spec = {},
                        const ConsumerPosition& position = {})
      : writer_(writer) {
    ConsumerHandle handle;
    const Status status = writer->Attach(spec, position, getpid(), &handle);
    INFO(status.message);
    REQUIRE(status.ok());
    id_ = handle.id;
    start_ = handle.start_step;
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    daemon_end_ = Descriptor(ends[0]);
    const Attachment attachment = {.socket = ends[1],
                                   .segment_fd = dup(handle.segment_fd),
                                   .control_fd = dup(handle.control_fd),
                                   .bell_fd = dup(handle.bell_fd),
                                   .consumer = handle.id,
                                   .start_step = handle.start_step};
    Mapped mapped;
    page_ = reinterpret_cast<ControlPage*>(MappedAt(handle.control_fd));
    if (kOneMap) {
      mapped.segment = MappedAt(handle.segment_fd);
      mapped.page = page_;
    }
    const Status opened = Reader::Open(attachment, &reader_, times, mapped);
    INFO(opened.message);
    REQUIRE(opened.ok());
  }

  Reader& reader() { return *reader_; }
  uint32_t id() const { return id_; }
  uint64_t start() const { return start_; }
  // Until Detach().
  ControlPage& page() { return *page_; }

  // The next step, which must be ready.
  Lease Take() {
    Lease lease;
    REQUIRE(reader_->Next(0, &lease) == Reader::Result::kBatch);
    return lease;
  }
  void TakeAndRelease() { reader_->Release(Take()); }

  // The daemon's end of the connection closes.
  void HangUp() { daemon_end_ = Descriptor(); }
  // The daemon notices that it has gone.
  void Detach() { writer_->Detach(id_); }

 private:
  Writer* writer_;
  uint32_t id_ = 0;
  uint64_t start_ = 0;
  ControlPage* page_ = nullptr;  // as the writer has mapped it
  Descriptor daemon_end_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace penstock::ring
