// What a path may lead to when the daemon's files are confined (fault 55).

#include "base/rooted_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/local_file.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// FOLDER/root is the root; FOLDER/outside holds a secret.
struct Tree {
  Tree() {
    fs::create_directories(folder / "root/a");
    fs::create_directories(folder / "outside");
    for (const std::string name : {"root/a/1.txt", "root/a/2.txt", "outside/secret.txt"})
      std::ofstream(folder / name) << "12345";
    fs::create_symlink("a/1.txt", folder / "root/inside");
    fs::create_symlink("../outside/secret.txt", folder / "root/out");
    fs::create_symlink(folder / "outside", folder / "root/out-folder");
    fs::create_symlink("/proc/self/root" + (folder / "outside/secret.txt"), folder / "root/magic");
    REQUIRE(mkfifo((folder / "root/fifo").c_str(), 0600) == 0);
    auto made = MakeRootedFileSystem({folder / "root"});
    REQUIRE(made.ok());
    files = *std::move(made);
  }
  test::ScratchFolder folder;
  std::unique_ptr<FileSystem> files;
};

TEST_CASE("fault 55: nothing outside of the root is opened") {
  const Tree tree;
  const struct {
    std::string path;
    absl::StatusCode code;
  } kCases[] = {
      {"root/a/1.txt", absl::StatusCode::kOk},
      {"root/inside", absl::StatusCode::kOk},
      {"root/a/../a/2.txt", absl::StatusCode::kOk},
      {"root/none", absl::StatusCode::kNotFound},
      {"root/out", absl::StatusCode::kPermissionDenied},
      {"root/out-folder/secret.txt", absl::StatusCode::kPermissionDenied},
      {"root/magic", absl::StatusCode::kPermissionDenied},
      {"root/../outside/secret.txt", absl::StatusCode::kPermissionDenied},
      {"root/fifo", absl::StatusCode::kPermissionDenied},
      {"root/a", absl::StatusCode::kInvalidArgument},  // a folder
      {"outside/secret.txt", absl::StatusCode::kPermissionDenied},
      {"rooted", absl::StatusCode::kPermissionDenied},
  };
  for (const auto& c : kCases) {
    CAPTURE(c.path);
    const auto file = tree.files->Open(tree.folder / c.path);
    CHECK(file.status().code() == c.code);
    if (file.ok()) CHECK((*file)->size() == 5);
  }
  CHECK(tree.files->Open("/etc/passwd").status().code() == absl::StatusCode::kPermissionDenied);
}

TEST_CASE("globs list the root and follow no link out of it") {
  const Tree tree;
  const auto names = [&](const std::string& pattern) {
    const auto files = tree.files->List(tree.folder / pattern);
    std::vector<std::string> found;
    if (files.ok()) {
      for (const ListedFile& file : *files)
        found.push_back(file.path.substr(tree.folder.path().size()));
    }
    return found;
  };
  CHECK(names("root/a/*.txt") == std::vector<std::string>{"/root/a/1.txt", "/root/a/2.txt"});
  CHECK(names("root/*/*.txt") == std::vector<std::string>{"/root/a/1.txt", "/root/a/2.txt"});
  CHECK(names("root/out-folder/*").empty());
  CHECK(names("root/../outside/*").empty());
  CHECK(tree.files->List(tree.folder / "out*/*").status().code() ==
        absl::StatusCode::kPermissionDenied);
}

TEST_CASE("the kernel's files and devices are never read, with and without roots") {
  const auto everything = MakeRootedFileSystem({"/"});
  REQUIRE(everything.ok());
  for (const std::string path :
       {"/proc/self/environ", "/sys/kernel/mm/transparent_hugepage/enabled", "/dev/zero",
        "/proc/self/fd/0"}) {
    if (!fs::exists(path)) continue;
    CAPTURE(path);
    CHECK((*everything)->Open(path).status().code() == absl::StatusCode::kPermissionDenied);
    CHECK(LocalFileSystem().Open(path).status().code() == absl::StatusCode::kPermissionDenied);
  }
}

TEST_CASE("fault 55: links that lead in a circle are an error with the path") {
  const Tree tree;
  fs::create_symlink("second", tree.folder / "root/first");
  fs::create_symlink("first", tree.folder / "root/second");
  for (const std::string name : {"root/first", "root/first/a.txt", "root/first/*.txt"}) {
    INFO(name);
    const std::string path = tree.folder / name;
    const bool is_glob = name.find('*') != name.npos;
    const absl::Status here =
        is_glob ? LocalFileSystem().List(path).status() : LocalFileSystem().Open(path).status();
    CHECK(here.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(std::string(here.message()),
               Catch::Contains(path) && Catch::Contains("lead in a circle"));
    // A glob follows no link that leads nowhere.
    const absl::Status below =
        is_glob ? tree.files->List(path).status() : tree.files->Open(path).status();
    CHECK(below.code() ==
          (is_glob ? absl::StatusCode::kNotFound : absl::StatusCode::kPermissionDenied));
  }
  LocalFileLook look;
  CHECK(look.At(tree.folder / "root/first").status().code() ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("a FIFO's other end notices nothing") {
  const Tree tree;
  const std::string fifo = tree.folder / "root/fifo";
  for (FileSystem* files : {tree.files.get(), &LocalFileSystem()}) {
    CHECK_FALSE(files->Open(fifo).ok());
    // A writer that does not wait fails as long as nobody reads.
    CHECK(open(fifo.c_str(), O_WRONLY | O_NONBLOCK) == -1);
  }
}

TEST_CASE("a root that is missing is an error with its name") {
  const auto files = MakeRootedFileSystem({"/nowhere/data"});
  CHECK(files.status().code() == absl::StatusCode::kNotFound);
  CHECK(std::string(files.status().message()).find("/nowhere/data") != std::string::npos);
}

}  // namespace
}  // namespace penstock
