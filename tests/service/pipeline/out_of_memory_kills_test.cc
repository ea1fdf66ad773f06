// Fault 35, of what one pipeline or caller may take from the others.
#include "server/service/pipeline/out_of_memory_kills.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock::test {
namespace {

// What a kernel tells.
class Root {
 public:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = folder_.path() + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Machine(int kills) {
    Write("/proc/vmstat", absl::StrCat("nr_free_pages 12\noom_kill ", kills, "\nlast 1\n"));
  }
  void Boot(const std::string& id) { Write("/proc/sys/kernel/random/boot_id", id + "\n"); }
  void GroupV1(const std::string& path, int kills) {
    Write("/proc/self/cgroup", "5:cpu,memory:" + path + "\n0::/x\n");
    Write("/sys/fs/cgroup/memory" + path + "/memory.oom_control",
          absl::StrCat("oom_kill_disable 0\nunder_oom 0\noom_kill ", kills, "\n"));
  }
  void GroupV2(const std::string& path, const std::string& file, int kills) {
    Write("/proc/self/cgroup", "0::" + path + "\n");
    Write("/sys/fs/cgroup" + path + "/" + file,
          absl::StrCat("low 0\noom 9\noom_kill ", kills, "\noom_group_kill 0\n"));
  }
  std::optional<uint64_t> Count() const { return CountOutOfMemoryKills(*state_, folder_.path()); }
  const StateFolder& state() const { return *state_; }

 private:
  ScratchFolder folder_;
  const std::unique_ptr<StateFolder> state_ = *StateFolder::Open(folder_ / "state");
};

TEST_CASE("without control groups the machine's count decides") {
  Root root;
  CHECK_FALSE(root.Count());
  root.Machine(7);
  const auto first = root.Count();
  REQUIRE(first);
  CHECK(root.Count() == first);
  root.Machine(8);
  CHECK(root.Count() > first);
}

TEST_CASE("a control group's own count decides, whatever else the kernel ends") {
  Root root;
  const bool is_v1 = GENERATE(true, false);
  const auto set = [&](int kills) {
    if (is_v1) {
      root.GroupV1("/a/b", kills);
    } else {
      root.GroupV2("/a/b", "memory.events.local", kills);
      // With those of the groups in it.
      root.GroupV2("/a/b", "memory.events", kills + 5);
    }
  };
  set(1);
  root.Machine(10);
  const auto first = root.Count();
  REQUIRE(first);
  // A neighbour's death.
  root.Machine(11);
  CHECK(root.Count() == first);
  set(2);
  root.Machine(12);
  const auto second = root.Count();
  CHECK(second > first);
  CHECK(root.Count() == second);
}

TEST_CASE("in a container the mount's root is the group") {
  Root root;
  root.GroupV1("", 3);
  root.Write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  root.Machine(10);
  const auto first = root.Count();
  root.Machine(11);
  CHECK(root.Count() == first);
}

TEST_CASE("of a group that was made anew the machine's count decides") {
  Root root;
  root.GroupV1("/service", 4);
  root.Machine(10);
  const auto first = root.Count();
  // The old one is there still, so that the new one is another.
  root.GroupV1("/again", 0);
  root.Machine(11);
  const auto second = root.Count();
  CHECK(second > first);
  root.GroupV1("/once more", 0);
  CHECK(root.Count() == second);
}

TEST_CASE("what ended with the machine was not ended for want of memory") {
  Root root;
  root.Boot("one");
  root.Machine(1);
  const auto first = root.Count();
  root.Boot("two");
  root.Machine(9);
  CHECK(root.Count() == first);
  root.Machine(10);
  CHECK(root.Count() > first);
}

TEST_CASE("a file that is no daemon's begins anew") {
  Root root;
  root.Machine(3);
  REQUIRE(root.state().Write("kills", "what is this\n", StateFolder::Durability::kCrash).ok());
  const auto first = root.Count();
  REQUIRE(first);
  root.Machine(4);
  CHECK(root.Count() > first);
}

}  // namespace
}  // namespace penstock::test
