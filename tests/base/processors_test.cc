#include "base/processors.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

TEST_CASE("a quota is so many processors, or none at all") {
  const struct {
    std::string text;
    double processors;
  } kCases[] = {{"max 100000\n", 0}, {"150000 100000\n", 1.5}, {"50000 100000", 0.5}, {"", 0},
                {"100000", 0},       {"-5 100000", 0},         {"100000 0", 0},       {"a b", 0}};
  for (const auto& one : kCases) {
    CAPTURE(one.text);
    CHECK(ProcessorsOfQuota(one.text) == one.processors);
  }
}

TEST_CASE("a half of a processor and more is kept busy by a thread of its own") {
  CHECK(ThreadsFor(0.25) == 1);
  CHECK(ThreadsFor(1.4) == 1);
  CHECK(ThreadsFor(1.5) == 2);
  CHECK(ThreadsFor(8) == 8);
}

TEST_CASE("the least quota up to the root holds") {
  const test::ScratchFolder folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path whole = std::string(folder / path);
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  };
  write("own", "12:cpu:/elsewhere\n0::/a/b\n");
  write("root/a/b/cpu.max", "max 100000\n");
  const double affinity = UsableProcessors(folder / "root", folder / "own");
  CHECK(affinity >= 1);
  write("root/a/cpu.max", "25000 100000\n");
  CHECK(UsableProcessors(folder / "root", folder / "own") == 0.25);
  write("root/a/b/cpu.max", "10000 100000\n");
  CHECK(UsableProcessors(folder / "root", folder / "own") == Approx(0.1));
  // Neither of version 2, nor readable.
  CHECK(UsableProcessors(folder / "root", folder / "none") == affinity);
}

}  // namespace
}  // namespace penstock
