#include "base/numa_node.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

// Nodes as /sys shows them.
class Nodes {
 public:
  explicit Nodes(const std::string& online) { Write("online", online + "\n"); }
  void Add(int node, const std::string& cpulist) {
    Write("node" + std::to_string(node) + "/cpulist", cpulist + "\n");
  }
  std::string folder() const { return folder_ / "nodes"; }

 private:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::string(folder_ / ("nodes/" + name));
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  const test::ScratchFolder folder_;
};

// The first processor that this thread may use.
int FirstUsable() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
  int processor = 0;
  while (!CPU_ISSET(processor, &set)) ++processor;
  return processor;
}

TEST_CASE("lists of numbers are read as the kernel writes them") {
  const struct {
    std::string text;
    std::optional<std::vector<int>> numbers;
  } kCases[] = {{"0\n", {{0}}},
                {"0-3", {{0, 1, 2, 3}}},
                {"0-1,8,10-11\n", {{0, 1, 8, 10, 11}}},
                {"\n", std::vector<int>()},
                {"", std::vector<int>()},
                {"1023", {{1023}}},
                {"1024", std::nullopt},
                {"3-1", std::nullopt},
                {"0-4000000000", std::nullopt},
                {"-1", std::nullopt},
                {"1,,2", std::nullopt},
                {"0-1-2", std::nullopt},
                {"all", std::nullopt}};
  for (const auto& one : kCases) {
    CAPTURE(one.text);
    CHECK(ParseNumberList(one.text) == one.numbers);
  }
}

TEST_CASE("a node's processors are those that may be used") {
  const int usable = FirstUsable();
  Nodes nodes("0-1,4");
  nodes.Add(1, std::to_string(usable) + ",1020-1023");
  const auto processors = ProcessorsOfNode(1, nodes.folder());
  REQUIRE(processors.ok());
  CHECK(*processors == std::vector<int>{usable});
}

TEST_CASE("fault 37: a node that is absent, has no processors, or may not be used, is named") {
  Nodes nodes("0-1,4");
  nodes.Add(1, "");
  nodes.Add(4, "1020-1023");
  CHECK(ProcessorsOfNode(2, nodes.folder()).status() ==
        absl::NotFoundError("there is no NUMA node 2: this machine has 0-1,4"));
  CHECK(ProcessorsOfNode(1, nodes.folder()).status() ==
        absl::FailedPreconditionError("NUMA node 1 has no processors"));
  CHECK(ProcessorsOfNode(4, nodes.folder()).status() ==
        absl::FailedPreconditionError(
            "none of the processors of NUMA node 4 (1020-1023) may be used: the affinity or the "
            "cpuset of penstockd leaves them out"));
  // A kernel without NUMA, or a container that shows none of it.
  const test::ScratchFolder none;
  CHECK(absl::IsNotFound(ProcessorsOfNode(0, none / "nodes").status()));
}

TEST_CASE("a thread runs where it is told to, or is told why not") {
  const int usable = FirstUsable();
  std::thread([usable] {
    CHECK(RunOn({usable}).ok());
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
    CHECK(CPU_COUNT(&set) == 1);
    CHECK(CPU_ISSET(usable, &set));
    CHECK_FALSE(RunOn({1023}).ok());
  }).join();
}

TEST_CASE("numbers of nodes have a range") {
  CHECK(CheckNumaNode("numa_node", -1).ok());
  CHECK(CheckNumaNode("numa_node", 1023).ok());
  CHECK(CheckNumaNode("numa_node", 1024).message() ==
        "numa_node out of range: 1024 is not -1 (none) or in [0, 1023]");
  CHECK_FALSE(CheckNumaNode("numa_node", -2).ok());
}

}  // namespace
}  // namespace penstock
