// `penstock groups`: how the consumers of a pipeline share its batches.

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"

namespace penstock::ctl {
namespace {

std::string SlowOf(const v1::GroupStats& group) {
  if (group.slow() == v1::SLOW_POLICY_UNSPECIFIED) return "as each consumer says";
  std::string text =
      absl::AsciiStrToLower(absl::StripPrefix(v1::SlowPolicy_Name(group.slow()), "SLOW_POLICY_"));
  if (group.slow() == v1::SLOW_POLICY_BLOCK) absl::StrAppend(&text, ", ", group.lag_ms(), " ms");
  return text;
}

absl::Status Groups(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto answer = daemon->Groups(name);
  if (!answer.ok()) return answer.status();
  std::printf("%-16s  %-9s  %9s  %5s  %10s  %10s  %6s  %6s  %7s  %s\n", "GROUP", "MODE",
              "CONSUMERS", "RANKS", "FROM STEP", "TO STEP", "READY", "HOLDS", "MISSED",
              "SLOW ONES");
  for (const v1::GroupStats& group : answer->groups()) {
    std::printf("%-16s  %-9s  %9u  %5u  %10llu  %10llu  %6llu  %6u  %7llu  %s\n",
                group.name().c_str(), group.mode().c_str(), group.consumers(), group.world_size(),
                static_cast<unsigned long long>(group.first_position()),
                static_cast<unsigned long long>(group.last_position()),
                static_cast<unsigned long long>(group.lag()), group.leases(),
                static_cast<unsigned long long>(group.missed()), SlowOf(group).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddGroups(Command root, const std::string& socket) {
  Command command = root.AddCommand("groups", "How the consumers of a pipeline share its batches");
  auto name = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  command.Runs([&socket, name] { return Report("groups", Groups(socket, *name)); });
}

}  // namespace penstock::ctl
