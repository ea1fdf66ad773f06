#include "client/ctl/byte_rate.h"

#include "tests/support/catch.h"

namespace penstock::ctl {
namespace {

constexpr uint64_t kMib = 1 << 20;

TEST_CASE("a rate is that of what was moved, and what is left goes by all that is done") {
  CHECK(ShownRate(0, 0, 10 * kMib, 0) == "0 bytes of 10.0 MiB");
  CHECK(ShownRate(0, 0, 10 * kMib, 5) == "0 bytes of 10.0 MiB");
  CHECK(ShownRate(2 * kMib, 2 * kMib, 10 * kMib, 1) == "2.0 MiB of 10.0 MiB, 2.0 MiB/s, 0:04 left");
  // Half of it was there already.
  CHECK(ShownRate(2 * kMib, kMib, 10 * kMib, 1) == "2.0 MiB of 10.0 MiB, 1.0 MiB/s, 0:04 left");
  CHECK(ShownRate(kMib, kMib, 100 * kMib, 100) == "1.0 MiB of 100.0 MiB, 10.2 KiB/s, 2:45:00 left");
  CHECK(ShownRate(kMib, kMib, kMib, 1) == "1.0 MiB of 1.0 MiB, 1.0 MiB/s, 0:00 left");
  // More than was said, and for ever.
  CHECK(ShownRate(2 * kMib, 2 * kMib, kMib, 1) == "2.0 MiB of 1.0 MiB, 2.0 MiB/s, 0:00 left");
  CHECK(ShownRate(1, 1, kMib, 3600) == "1 bytes of 1.0 MiB, 0 bytes/s");
}

}  // namespace
}  // namespace penstock::ctl
