// penstockd: flags, configuration, run.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "absl/strings/ascii.h"
#include "server/service/daemon.h"
#include "server/service/daemon_config.h"
#include "server/service/state_folder.h"
#include "server/service/supervisor.h"
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
  bool supervise = false;
  std::string state_directory;
  double rejoin_seconds = 10;
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

void ChooseStateDirectory(const Flags& flags, penstock::DaemonOptions* options) {
  if (flags.state_directory == "none") return;
  options->state_is_required = !flags.state_directory.empty();
  options->state_directory = flags.state_directory;
  // A private daemon ends with its owner, and so do its pipelines.
  if (flags.state_directory.empty() && options->owner_fd < 0) {
    options->state_directory = penstock::DefaultStateFolder(options->config.socket());
  }
}

int Run(const penstock::DaemonOptions& options) {
  penstock::BlockStopSignals();
  StartLogging(options.config.log_level());
  const absl::Status status = penstock::RunDaemon(options);
  if (status.ok()) return kDone;
  std::fprintf(stderr, "penstockd: %s\n", std::string(status.message()).c_str());
  return kFailed;
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
  app.add_option("--state-dir", flags.state_directory,
                 "The folder in which pipelines are kept, so that they come back after a crash; "
                 "\"none\" keeps nothing. Default: below $PENSTOCK_STATE_DIR, $STATE_DIRECTORY, "
                 "$XDG_STATE_HOME or ~/.local/state, one for each socket");
  app.add_option("--rejoin-seconds", flags.rejoin_seconds,
                 "How long consumers and ranks that were lost are waited for; default 10")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_flag("--supervise", flags.supervise,
               "Run the daemon in a child process, and start it again when it dies");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }

  const absl::Status status = ReadConfig(flags, &flags.options.config);
  if (!status.ok()) {
    std::fprintf(stderr, "penstockd: %s\n", std::string(status.message()).c_str());
    return kBadConfig;
  }
  if (flags.check_config) {
    std::printf("%s", flags.options.config.DebugString().c_str());
    return kDone;
  }
  ChooseStateDirectory(flags, &flags.options);
  flags.options.rejoin = absl::Seconds(flags.rejoin_seconds);
  if (!flags.supervise) return Run(flags.options);
  return penstock::Supervise([&flags] { return Run(flags.options); });
}
