// `penstock groups`: how the consumers of a pipeline share its batches, and the end of a group.

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

std::string SlowOf(const v1::GroupStats& group) {
  if (group.slow() == v1::SLOW_POLICY_UNSPECIFIED) return "as each consumer says";
  std::string text =
      absl::AsciiStrToLower(absl::StripPrefix(v1::SlowPolicy_Name(group.slow()), "SLOW_POLICY_"));
  if (group.slow() == v1::SLOW_POLICY_BLOCK) absl::StrAppend(&text, ", ", group.lag_ms(), " ms");
  return text;
}

// Whom others wait for, or may have to: those who are not there.
std::string NoteOf(const v1::GroupStats& group) {
  std::string text;
  const auto add = [&text](const std::string& more) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", more);
  };
  if (group.kept()) {
    add(group.kept_ms() > 0 ? absl::StrFormat("kept, for %.1f s more", 1e-3 * group.kept_ms())
                            : std::string("kept, as long as nobody needs its slots"));
  }
  if (group.missing() > 0) {
    add(absl::StrCat(group.missing(), " not there"));
    if (group.kept_ms() > 0)
      absl::StrAppend(&text, absl::StrFormat(", for %.1f s more", 1e-3 * group.kept_ms()));
  }
  if (group.holds_up_ms() > 0)
    add(absl::StrFormat("holds up others for %.1f s", 1e-3 * group.holds_up_ms()));
  return text;
}

absl::Status Drop(const std::string& socket, const std::string& name, const std::string& group) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  absl::Status status = daemon->DropGroup(name, group);
  if (status.ok()) std::printf("ended group %s of %s\n", group.c_str(), name.c_str());
  return status;
}

absl::Status Groups(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto answer = daemon->Groups(name);
  if (!answer.ok()) return answer.status();
  std::printf("%-16s  %-9s  %-8s  %9s  %5s  %10s  %10s  %6s  %6s  %7s  %-20s  %s\n", "GROUP",
              "MODE", "USER", "CONSUMERS", "RANKS", "FROM STEP", "TO STEP", "READY", "HOLDS",
              "MISSED", "SLOW ONES", "");
  for (const v1::GroupStats& group : answer->groups()) {
    std::printf("%-16s  %-9s  %-8s  %9u  %5u  %10llu  %10llu  %6llu  %6u  %7llu  %-20s  %s\n",
                group.name().c_str(), group.mode().c_str(),
                group.has_uid() ? absl::StrCat(group.uid()).c_str() : "", group.consumers(),
                group.world_size(), static_cast<unsigned long long>(group.first_position()),
                static_cast<unsigned long long>(group.last_position()),
                static_cast<unsigned long long>(group.lag()), group.leases(),
                static_cast<unsigned long long>(group.missed()), SlowOf(group).c_str(),
                NoteOf(group).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddGroups(Command root, const std::string& socket) {
  Command command = root.AddCommand("groups", "How the consumers of a pipeline share its batches");
  auto name = std::make_shared<std::string>();
  auto dropped = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  command.Add("--drop", dropped.get(),
              "End this group: its consumers get DETACHED, and what is kept of it is forgotten");
  command.Runs([&socket, name, dropped] {
    return Report("groups",
                  dropped->empty() ? Groups(socket, *name) : Drop(socket, *name, *dropped));
  });
}

}  // namespace penstock::ctl
