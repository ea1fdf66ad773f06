#include "server/service/control_server.h"

#include <fcntl.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <sys/epoll.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/pipeline_service.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// For calls that run at the same time; one more waits. Each call is short, but a creation may
// allocate for a second. Calls that go on telling have threads beside these, max_streams of them.
constexpr int kMaxThreads = 16;

}  // namespace

struct ControlServer::Grpc {
  Grpc(PipelineTable& table, const Monitor& monitor, const Settings& settings,
       PipelineServiceImpl::Gate gate, PipelineServiceImpl::WhoIs who_is)
      : service(
            table, monitor,
            [&settings] { return settings.Get()->connection_limits().max_streams(); },
            std::move(gate), std::move(who_is)) {}

  PipelineServiceImpl service;
  std::unique_ptr<grpc::Server> server;
};

ControlServer::ControlServer(EventLoop& loop, PipelineTable& table, const Monitor& monitor,
                             const Settings& settings, Access& access)
    : loop_(loop),
      settings_(settings),
      access_(access),
      grpc_(std::make_unique<Grpc>(
          table, monitor, settings,
          [this](const std::string& peer, v1::Right right, const std::string& pipeline,
                 PipelineServiceImpl::Asked asked) {
            const std::optional<Identity> who = WhoIs(peer);
            if (!who) return absl::PermissionDeniedError("the caller has hung up");
            if (asked == PipelineServiceImpl::Asked::kCall)
              return access_.Admit(*who, right, pipeline);
            return access_.Has(*who, right, pipeline) ? absl::OkStatus()
                                                      : absl::PermissionDeniedError("not listed");
          },
          [this](const std::string& peer) { return WhoIs(peer).value_or(Identity()); })) {}

std::optional<Identity> ControlServer::WhoIs(const std::string& peer) const {
  std::lock_guard<std::mutex> lock(peers_mutex_);
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return std::nullopt;
  return found->second.who;
}

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Create(EventLoop& loop,
                                                                     PipelineTable& table,
                                                                     const Monitor& monitor,
                                                                     const Settings& settings,
                                                                     Access& access) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<ControlServer> control(new ControlServer(loop, table, monitor, settings, access));
  grpc::ServerBuilder builder;
  builder.RegisterService(&control->grpc_->service);
  builder.SetMaxReceiveMessageSize(settings.Get()->connection_limits().max_message_bytes());
  grpc::ResourceQuota quota("control");
  quota.SetMaxThreads(kMaxThreads + settings.Get()->connection_limits().max_streams());
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 16);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  control->grpc_->server = builder.BuildAndStart();
  if (control->grpc_->server == nullptr) return absl::InternalError("cannot start the gRPC server");
  return control;
}

ControlServer::~ControlServer() {
  if (grpc_->server != nullptr) {
    grpc_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  }
  for (auto& [fd, connection] : connections_) loop_.Unwatch(connection.watch);
}

void ControlServer::Adopt(Visitor visitor) {
  const size_t limit = settings_.Get()->connection_limits().max_control_connections();
  if (connections_.size() >= limit) {
    spdlog::warn("closed a control connection of process {}: limit {} reached", visitor.pid, limit);
    return;
  }
  ring::Descriptor duplicate(fcntl(visitor.socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate) return;
  const int key = duplicate.get();
  const auto watch =
      loop_.Watch(key, EPOLLRDHUP | EPOLLHUP | EPOLLET, [this, key](uint32_t) { Forget(key); });
  if (!watch.ok()) return;
  const std::string peer = absl::StrCat("fd:", visitor.socket.get());
  {
    std::lock_guard<std::mutex> lock(peers_mutex_);
    peers_[peer] = {key, std::move(visitor.who)};
  }
  connections_[key] = {std::move(duplicate), *watch, peer};
  grpc::AddInsecureChannelFromFd(grpc_->server.get(), visitor.socket.Release());
}

void ControlServer::Forget(int key) {
  const Connection& connection = connections_.at(key);
  loop_.Unwatch(connection.watch);
  {
    // A newer connection may have got the number of one whose end was not noticed yet.
    std::lock_guard<std::mutex> lock(peers_mutex_);
    const auto found = peers_.find(connection.peer);
    if (found != peers_.end() && found->second.key == key) peers_.erase(found);
  }
  connections_.erase(key);
}

}  // namespace penstock
