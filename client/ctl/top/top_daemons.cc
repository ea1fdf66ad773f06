#include "client/ctl/top/top_daemons.h"

#include <stdlib.h>

#include <utility>

#include "client/ctl/daemon/found_daemons.h"

namespace penstock::ctl {
namespace {

absl::StatusOr<std::vector<v1::PipelineStats>> AskPipelines(DaemonConnection& daemon,
                                                            const std::string& name) {
  std::vector<v1::PipelineStats> all;
  std::vector<std::string> names = {name};
  if (name.empty()) {
    names.clear();
    const auto list = daemon.List();
    if (!list.ok()) return list.status();
    for (const v1::Pipeline& pipeline : list->pipelines()) names.push_back(pipeline.name());
  }
  for (const std::string& one : names) {
    auto stats = daemon.Stats(one);
    if (stats.ok()) {
      all.push_back(*std::move(stats));
    } else if (!name.empty() || stats.status().code() != absl::StatusCode::kNotFound) {
      return stats.status();  // one that was deleted since it was listed is left out
    }
  }
  return all;
}

}  // namespace

TopDaemons::TopDaemons(const std::string& socket)
    : socket_(socket), finds_(socket.empty() && getenv("PENSTOCK_SOCKET") == nullptr) {}

absl::StatusOr<std::vector<TopDaemon>> TopDaemons::Ask(const std::string& name) {
  std::vector<std::string> sockets = {socket_};
  if (finds_) {
    for (std::string& found : FindDaemons()) sockets.push_back(std::move(found));
  }
  std::vector<TopDaemon> all;
  absl::Status problem;
  for (const std::string& socket : sockets) {
    auto shown = AskOne(socket, name);
    if (shown.ok()) {
      all.push_back(*std::move(shown));
    } else {
      // One that has gone is opened anew where it comes back.
      open_.erase(socket);
      if (problem.ok()) problem = shown.status();
    }
  }
  if (all.empty()) return problem;
  return all;
}

absl::StatusOr<TopDaemon> TopDaemons::AskOne(const std::string& socket, const std::string& name) {
  auto daemon = open_.find(socket);
  if (daemon == open_.end()) {
    auto opened = DaemonConnection::Open(socket);
    if (!opened.ok()) return opened.status();
    daemon = open_.emplace(socket, *std::move(opened)).first;
  }
  auto pipelines = AskPipelines(daemon->second, name);
  if (!pipelines.ok()) return pipelines.status();
  return TopDaemon{daemon->second.socket(), socket == socket_, *std::move(pipelines)};
}

}  // namespace penstock::ctl
