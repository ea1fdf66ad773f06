// `penstock history`: what was changed of a pipeline while it ran, as --history takes it.

#include <google/protobuf/text_format.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/first_error.h"
#include "client/ctl/history_file.h"

namespace penstock::ctl {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

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

absl::StatusOr<v1::History> ReadHistoryFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the history ", path));
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an empty file is no history, which has at least a comment: ", path));
  }
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a history longer than limit: ", path, ", ", kMaxBytes, " bytes"));
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  v1::History history;
  if (parser.ParseFromString(text, &history)) return history;
  return absl::InvalidArgumentError(absl::StrCat(path, ":", error.text));
}

void AddHistory(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "history", "What was changed of a pipeline while it ran; create --history makes it again");
  auto name = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  command.Runs([&socket, name] { return Report("history", History(socket, *name)); });
}

}  // namespace penstock::ctl
