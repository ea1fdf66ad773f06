// A ring in the memory of a NUMA node, asked of the kernel itself. Node 0 is on every machine that
// has any.
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "ring/numa_memory.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

// The policy of the page at `address`: MPOL_…, and the first node that it names; -1 where the
// kernel does not tell.
std::pair<int, int> PolicyAt(const void* address) {
  int mode = -1;
  unsigned long nodes[16] = {};
  if (syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof(nodes), address, MPOL_F_ADDR) != 0)
    return {-1, -1};
  return {mode, nodes[0] == 0 ? -1 : __builtin_ctzl(nodes[0])};
}

bool HasNuma() {
  char page[1];
  return PolicyAt(page).first >= 0 && access("/sys/devices/system/node/node0", F_OK) == 0;
}

// As HasNuma(); a test that ends without it says so.
bool HasNumaOrWarn() {
  if (HasNuma()) return true;
  WARN("nothing was tried: this kernel knows of no NUMA node");
  return false;
}

SegmentOptions OnNode(int node) {
  SegmentOptions options = SmallRing();
  options.numa_node = node;
  return options;
}

TEST_CASE("fault 37: a ring asks for the memory of its node, for slots of later and for all maps") {
  if (!HasNumaOrWarn()) return;
  auto writer = MakeWriter(OnNode(0));
  CHECK(writer->numa_error() == 0);
  CHECK(PolicyAt(writer->tensor(0, 0)) == std::pair(int{MPOL_PREFERRED}, 0));
  CHECK(writer->bytes_on_numa_node() == writer->memory_bytes());

  // Another map of the same file, as a client has one.
  ConsumerHandle handle;
  REQUIRE(writer->Attach("a", 1, &handle).ok());
  void* map = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, handle.segment_fd, 0);
  REQUIRE(map != MAP_FAILED);
  CHECK(PolicyAt(map) == std::pair(int{MPOL_PREFERRED}, 0));
  munmap(map, 4096);

  const uint64_t before = writer->memory_bytes();
  REQUIRE(writer->Attach("b", 1, &handle).ok());
  REQUIRE(writer->memory_bytes() > before);
  CHECK(writer->bytes_on_numa_node() == writer->memory_bytes());
  CHECK(Produce(writer.get()) > 0);
}

TEST_CASE("without a node the kernel decides") {
  auto writer = MakeWriter();
  CHECK(writer->numa_error() == 0);
  CHECK_FALSE(writer->bytes_on_numa_node());
  CHECK(PolicyAt(writer->tensor(0, 0)).first != MPOL_PREFERRED);
}

TEST_CASE("fault 37: a ring for a node that is absent works without it") {
  for (const int node : {1000, 1023, kMaxNumaNodes}) {
    CAPTURE(node);
    auto writer = MakeWriter(OnNode(node));
    CHECK(writer->numa_error() != 0);
    if (HasNuma()) CHECK(writer->numa_error() == EINVAL);
    CHECK(writer->bytes_on_numa_node().value_or(0) == 0);
    CHECK(Produce(writer.get()) == 3);
  }
}

TEST_CASE("memory is counted where it lies, and only what is there") {
  if (!HasNumaOrWarn()) return;
  constexpr uint64_t kBytes = 9 << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  REQUIRE(PreferNumaNode(memory, kBytes, 0) == 0);
  CHECK(BytesOnNumaNode(memory, kBytes, 0) == uint64_t{0});
  std::memset(memory, 1, kBytes);
  CHECK(BytesOnNumaNode(memory, kBytes, 0) == kBytes);
  CHECK(BytesOnNumaNode(memory, kBytes, 1) == uint64_t{0});
  munmap(memory, kBytes);
  // More than can be looked at in 2 MiB.
  constexpr uint64_t kMuch = (uint64_t{1} << 30) + 4096;
  memory = mmap(nullptr, kMuch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
  REQUIRE(memory != MAP_FAILED);
  CHECK(BytesOnNumaNode(memory, kMuch, 0) == uint64_t{0});
  munmap(memory, kMuch);
}

}  // namespace
}  // namespace penstock::ring
