#include "server/base/local_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock::testing {
namespace {

TEST_CASE("a look at a file says what opening it says") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path();
  const auto write = [](const std::string& path, const char* text) { std::ofstream(path) << text; };
  REQUIRE(mkdir((folder + "/sub").c_str(), 0700) == 0);
  write(folder + "/a", "one");
  write(folder + "/b", "a longer one");
  write(folder + "/sub/a", "of another size");
  write(folder + "/private", "mine");
  REQUIRE(chmod((folder + "/private").c_str(), 0200) == 0);
  REQUIRE(symlink("b", (folder + "/link").c_str()) == 0);
  REQUIRE(symlink("nowhere", (folder + "/dangling").c_str()) == 0);
  REQUIRE(mkfifo((folder + "/fifo").c_str(), 0600) == 0);

  LocalFileLook look;
  const std::vector<std::string> paths = {
      folder + "/a",
      folder + "/b",
      folder + "/sub/a",
      folder + "/a",
      folder + "/private",
      folder + "/link",
      folder + "/dangling",
      folder + "/fifo",
      folder + "/sub",
      folder + "/sub/",
      folder + "/none/a",
      folder + "/a/a",
      folder + "/b",
      "/proc/self/maps",
      "/proc/version",
      "/dev/zero",
      "no-such-file",
      "",
      "/",
  };
  for (const std::string& path : paths) {
    CAPTURE(path);
    const auto opened = LocalFileSystem().Open(path);
    const auto seen = look.At(path);
    // A FIFO, a folder and a device are refused without being opened; nothing here blocks.
    REQUIRE(seen.status().code() == opened.status().code());
    if (!opened.ok()) continue;
    CHECK(seen->size_bytes == (*opened)->size());
    CHECK(seen->version == (*opened)->version());
  }
  CHECK(look.At(folder + "/b")->size_bytes == 12);
  CHECK(look.At(folder + "/sub/a")->size_bytes == 15);
}

}  // namespace
}  // namespace penstock::testing
