// `penstock log-level`: how much the daemon logs, until it reads its configuration again.

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"

namespace penstock::ctl {
namespace {

absl::Status SetLogLevel(const std::string& socket, const std::string& name) {
  v1::LogLevel level;
  if (!v1::LogLevel_Parse(absl::StrCat("LOG_LEVEL_", absl::AsciiStrToUpper(name)), &level) ||
      level == v1::LOG_LEVEL_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected debug, info, warning or error, found ", name));
  }
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  return daemon->SetLogLevel(level);
}

}  // namespace

void AddLogLevel(Command root, const std::string& socket) {
  Command command = root.AddCommand("log-level", "How much the daemon logs");
  auto level = std::make_shared<std::string>();
  command.Add("LEVEL", level.get(), "debug, info, warning or error").Required();
  command.Runs([&socket, level] { return Report("log-level", SetLogLevel(socket, *level)); });
}

}  // namespace penstock::ctl
