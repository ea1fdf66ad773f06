#include "ring/memory_limit.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A machine made of files.
class FakeRoot {
 public:
  FakeRoot() {
    char pattern[] = "/tmp/penstock-root-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    path_ = pattern;
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = path_ + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("without cgroups the machine's available memory counts") {
  FakeRoot root;
  root.Write("/proc/meminfo",
             "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\n");
  const MemoryAtHand at_hand = ReadMemoryAtHand(root.path());
  CHECK(at_hand.bytes == 8 * kMiB);
  CHECK(at_hand.source == "the machine has 16.0 MiB in all");
}

TEST_CASE(
    "cgroup v2: the smallest limit on the way up, less what is used and cannot be taken back") {
  FakeRoot root;
  root.Write("/proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 99999999 kB\n");
  root.Write("/proc/self/cgroup", "0::/outer/inner\n");
  root.Write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  root.Write("/sys/fs/cgroup/outer/inner/memory.current", "1048576\n");
  root.Write("/sys/fs/cgroup/outer/memory.max", "268435456\n");
  root.Write("/sys/fs/cgroup/outer/memory.current", "209715200\n");
  root.Write("/sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 104857600\nx 3\n");
  const MemoryAtHand at_hand = ReadMemoryAtHand(root.path());
  CHECK(at_hand.bytes == 156 * kMiB);
  CHECK(at_hand.source == "cgroup limit 256.0 MiB, 100.0 MiB in use");
}

TEST_CASE("what a process may use in all is its smallest limit, or the machine's memory") {
  FakeRoot root;
  root.Write("/proc/meminfo", "MemTotal:  1048576 kB\nMemAvailable:  10 kB\n");
  CHECK(ReadMemoryInAll(root.path()).bytes == 1024 * kMiB);
  CHECK(ReadMemoryInAll(root.path()).source == "the machine has 1.0 GiB");
  SECTION("cgroup v2") {
    root.Write("/proc/self/cgroup", "0::/outer/inner\n");
    root.Write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    root.Write("/sys/fs/cgroup/outer/memory.max", "268435456\n");
  }
  SECTION("cgroup v1") {
    root.Write("/proc/self/cgroup", "4:memory:/outer/inner\n");
    root.Write("/sys/fs/cgroup/memory/outer/inner/memory.limit_in_bytes", "9223372036854771712\n");
    root.Write("/sys/fs/cgroup/memory/outer/memory.limit_in_bytes", "268435456\n");
  }
  if (!std::filesystem::exists(root.path() + "/proc/self/cgroup")) return;
  CHECK(ReadMemoryInAll(root.path()).bytes == 256 * kMiB);
  CHECK(ReadMemoryInAll(root.path()).source == "its control group has 256.0 MiB");
}

TEST_CASE("page cache that is in use counts as free only where that is asked for") {
  FakeRoot root;
  root.Write("/proc/self/cgroup", "0::/\n");
  root.Write("/sys/fs/cgroup/memory.max", "104857600\n");
  root.Write("/sys/fs/cgroup/memory.current", "94371840\n");
  root.Write("/sys/fs/cgroup/memory.stat",
             "anon 1\ninactive_file 10485760\nactive_file 52428800\n");
  CHECK(ReadMemoryAtHand(root.path()).bytes == 20 * kMiB);
  CHECK(ReadMemoryAtHand(root.path(), CachedFiles::kAll).bytes == 70 * kMiB);
}

TEST_CASE("cgroup v1, in a container that sees only its own mount") {
  FakeRoot root;
  root.Write("/proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 99999999 kB\n");
  root.Write("/proc/self/cgroup", "9:name=systemd:/x\n5:cpu,memory:/docker/abc\n0::/\n");
  root.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n");
  root.Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "16777216\n");
  const MemoryAtHand at_hand = ReadMemoryAtHand(root.path());
  CHECK(at_hand.bytes == 48 * kMiB);
}

TEST_CASE("no limit in v1 is a huge number") {
  FakeRoot root;
  root.Write("/proc/self/cgroup", "5:memory:/\n");
  root.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "16777216\n");
  CHECK(ReadMemoryAtHand(root.path()).bytes == UINT64_MAX);
}

TEST_CASE("a cgroup over its limit has nothing left") {
  FakeRoot root;
  root.Write("/proc/self/cgroup", "0::/\n");
  root.Write("/sys/fs/cgroup/memory.max", "1000\n");
  root.Write("/sys/fs/cgroup/memory.current", "5000\n");
  CHECK(ReadMemoryAtHand(root.path()).bytes == 0);
}

TEST_CASE("fault 34: what does not fit is refused with the figures") {
  const MemoryAtHand at_hand = {64 * kMiB, "cgroup limit 256.0 MiB, 192.0 MiB in use"};
  CHECK(CheckMemory("a ring", 32 * kMiB, at_hand).ok());
  const Status status = CheckMemory("a ring of 3 slots of 12.0 MiB", 36 * kMiB, at_hand);
  CHECK(status.code == Code::kResourceExhausted);
  CHECK(status.message ==
        "a ring of 3 slots of 12.0 MiB does not fit in memory: it needs 36.0 MiB and 32.0 MiB to "
        "spare, 64.0 MiB are available (cgroup limit 256.0 MiB, 192.0 MiB in use)");
  CHECK_FALSE(CheckMemory("a ring", UINT64_MAX - 5, at_hand).ok());
}

TEST_CASE("this machine's memory can be read") {
  const MemoryAtHand at_hand = ReadMemoryAtHand();
  CHECK(at_hand.bytes > kMiB);
  CHECK(at_hand.bytes < uint64_t{1} << 50);
}

}  // namespace
}  // namespace penstock::ring
