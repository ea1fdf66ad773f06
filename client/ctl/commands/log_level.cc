// `penstock log-level`: how much the daemon logs, until it reads its configuration again.

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

bool ParseLevel(const std::string& name, v1::LogLevel* level) {
  return v1::LogLevel_Parse(absl::StrCat("LOG_LEVEL_", absl::AsciiStrToUpper(name)), level) &&
         *level != v1::LOG_LEVEL_UNSPECIFIED;
}

std::string CheckLevel(const std::string& name) {
  v1::LogLevel level;
  return ParseLevel(name, &level)
             ? ""
             : absl::StrCat("expected debug, info, warning or error, found ", name);
}

absl::Status SetLogLevel(const std::string& socket, const std::string& name) {
  v1::LogLevel level = v1::LOG_LEVEL_UNSPECIFIED;
  ParseLevel(name, &level);  // checked before
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  return daemon->SetLogLevel(level);
}

}  // namespace

void AddLogLevel(Command root, const std::string& socket) {
  Command command = root.AddCommand("log-level", "How much the daemon logs");
  auto level = std::make_shared<std::string>();
  command.Add("LEVEL", level.get(), "debug, info, warning or error").Required().Checked(CheckLevel);
  command.Runs([&socket, level] { return Report("log-level", SetLogLevel(socket, *level)); });
}

}  // namespace penstock::ctl
