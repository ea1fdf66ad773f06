// Functions as clients hand them over: which are taken, and how long the daemon has them.
#include "server/python/function_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"

namespace penstock::python {
namespace {

// A client's descriptor of a function, and its path in a spec.
struct Handed {
  ring::Descriptor file;
  std::string path;
};

Handed Hand(const std::string& code, bool is_sealed = true) {
  const std::string header = absl::StrCat(
      R"({"code": ")", code,
      R"(", "program": "/bin/sh", "flags": [], "script": "", "folder": "", "environment": ["A=1"]})");
  const auto bytes = static_cast<uint64_t>(header.size());
  std::string text = "penstock python\n";
  text.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  text += header;
  Handed handed{ring::Descriptor(memfd_create("function", MFD_CLOEXEC | MFD_ALLOW_SEALING)), ""};
  REQUIRE(write(handed.file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  if (is_sealed)
    REQUIRE(fcntl(handed.file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  handed.path = absl::StrCat("/proc/", getpid(), "/fd/", handed.file.get());
  return handed;
}

// For a pipeline of the daemon's own user.
absl::StatusOr<FunctionFile> Open(const std::string& path, const std::string& code) {
  return OpenFunctionFile(path, code, geteuid());
}

TEST_CASE("A function stays open as long as somebody has it, though its maker has closed it") {
  Handed handed = Hand("one");
  auto function = Open(handed.path, "one");
  REQUIRE(function.ok());
  CHECK(function->environment == std::vector<std::string>{"A=1"});
  handed.file = ring::Descriptor();
  auto again = Open(handed.path, "one");
  REQUIRE(again.ok());
  CHECK(again->file == function->file);
  CHECK(again->program == "/bin/sh");
  // As the last pipeline that has it ends, it has gone.
  *function = FunctionFile();
  CHECK(Open(handed.path, "one").ok());
  *again = FunctionFile();
  const absl::Status gone = Open(handed.path, "one").status();
  CHECK(absl::IsFailedPrecondition(gone));
  CHECK(gone.message().find("not beyond a restart; make the pipeline again") != std::string::npos);
}

TEST_CASE("Another function at the same path is not taken for the one that was there") {
  const Handed handed = Hand("two");
  CHECK(Open(handed.path, "two").ok());
  const absl::Status other = Open(handed.path, "three").status();
  CHECK(absl::IsFailedPrecondition(other));
  CHECK(other.message().find("expected the code three, found two") != std::string::npos);
  // Who names no code takes what is there.
  CHECK(Open(handed.path, "").ok());
}

TEST_CASE("A file that may change is no function") {
  const Handed handed = Hand("four", /*is_sealed=*/false);
  CHECK(absl::IsInvalidArgument(Open(handed.path, "four").status()));
}

TEST_CASE("fault 64: a daemon opens no function for another user, not even one of its own user's") {
  const Handed handed = Hand("five");
  const auto other = OpenFunctionFile(handed.path, "five", geteuid() + 1);
  REQUIRE(other.ok());
  // Its user's processes may have it, and start its workers.
  CHECK(other->file == nullptr);
  CHECK(other->program.empty());
  CHECK(other->user == geteuid() + 1);
  CHECK(other->path == handed.path);
  CHECK(other->code == "five");
  // By a path alone anything might be meant.
  CHECK(absl::IsInvalidArgument(OpenFunctionFile(handed.path, "", geteuid() + 1).status()));
  CHECK(absl::IsInvalidArgument(
      OpenFunctionFile(handed.path, std::string(1000, 'c'), geteuid() + 1).status()));
}

TEST_CASE(
    "Nobody's function is opened: without a user, of a certificate, of a user who is not known") {
  const Handed handed = Hand("six");
  CHECK(absl::IsPermissionDenied(OpenFunctionFile(handed.path, "six", std::nullopt).status()));
  CHECK(absl::IsPermissionDenied(OpenFunctionFile(handed.path, "six", UINT32_MAX).status()));
  CHECK(absl::IsPermissionDenied(OpenFunctionFile(handed.path, "six", UINT32_MAX - 1).status()));
}

}  // namespace
}  // namespace penstock::python
