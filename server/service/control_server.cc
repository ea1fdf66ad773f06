#include "server/service/control_server.h"

#include <fcntl.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <sys/epoll.h>

#include <chrono>
#include <utility>

#include "server/service/pipeline_service.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// For calls that run at the same time; one more waits. Each call is short, but a creation may
// allocate for a second.
constexpr int kMaxThreads = 16;

}  // namespace

struct ControlServer::Grpc {
  explicit Grpc(PipelineTable& table) : service(table) {}

  PipelineServiceImpl service;
  std::unique_ptr<grpc::Server> server;
};

ControlServer::ControlServer(EventLoop& loop, PipelineTable& table, int max_connections)
    : loop_(loop), max_connections_(max_connections), grpc_(std::make_unique<Grpc>(table)) {}

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Create(
    EventLoop& loop, PipelineTable& table, const v1::ConnectionLimits& limits) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<ControlServer> control(
      new ControlServer(loop, table, limits.max_control_connections()));
  grpc::ServerBuilder builder;
  builder.RegisterService(&control->grpc_->service);
  builder.SetMaxReceiveMessageSize(limits.max_message_bytes());
  grpc::ResourceQuota quota("control");
  quota.SetMaxThreads(kMaxThreads);
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
  if (connections_.size() >= max_connections_) {
    spdlog::warn("closed a control connection of process {}: limit {} reached", visitor.pid,
                 max_connections_);
    return;
  }
  ring::Descriptor duplicate(fcntl(visitor.socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate) return;
  const int key = duplicate.get();
  const auto watch = loop_.Watch(key, EPOLLRDHUP | EPOLLHUP | EPOLLET, [this, key](uint32_t) {
    loop_.Unwatch(connections_.at(key).watch);
    connections_.erase(key);
  });
  if (!watch.ok()) return;
  connections_[key] = {std::move(duplicate), *watch};
  grpc::AddInsecureChannelFromFd(grpc_->server.get(), visitor.socket.Release());
}

}  // namespace penstock
