// `penstock explain` and `profile`: who waits for whom, and what each worker does.

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {
namespace {

struct ProfileArguments {
  std::string name;
  double seconds = 1;
  std::string out;
};

absl::Status Explain(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto answer = daemon->Explain(name);
  if (!answer.ok()) return answer.status();
  for (const std::string& sentence : answer->sentences()) std::printf("%s\n", sentence.c_str());
  return absl::OkStatus();
}

absl::Status Profile(const std::string& socket, const ProfileArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::ProfilePipelineRequest request;
  request.set_name(arguments.name);
  request.set_duration_ms(static_cast<int>(arguments.seconds * 1000));
  const auto answer = daemon->Profile(request);
  if (!answer.ok()) return answer.status();
  std::ofstream file(arguments.out, std::ios::binary);
  file << answer->trace();
  file.close();
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", arguments.out));
  std::printf("wrote %s: %s; open it at ui.perfetto.dev\n", arguments.out.c_str(),
              ByteCount(answer->trace().size()).c_str());
  if (answer->dropped() > 0) {
    std::printf("%llu spans did not fit: ask for less time\n",
                static_cast<unsigned long long>(answer->dropped()));
  }
  return absl::OkStatus();
}

}  // namespace

void AddExplain(Command root, const std::string& socket) {
  Command command = root.AddCommand("explain", "Who waits for whom, in sentences");
  auto name = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  command.Runs([&socket, name] { return Report("explain", Explain(socket, *name)); });
}

void AddProfile(Command root, const std::string& socket) {
  Command command =
      root.AddCommand("profile", "What each worker does for some seconds, as a trace for Perfetto");
  auto arguments = std::make_shared<ProfileArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command.Add("--seconds", &arguments->seconds, "How long").InRange(0.001, 60.0).WithDefault();
  command.Add("--out", &arguments->out, "The file for the trace, as JSON").Required();
  command.Runs([&socket, arguments] { return Report("profile", Profile(socket, *arguments)); });
}

}  // namespace penstock::ctl
