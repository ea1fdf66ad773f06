// penstockd: flags, configuration, run.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "base/release.h"
#include "server/service/daemon/daemon.h"
#include "server/service/daemon/daemon_config.h"
#include "server/service/daemon/supervisor.h"
#include "server/service/state/state_folder.h"
#include "server/service/watch/grpc_log.h"
#include "server/service/watch/log_output.h"

namespace {

// sysexits.h: EX_USAGE is 64, but the command line's convention here is 2.
enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kBadConfig = 78 };

struct Flags {
  std::string config;
  std::string socket;
  std::string log_level;
  bool check_config = false;
  bool supervise = false;
  bool has_owner = false;
  std::string state_directory;
  std::optional<double> rejoin_seconds;
  std::string serve;
};

absl::StatusOr<penstock::v1::DaemonConfig> ReadConfig(const Flags& flags) {
  penstock::v1::DaemonConfig config;
  if (!flags.config.empty()) {
    auto read = penstock::ReadDaemonConfig(flags.config);
    if (!read.ok()) return read.status();
    config = *std::move(read);
  }
  if (!flags.socket.empty()) config.set_socket(flags.socket);
  if (!flags.serve.empty()) config.mutable_serve()->set_address(flags.serve);
  if (!flags.state_directory.empty()) {
    // A flag's path starts from the directory in which it is typed.
    config.set_state_dir(flags.state_directory == "none"
                             ? flags.state_directory
                             : std::filesystem::absolute(flags.state_directory).string());
  }
  if (flags.rejoin_seconds)
    config.set_rejoin_ms(static_cast<int>(std::lround(*flags.rejoin_seconds * 1000)));
  penstock::v1::LogLevel level;
  if (!flags.log_level.empty() &&
      penstock::v1::LogLevel_Parse("LOG_LEVEL_" + absl::AsciiStrToUpper(flags.log_level), &level)) {
    config.set_log_level(level);
  }
  // Only the owner uses it, who may ask for a type at each step of a trace.
  if (flags.has_owner && config.connection_limits().max_requests_per_s() == 0)
    config.mutable_connection_limits()->set_max_requests_per_s(1'000'000);
  const absl::Status status = penstock::CompleteDaemonConfig(&config);
  if (!status.ok()) return status;
  return config;
}

void ChooseStateDirectory(penstock::DaemonOptions* options) {
  const std::string& folder = options->config.state_dir();
  if (folder == "none") return;
  options->state_is_required = !folder.empty();
  options->state_directory = folder;
  // A private daemon ends with its owner, and so do its pipelines.
  if (folder.empty() && options->owner_fd < 0) {
    options->state_directory = penstock::DefaultStateFolder(options->config.socket());
  }
}

int Run(penstock::DaemonOptions options) {
  penstock::BlockStopSignals();
  auto service_manager = penstock::ServiceManager::Create();
  absl::Status status = service_manager.status();
  if (status.ok()) {
    options.service_manager = *std::move(service_manager);
    penstock::StartLog(options.config, STDERR_FILENO);
    penstock::TakeGrpcLog();
    status = penstock::RunDaemon(std::move(options));
  }
  if (status.ok()) return kDone;
  std::fprintf(stderr, "penstockd: %s\n", std::string(status.message()).c_str());
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  penstock::DaemonOptions options;
  CLI::App app("Keeps ready batches in shared memory for trainers.", "penstockd");
  app.add_option("--config", flags.config, "A DaemonConfig as text (config/penstockd.textproto)");
  app.add_option("--socket", flags.socket, "The Unix socket to serve; over the configuration");
  app.add_flag("--check-config", flags.check_config, "Check the configuration and exit");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_option("--exit-with-parent", options.owner_fd,
                 "Stop when this descriptor, a pipe's reading end or a pidfd, reports its end")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--ready-fd", options.ready_fd,
                 "Write a byte to this descriptor when connections are accepted, then close it")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--state-dir", flags.state_directory,
                 "The folder in which pipelines are kept, so that they come back after a crash; "
                 "\"none\" keeps nothing. Default: below $PENSTOCK_STATE_DIR, $STATE_DIRECTORY, "
                 "$XDG_STATE_HOME or ~/.local/state, one for each socket");
  app.add_option("--serve", flags.serve,
                 "HOST:PORT at which steps are made for daemons of other hosts that name it as a "
                 "helper; over the configuration's serve.address, whose certificates hold");
  app.add_option("--rejoin-seconds", flags.rejoin_seconds,
                 "How long consumers and ranks that were lost are waited for; over the "
                 "configuration")
      ->check(CLI::Range(0.0, 3600.0))
      ->check([](const std::string& word) {
        double value = 0;  // the range lets through what is no number
        return CLI::detail::lexical_cast(word, value) && std::isnan(value) ? "not a number" : "";
      });
  app.set_version_flag("--version", std::string("penstockd ") + penstock::kRelease,
                       "Print the release and exit");
  app.add_flag("--supervise", flags.supervise,
               "Run the daemon in a child process, and start it again when it dies");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }

  flags.has_owner = options.owner_fd >= 0;
  const auto config = ReadConfig(flags);
  if (!config.ok()) {
    std::fprintf(stderr, "penstockd: %s\n", std::string(config.status().message()).c_str());
    return kBadConfig;
  }
  if (flags.check_config) {
    std::printf("%s", config->DebugString().c_str());
    return kDone;
  }
  options.config = *config;
  if (!flags.config.empty()) options.read_config = [flags] { return ReadConfig(flags); };
  ChooseStateDirectory(&options);
  options.rejoin = absl::Milliseconds(options.config.rejoin_ms());
  if (!flags.supervise) return Run(std::move(options));
  return penstock::Supervise([&options] { return Run(std::move(options)); });
}
