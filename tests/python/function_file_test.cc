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

TEST_CASE("A function stays open as long as somebody has it, though its maker has closed it") {
  Handed handed = Hand("one");
  auto function = OpenFunctionFile(handed.path, "one");
  REQUIRE(function.ok());
  CHECK(function->environment == std::vector<std::string>{"A=1"});
  handed.file = ring::Descriptor();
  auto again = OpenFunctionFile(handed.path, "one");
  REQUIRE(again.ok());
  CHECK(again->file == function->file);
  CHECK(again->program == "/bin/sh");
  // As the last pipeline that has it ends, it has gone.
  *function = FunctionFile();
  CHECK(OpenFunctionFile(handed.path, "one").ok());
  *again = FunctionFile();
  const absl::Status gone = OpenFunctionFile(handed.path, "one").status();
  CHECK(absl::IsFailedPrecondition(gone));
  CHECK(gone.message().find("not beyond a restart; make the pipeline again") != std::string::npos);
}

TEST_CASE("Another function at the same path is not taken for the one that was there") {
  const Handed handed = Hand("two");
  CHECK(OpenFunctionFile(handed.path, "two").ok());
  const absl::Status other = OpenFunctionFile(handed.path, "three").status();
  CHECK(absl::IsFailedPrecondition(other));
  CHECK(other.message().find("expected the code three, found two") != std::string::npos);
  // Who names no code takes what is there.
  CHECK(OpenFunctionFile(handed.path, "").ok());
}

TEST_CASE("A file that may change is no function") {
  const Handed handed = Hand("four", /*is_sealed=*/false);
  CHECK(absl::IsInvalidArgument(OpenFunctionFile(handed.path, "four").status()));
}

}  // namespace
}  // namespace penstock::python
