// What the log does when nobody reads it (fault 67), and how its lines look.

#include "server/service/watch/log_output.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "ring/descriptor.h"
#include "server/service/daemon/daemon_config.h"
#include "spdlog/spdlog.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

struct Pipe {
  ring::Descriptor reading, writing;
};

Pipe MakePipe() {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  return {ring::Descriptor(ends[0]), ring::Descriptor(ends[1])};
}

std::string ReadSome(int fd) {
  std::string text(1 << 16, '\0');
  const ssize_t size = read(fd, text.data(), text.size());
  text.resize(size > 0 ? size : 0);
  return text;
}

v1::DaemonConfig Config(const std::string& text) {
  const auto config = ParseDaemonConfig(text, "c");
  REQUIRE(config.ok());
  return *config;
}

// The default logger as it was.
struct KeepLogger {
  std::shared_ptr<spdlog::logger> logger = spdlog::default_logger();
  ~KeepLogger() { spdlog::set_default_logger(logger); }
};

TEST_CASE("a line of text has a time, a letter for the level, and no line breaks") {
  const KeepLogger keep;
  const Pipe pipe = MakePipe();
  StartLog(Config(""), pipe.writing.get());
  spdlog::warn("two\nlines");
  spdlog::debug("not seen");
  const std::string line = ReadSome(pipe.reading.get());
  CHECK(line.substr(10, 1) == "T");
  CHECK(line.substr(line.find(' ')) == " W two lines\n");
}

TEST_CASE("control characters of names are shown in a line of text, and not done") {
  const KeepLogger keep;
  const Pipe pipe = MakePipe();
  StartLog(Config(""), pipe.writing.get());
  spdlog::warn("pipeline a\x1b[2Jb\r\x07 failed");
  const std::string line = ReadSome(pipe.reading.get());
  CHECK(line.substr(line.find(' ')) == " W pipeline a\\x1b[2Jb\\x0d\\x07 failed\n");
}

TEST_CASE("a line of JSON is an object, whatever bytes the message has") {
  const KeepLogger keep;
  const Pipe pipe = MakePipe();
  StartLog(Config("log_format: LOG_FORMAT_JSON"), pipe.writing.get());
  spdlog::error("a \"quote\" and \xff{}", std::string(9000, '\x01'));
  const std::string line = ReadSome(pipe.reading.get());
  CHECK(line.size() <= kMaxLineBytes);
  const auto object = nlohmann::json::parse(line);
  CHECK(object["level"] == "error");
  CHECK(object["message"].get<std::string>().rfind("a \"quote\" and ", 0) == 0);
}

TEST_CASE("the journal gets the level as it wants it") {
  const KeepLogger keep;
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const ring::Descriptor reading(ends[0]), writing(ends[1]);
  struct stat status;
  REQUIRE(fstat(writing.get(), &status) == 0);
  setenv("JOURNAL_STREAM", absl::StrCat(status.st_dev, ":", status.st_ino).c_str(), 1);
  StartLog(Config(""), writing.get());
  unsetenv("JOURNAL_STREAM");
  spdlog::info("hello");
  spdlog::error("trouble");
  CHECK(ReadSome(reading.get()) == "<6>hello\n<3>trouble\n");
}

TEST_CASE("lines that nobody reads are lost, counted and told later, and none waits") {
  const KeepLogger keep;
  const Pipe pipe = MakePipe();
  StartLog(Config("log_lines_per_cause: 10000"), pipe.writing.get());
  // A pipe holds 64 KiB; whoever waited for room would wait for ever.
  for (int i = 0; i < 2000; ++i) spdlog::info("{} {}", i, std::string(500, 'x'));
  std::string text = ReadSome(pipe.reading.get());
  while (text.find("1999 ") == text.npos && text.find("lost") == text.npos) {
    spdlog::info("again");
    text = ReadSome(pipe.reading.get());
  }
  CHECK(text.find(" lines of the log, which nobody took") != text.npos);
  // The pipe itself still waits: it may be shared with others.
  CHECK((fcntl(pipe.writing.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("a closed or broken standard error harms nobody") {
  const KeepLogger keep;
  signal(SIGPIPE, SIG_IGN);
  Pipe pipe = MakePipe();
  StartLog(Config(""), pipe.writing.get());
  { const ring::Descriptor closed = std::move(pipe.reading); }
  spdlog::info("into a broken pipe");
  StartLog(Config(""), 1 << 20);
  spdlog::info("into a descriptor that is not open");
}

TEST_CASE("more lines of one cause are left out, and their number is told") {
  const KeepLogger keep;
  const Pipe pipe = MakePipe();
  StartLog(Config("log_lines_per_cause: 3"), pipe.writing.get());
  for (int i = 0; i < 100; ++i) spdlog::info("knock {}", i);
  spdlog::info("another");
  const std::string text = ReadSome(pipe.reading.get());
  CHECK(text.find("knock 2") != text.npos);
  CHECK(text.find("knock 3") == text.npos);
  CHECK(text.find("another") != text.npos);
}

}  // namespace
}  // namespace penstock
