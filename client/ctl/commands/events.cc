// `penstock events`: what has happened to pipelines, and what happens.

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/words/json_line.h"
#include "client/ctl/words/user_name.h"

namespace penstock::ctl {
namespace {

struct EventsArguments {
  std::string name;  // "": all
  uint64_t after = 0;
  bool follow = false;
  bool json = false;
};

std::string KindName(v1::EventKind kind) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::EventKind_Name(kind), "EVENT_KIND_"));
}

// What comes from data may hold anything; a terminal gets letters.
std::string Printable(const std::string& text) {
  std::string out = text;
  for (char& c : out) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return out;
}

std::string Line(const v1::Event& event) {
  const std::string time = absl::FormatTime(
      "%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMillis(event.time_unix_ms()), absl::UTCTimeZone());
  std::string line = absl::StrCat(event.number(), "  ", time, "  ", event.pipeline(), "  ",
                                  KindName(event.kind()), "  ", Printable(event.text()));
  if (event.further() > 0) absl::StrAppend(&line, ", and ", event.further(), " further places");
  if (event.has_uid()) absl::StrAppend(&line, ", by ", UserName(event.uid()));
  if (event.has_owner_uid() && (!event.has_uid() || event.uid() != event.owner_uid()))
    absl::StrAppend(&line, ", owned by ", UserName(event.owner_uid()));
  if (event.has_change()) {
    // A stage is told whole, with all constants; --json and `penstock history` show all of it.
    constexpr size_t kMaxBytes = 200;
    const std::string change = Printable(event.change().ShortDebugString());
    absl::StrAppend(&line, ": ", change.substr(0, kMaxBytes),
                    change.size() > kMaxBytes ? " …" : "");
  }
  return line;
}

absl::Status Print(const v1::WatchEventsResponse& response, bool json, bool* written) {
  std::string out;
  if (response.lost() > 0) {
    absl::StrAppend(&out, json ? "{\"lost\":" : "(", response.lost(),
                    json ? "}" : " events were lost here: they came faster than they were taken)",
                    "\n");
  }
  for (const v1::Event& event : response.events()) {
    const auto line = json ? JsonLine(event, Zeros::kLeftOut) : Line(event) + "\n";
    if (!line.ok()) return line.status();
    out += *line;
  }
  // CommandLine says that stdout cannot be written; here it only ends.
  *written = std::fputs(out.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return absl::OkStatus();
}

absl::Status Events(const std::string& socket, const EventsArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::WatchEventsRequest request;
  request.set_name(arguments.name);
  request.set_after(arguments.after);
  request.set_follow(arguments.follow);
  absl::Status printed;
  const absl::Status status =
      daemon->WatchEvents(request, [&](const v1::WatchEventsResponse& response) {
        bool written = false;
        printed = Print(response, arguments.json, &written);
        return written;
      });
  return printed.ok() ? status : printed;
}

}  // namespace

void AddEvents(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "events", "What has happened: who came and went, changes, skipped places, ends, errors");
  auto arguments = std::make_shared<EventsArguments>();
  command.Add("NAME", &arguments->name, "One pipeline only");
  command.AddFlag("--follow", &arguments->follow, "Go on with what happens, until it is stopped");
  command.Add("--after", &arguments->after, "Only those behind the event of this number");
  command.AddFlag("--json", &arguments->json, "An Event (control.proto) as JSON a line");
  command.Runs([&socket, arguments] { return Report("events", Events(socket, *arguments)); });
}

}  // namespace penstock::ctl
