#include "server/engine/read/near_map.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;

TEST_CASE("A kept map knows what is in memory, of a read and of what comes behind it") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  std::ofstream(path, std::ios::binary) << std::string(kMiB, 'x');
  // A hole that nobody has looked at has no pages.
  REQUIRE(truncate(path.c_str(), 8 * kMiB) == 0);
  SharedMaps maps(UINT64_MAX);
  const auto file = *LocalFileSystem().Open(path);
  NearMap map(*maps.Get(*file), PageCacheView::kPages);
  const auto look = [&](uint64_t offset, uint64_t bytes, uint64_t ahead) {
    const NearMap::Nearness near = map.Look(*file, offset, bytes, ahead);
    return std::pair(near.range, near.ahead);
  };
  CHECK((look(0, 64 * kKiB, 512 * kKiB) == std::pair(true, true)));
  CHECK((look(960 * kKiB, 64 * kKiB, 0) == std::pair(true, true)));
  CHECK((look(960 * kKiB, 64 * kKiB, 512 * kKiB) == std::pair(true, false)));
  CHECK((look(4 * kMiB, 64 * kKiB, 512 * kKiB) == std::pair(false, false)));
  CHECK((look(1000 * kKiB, 2 * kMiB, 0) == std::pair(false, false)));
  // Behind the end there is nothing to wait for.
  {
    std::ofstream end(path, std::ios::binary | std::ios::in);
    end.seekp(8 * kMiB - 100);
    end << std::string(100, 'e');
  }
  CHECK((look(8 * kMiB - 100, 64 * kKiB, 512 * kKiB) == std::pair(true, true)));
}

TEST_CASE("A kept map of a file whose pages are not told of knows what is in memory") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  std::ofstream(path, std::ios::binary) << std::string(4 * kMiB, 'x');
  SharedMaps maps(UINT64_MAX);
  const auto file = *LocalFileSystem().Open(path);
  NearMap map(*maps.Get(*file), PageCacheView::kProbes);
  for (uint64_t offset = 0; offset < 4 * kMiB; offset += 64 * kKiB) {
    const NearMap::Nearness near = map.Look(*file, offset, 64 * kKiB, 512 * kKiB);
    CHECK(near.range);
    CHECK(near.ahead);
  }
}

TEST_CASE("What a kept map has seen in memory holds for a moment") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  std::ofstream(path, std::ios::binary) << std::string(kMiB, 'x');
  SharedMaps maps(UINT64_MAX);
  const auto file = *LocalFileSystem().Open(path);
  NearMap map(*maps.Get(*file), PageCacheView::kPages);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(map.Look(*file, 0, 64 * kKiB, 64 * kKiB).ahead);
  REQUIRE(truncate(path.c_str(), 0) == 0);
  REQUIRE(truncate(path.c_str(), kMiB) == 0);
  const bool is_known = map.Look(*file, 64 * kKiB, 64 * kKiB, 64 * kKiB).ahead;
  // On a machine that stands still in between, nothing can be said.
  if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100)) CHECK(is_known);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  CHECK(!map.Look(*file, 64 * kKiB, 64 * kKiB, 64 * kKiB).range);
}

TEST_CASE("A kept map that a disk is just ahead of sees what has come meanwhile") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  std::ofstream(path, std::ios::binary) << std::string(kMiB, 'x');
  REQUIRE(truncate(path.c_str(), 4 * kMiB) == 0);
  SharedMaps maps(UINT64_MAX);
  const auto file = *LocalFileSystem().Open(path);
  NearMap map(*maps.Get(*file), PageCacheView::kPages);
  CHECK_FALSE(map.Look(*file, 0, 64 * kKiB, 2 * kMiB).ahead);
  {
    std::ofstream more(path, std::ios::binary | std::ios::in);
    more.seekp(kMiB);
    more << std::string(2 * kMiB, 'y');
  }
  const NearMap::Nearness near = map.Look(*file, 64 * kKiB, 64 * kKiB, 2 * kMiB);
  CHECK(near.range);
  CHECK(near.ahead);
  CHECK_FALSE(map.Look(*file, 3 * kMiB, 64 * kKiB, 0).range);
}

}  // namespace
}  // namespace penstock
