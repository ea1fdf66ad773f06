// What a consumer is told of the length of its stream.
#include <string>

#include "tests/ring/test_ring.h"

namespace penstock::ring {
namespace {

SegmentHeader* HeaderOf(Writer* writer) {
  ConsumerHandle handle;
  REQUIRE(writer->Attach("default", getpid(), &handle).ok());
  return reinterpret_cast<SegmentHeader*>(MappedAt(handle.segment_fd));
}

TEST_CASE("a consumer is told the length of its stream, or why nobody knows it") {
  SegmentOptions options = SmallRing();
  for (const uint64_t steps : {uint64_t{0}, uint64_t{7}, UINT64_MAX - 1}) {
    options.num_steps = steps;
    const auto writer = MakeWriter(options);
    TestConsumer consumer(writer.get());
    CHECK(consumer.reader().num_steps() == steps);
    CHECK(consumer.reader().uncounted().empty());
  }
  options.num_steps = 7;
  options.pass_steps = 3;
  options.pass_last_rows = 1;
  {
    const auto writer = MakeWriter(options);
    TestConsumer consumer(writer.get());
    CHECK(consumer.reader().pass_steps() == 3);
    CHECK(consumer.reader().pass_last_rows() == 1);
  }
  options.num_steps.reset();
  options.uncounted = std::string(1000, 'y');
  const auto writer = MakeWriter(options);
  TestConsumer consumer(writer.get());
  CHECK_FALSE(consumer.reader().num_steps().has_value());
  CHECK(consumer.reader().uncounted() == std::string(kMaxUncountedBytes, 'y'));
}

TEST_CASE("a daemon that does not know of lengths leaves zeros, and that is said") {
  const auto writer = MakeWriter();
  SegmentHeader* header = HeaderOf(writer.get());
  CHECK(header->num_steps_plus_1 == 0);
  CHECK(header->uncounted_bytes == 0);
  TestConsumer consumer(writer.get());
  CHECK_FALSE(consumer.reader().num_steps().has_value());
  CHECK(consumer.reader().pass_steps() == 0);
  CHECK(consumer.reader().uncounted() == "the daemon does not tell");
}

TEST_CASE("a forged length of the reason is refused") {
  const auto writer = MakeWriter();
  ConsumerHandle handle;
  REQUIRE(writer->Attach("default", getpid(), &handle).ok());
  auto* header = reinterpret_cast<SegmentHeader*>(MappedAt(handle.segment_fd));
  header->uncounted_bytes = kMaxUncountedBytes + 1;
  const Attachment attachment = {.socket = dup(handle.segment_fd),
                                 .segment_fd = dup(handle.segment_fd),
                                 .control_fd = dup(handle.control_fd),
                                 .bell_fd = dup(handle.bell_fd),
                                 .consumer = handle.id,
                                 .start_step = handle.start_step};
  std::unique_ptr<Reader> reader;
  const Status status = Reader::Open(attachment, &reader);
  CHECK_FALSE(status.ok());
  CHECK(status.message.find("sizes do not fit") != std::string::npos);
}

}  // namespace
}  // namespace penstock::ring
