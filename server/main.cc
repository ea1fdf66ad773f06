// penstockd: flags, configuration, run.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "absl/strings/ascii.h"
#include "server/service/daemon.h"
#include "server/service/daemon_config.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace {

// sysexits.h: EX_USAGE is 64, but the command line's convention here is 2.
enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kBadConfig = 78 };

struct Flags {
  std::string config;
  std::string socket;
  std::string log_level;
  bool check_config = false;
  penstock::DaemonOptions options;
};

absl::Status ReadConfig(const Flags& flags, penstock::v1::DaemonConfig* config) {
  if (!flags.config.empty()) {
    auto read = penstock::ReadDaemonConfig(flags.config);
    if (!read.ok()) return read.status();
    *config = *std::move(read);
  }
  if (!flags.socket.empty()) config->set_socket(flags.socket);
  penstock::v1::LogLevel level;
  if (!flags.log_level.empty() &&
      penstock::v1::LogLevel_Parse("LOG_LEVEL_" + absl::AsciiStrToUpper(flags.log_level), &level)) {
    config->set_log_level(level);
  }
  return penstock::CompleteDaemonConfig(config);
}

void StartLogging(penstock::v1::LogLevel level) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("penstockd"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
  // LOG_LEVEL_DEBUG is 1, as is spdlog's.
  spdlog::set_level(static_cast<spdlog::level::level_enum>(level));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Keeps ready batches in shared memory for trainers.", "penstockd");
  app.add_option("--config", flags.config, "A DaemonConfig as text (config/penstockd.textproto)");
  app.add_option("--socket", flags.socket, "The Unix socket to serve; over the configuration");
  app.add_flag("--check-config", flags.check_config, "Check the configuration and exit");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_option("--exit-with-parent", flags.options.owner_fd,
                 "Stop when this descriptor, a pipe's reading end or a pidfd, reports its end")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--ready-fd", flags.options.ready_fd,
                 "Write a byte to this descriptor when connections are accepted, then close it")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }

  penstock::BlockStopSignals();
  absl::Status status = ReadConfig(flags, &flags.options.config);
  if (!status.ok()) {
    std::fprintf(stderr, "penstockd: %s\n", std::string(status.message()).c_str());
    return kBadConfig;
  }
  if (flags.check_config) {
    std::printf("%s", flags.options.config.DebugString().c_str());
    return kDone;
  }
  StartLogging(flags.options.config.log_level());
  status = penstock::RunDaemon(flags.options);
  if (!status.ok()) {
    std::fprintf(stderr, "penstockd: %s\n", std::string(status.message()).c_str());
    return kFailed;
  }
  return kDone;
}
