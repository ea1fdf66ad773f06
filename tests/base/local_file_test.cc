#include "base/local_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/rooted_file_system.h"
#include "base/shown_text.h"
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

std::vector<std::string> Paths(FileSystem& files, const std::string& pattern) {
  std::vector<std::string> paths;
  const auto listed = files.List(pattern);
  if (!listed.ok()) return {std::string(listed.status().message())};
  for (const ListedFile& file : *listed) paths.push_back(file.path);
  return paths;
}

TEST_CASE("A path that is there is taken for itself, and only others for globs") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path();
  const auto write = [&](const std::string& name) { std::ofstream(folder + name) << name; };
  for (const char* name : {"/fold[1]", "/d[1]", "/d1"})
    REQUIRE(mkdir((folder + name + std::string(name[1] == 'f' ? ".x" : "")).c_str(), 0700) == 0);
  for (const char* name : {"/a[1].x", "/a1.x", "/what?", "/whatX", "/b1.x", "/back\\[2]", "/back2",
                           "/d[1]/in.x", "/d1/in.x", "/d1/other.x"})
    write(name);
  auto rooted = MakeRootedFileSystem({folder});
  REQUIRE(rooted.ok());
  using List = std::vector<std::string>;
  for (FileSystem* files : {&LocalFileSystem(), rooted->get()}) {
    CHECK(Paths(*files, folder + "/a[1].x") == List{folder + "/a[1].x"});
    CHECK(Paths(*files, folder + "/what?") == List{folder + "/what?"});
    CHECK(Paths(*files, folder + "/b[1].x") == List{folder + "/b1.x"});
    CHECK(Paths(*files, folder + "/back\\[2]") == List{folder + "/back\\[2]"});
    // Folders in front of a glob, too.
    CHECK(Paths(*files, folder + "/d[1]/*.x") == List{folder + "/d[1]/in.x"});
    CHECK(Paths(*files, folder + "/d[12]/*.x") ==
          List{folder + "/d1/in.x", folder + "/d1/other.x"});
    const auto listed = files->List(folder + "/a[1].x");
    REQUIRE(listed.ok());
    CHECK(listed->at(0).size_bytes == 7);
    CHECK(listed->at(0).version == (*files->Open(folder + "/a[1].x"))->version());
  }
}

TEST_CASE("Braces are a choice, as in a shell, but in the name of what is there") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path();
  for (const char* name : {"/a.x", "/b.x", "/c.y", "/d{1,2}.x", "/d1.x"})
    std::ofstream(folder + name) << name;
  auto rooted = MakeRootedFileSystem({folder});
  REQUIRE(rooted.ok());
  using List = std::vector<std::string>;
  for (FileSystem* files : {&LocalFileSystem(), rooted->get()}) {
    CHECK(Paths(*files, folder + "/{b,a,none}.x") == List{folder + "/a.x", folder + "/b.x"});
    CHECK(Paths(*files, folder + "/{*.y,[ab].x}") ==
          List{folder + "/a.x", folder + "/b.x", folder + "/c.y"});
    // What both sides match comes once.
    CHECK(Paths(*files, folder + "/{a,?}.x") == List{folder + "/a.x", folder + "/b.x"});
    CHECK(Paths(*files, folder + "/d{1,2}.x") == List{folder + "/d{1,2}.x"});
    CHECK(Paths(*files, folder + "/d\\{1,2\\}.*") == List{folder + "/d{1,2}.x"});
    CHECK(Paths(*files, folder + "/d{1,3}.x") == List{folder + "/d1.x"});
    CHECK_THAT(Paths(*files, folder + "/{x,y}")[0], Catch::Contains("no file matches the glob"));
  }
}

TEST_CASE("A version changes with the file, whatever time somebody gives it, and with chmod") {
  const test::ScratchFolder scratch;
  const std::string path = scratch / "a";
  std::ofstream(path) << "one";
  const auto version = [&] { return LocalFileSystem().List(path)->at(0).version; };
  const FileVersion first = version();
  CHECK(version() == first);
  struct stat status;
  REQUIRE(stat(path.c_str(), &status) == 0);
  const timespec times[2] = {status.st_atim, status.st_mtim};
  const auto opened = *LocalFileSystem().Open(path);
  std::ofstream(path) << "two";
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  const FileVersion second = version();
  CHECK(second != first);
  CHECK(second.modified_ns == first.modified_ns);
  CHECK(opened->version() == first);
  CHECK(opened->VersionNow() == second);
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  CHECK(version() != second);
  // Which is no reason to end what is running.
  CHECK(version().HasContentOf(second));
  CHECK(LocalFileSystem().OpenListed({path, 3, second}).ok());
  CHECK(LocalFileSystem().OpenListed({path, 4, second}).status().code() ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE(
    "fault 29: an address is refused with what to do, and no file of that name is looked for") {
  const test::ScratchFolder scratch;
  auto rooted = MakeRootedFileSystem({scratch.path()});
  REQUIRE(rooted.ok());
  for (FileSystem* files : {&LocalFileSystem(), rooted->get()}) {
    // What stands behind a question mark may be a secret.
    for (const auto& [path, shown] :
         {std::pair<std::string, std::string>("s3://bucket/a", "s3://bucket/a"),
          {"gs://bucket/*.tfrecord", "gs://bucket/*.tfrecord"},
          {"https://host/a?b=c", "https://host/a"}}) {
      CAPTURE(path);
      for (const absl::Status& status : {files->List(path).status(), files->Open(path).status()}) {
        CHECK(status.code() == absl::StatusCode::kInvalidArgument);
        CHECK_THAT(std::string(status.message()),
                   Catch::StartsWith("expected a path of this machine, found an address: ") &&
                       Catch::Contains("mount") && Catch::EndsWith("(" + shown + ")"));
      }
    }
    CHECK_THAT(std::string(files->Open("file:///a").status().message()),
               Catch::Contains("write the path alone"));
    // Which a daemon may be told to read, and which none reads.
    const std::string allow = "remote { allow }";
    CHECK_THAT(std::string(files->Open("s3://bucket/a").status().message()),
               Catch::Contains(allow));
    CHECK_THAT(std::string(files->Open("az://container/a").status().message()),
               !Catch::Contains(allow));
  }
  CHECK_FALSE(LocalFileSystem().Open(scratch / "a://b").status().code() ==
              absl::StatusCode::kInvalidArgument);
}

TEST_CASE("Text for a terminal shows control characters, and everything else as it is") {
  CHECK(ShownText("a\x1b[2Jb\rc\x7f\xc2\x9b d\te\n\xc3\xa4\xc2\xa0\xff") ==
        "a\\x1b[2Jb\\x0dc\\x7f\\u009b d\te\n\xc3\xa4\xc2\xa0\xff");
  CHECK(ShownText("\xc2") == "\xc2");
}

}  // namespace
}  // namespace penstock::testing
