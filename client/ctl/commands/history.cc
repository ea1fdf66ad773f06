// `penstock history`: what was changed of a pipeline while it ran, as --history takes it.

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "penstock/v1/steering.pb.h"

namespace penstock::ctl {
namespace {

absl::Status History(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto pipeline = daemon->Get(name);
  if (!pipeline.ok()) return pipeline.status();
  v1::History history;
  *history.mutable_change() = pipeline->history();
  std::string text;
  google::protobuf::TextFormat::PrintToString(history, &text);
  std::printf("# pipeline %s, etag %s: %d changes\n%s", name.c_str(), pipeline->etag().c_str(),
              history.change_size(), text.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddHistory(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "history", "What was changed of a pipeline while it ran; create --history makes it again");
  auto name = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  command.Runs([&socket, name] { return Report("history", History(socket, *name)); });
}

}  // namespace penstock::ctl
