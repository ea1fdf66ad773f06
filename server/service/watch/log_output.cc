#include "server/service/watch/log_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/monotonic_clock.h"
#include "base/shown_text.h"
#include "ring/descriptor.h"
#include "server/service/watch/log_limiter.h"
#include "spdlog/sinks/sink.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// systemd says which descriptor's other end is the journal: DEVICE:INODE.
bool IsJournal(const struct stat& status) {
  const char* const journal = getenv("JOURNAL_STREAM");
  return journal != nullptr && absl::StrCat(status.st_dev, ":", status.st_ino) == journal;
}

enum class Form { kText, kJournal, kJson };

class LogSink final : public spdlog::sinks::sink {
 public:
  LogSink(v1::LogFormat format, int fd) : limiter_(1) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return;  // closed: nobody listens
    form_ = format == v1::LOG_FORMAT_JSON ? Form::kJson
            : IsJournal(status)           ? Form::kJournal
                                          : Form::kText;
    is_socket_ = S_ISSOCK(status.st_mode);
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
      own_ = ring::Descriptor(open(absl::StrCat("/proc/self/fd/", fd).c_str(),
                                   O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    }
    fd_ = own_ ? own_.get() : fd;
  }

  void Configure(int lines_per_cause) {
    std::lock_guard<std::mutex> lock(mutex_);
    limiter_.set_lines_per_cause(lines_per_cause);
  }

  void log(const spdlog::details::log_msg& message) override {
    const std::string text(message.payload.data(), message.payload.size());
    std::lock_guard<std::mutex> lock(mutex_);
    const LogLimiter::Verdict verdict = limiter_.Judge(text, MonotonicNs());
    if (!verdict.write) return;
    if (verdict.left_out > 0) {
      Write(message, absl::StrCat("left out ", verdict.left_out, " more lines like the next one"));
    }
    if (lost_ > 0 &&
        Write(message, absl::StrCat("lost ", lost_, " lines of the log, which nobody took"))) {
      lost_ = 0;
    }
    if (!Write(message, text)) ++lost_;
  }

  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  std::string Line(const spdlog::details::log_msg& message, const std::string& text) const {
    const auto level = spdlog::level::to_string_view(message.level);
    if (form_ == Form::kJournal) {
      // sd-daemon(3): what stands in front is the level as syslog numbers it.
      constexpr char kNumbers[] = {'7', '7', '6', '4', '3', '2'};
      return absl::StrCat("<", std::string(1, kNumbers[message.level]), ">", ShownText(text));
    }
    const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3S%Ez",
                                              absl::FromChrono(message.time), absl::UTCTimeZone());
    if (form_ == Form::kJson) {
      const nlohmann::ordered_json line = {
          {"time", time}, {"level", std::string(level.data(), level.size())}, {"message", text}};
      return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    return absl::StrFormat("%s %c %s", time, std::toupper(level.data()[0]), ShownText(text));
  }

  // Whether it was taken.
  bool Write(const spdlog::details::log_msg& message, const std::string& text) {
    if (fd_ < 0) return false;
    std::string line;
    // Escapes make a text longer.
    for (size_t room = kMaxLineBytes; line.empty() || line.size() >= kMaxLineBytes; room /= 2)
      line = Line(message, text.substr(0, room));
    std::replace(line.begin(), line.end(), '\n', ' ');
    line += '\n';
    if (is_socket_) return send(fd_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
    if (!own_) {
      // A file, or a pipe that could not be opened again: there is room for a line when it says so.
      pollfd entry = {fd_, POLLOUT, 0};
      if (poll(&entry, 1, 0) != 1 || (entry.revents & POLLOUT) == 0) return false;
    }
    return write(fd_, line.data(), line.size()) > 0;
  }

  // Constant after construction.
  int fd_ = -1;
  ring::Descriptor own_;
  Form form_ = Form::kText;
  bool is_socket_ = false;

  std::mutex mutex_;
  LogLimiter limiter_;  // under mutex_
  uint64_t lost_ = 0;   // under mutex_
};

}  // namespace

void StartLog(const v1::DaemonConfig& config, int fd) {
  auto logger = std::make_shared<spdlog::logger>(
      "penstockd", std::make_shared<LogSink>(config.log_format(), fd));
  spdlog::set_default_logger(std::move(logger));
  ConfigureLog(config);
}

void SetLogLevelNow(v1::LogLevel level) {
  // LOG_LEVEL_DEBUG is 1, as is spdlog's.
  spdlog::default_logger_raw()->set_level(static_cast<spdlog::level::level_enum>(level));
}

void ConfigureLog(const v1::DaemonConfig& config) {
  SetLogLevelNow(config.log_level());
  static_cast<LogSink&>(*spdlog::default_logger_raw()->sinks()[0])
      .Configure(config.log_lines_per_cause());
}

}  // namespace penstock
