#include "server/service/control/control_server.h"

#include <fcntl.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/new_thread.h"
#include "server/service/control/pipeline_service.h"
#include "server/service/socket/asker.h"
#include "server/service/socket/call_places.h"
#include "server/service/socket/tcp_listener.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// Beside those of calls that run, or go on telling (max_streams): of gRPC's own, and for refusing
// further ones.
constexpr int kFurtherThreads = 8;

// What gRPC takes at its start; it aborts where it gets less.
constexpr int kStartThreads = 16;

// The part of tcp.max_connections that one address may have.
constexpr int kAddressShare = 4;

// Whether the system has so many threads left: they are there at the same time, and go.
absl::Status CheckThreads(int count) {
  std::promise<void> done;
  const std::shared_future<void> all_are_there = done.get_future().share();
  std::vector<std::thread> threads;
  absl::Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    absl::StatusOr<std::thread> thread =
        NewThread("control plane", [all_are_there] { all_are_there.wait(); });
    if (thread.ok()) threads.push_back(*std::move(thread));
    status = thread.status();
  }
  done.set_value();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace

struct ControlServer::Grpc {
  Grpc(PipelineTable& table, const Monitor& monitor, const Settings& settings,
       PipelineServiceImpl::Gate gate, PipelineServiceImpl::WhoIs who_is,
       std::function<void()> no_place)
      : service(
            table, monitor,
            [&settings] { return settings.Get()->connection_limits().max_streams(); },
            std::move(gate), std::move(who_is), std::move(no_place)) {}

  CallPlaces places;  // outlives the server
  PipelineServiceImpl service;
  std::unique_ptr<grpc::Server> server;
  // Takes connections that were accepted here; null without tcp.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> tcp;
};

ControlServer::ControlServer(EventLoop& loop, PipelineTable& table, const Monitor& monitor,
                             const Settings& settings, Access& access)
    : loop_(loop),
      settings_(settings),
      access_(access),
      grpc_(std::make_unique<Grpc>(
          table, monitor, settings,
          [this](const grpc::ServerContext& context, v1::Right right, const std::string& pipeline,
                 PipelineServiceImpl::Asked asked) {
            const std::optional<Identity> who = WhoIs(context);
            if (!who) return absl::PermissionDeniedError("the caller has hung up");
            if (asked == PipelineServiceImpl::Asked::kCall) {
              if (absl::Status status = grpc_->places.Check(context); !status.ok()) {
                access_.CountNoPlace();
                return status;
              }
              return access_.Admit(*who, right, pipeline);
            }
            return access_.Has(*who, right, pipeline) ? absl::OkStatus()
                                                      : absl::PermissionDeniedError("not listed");
          },
          [this](const grpc::ServerContext& context) { return WhoIs(context); },
          [this] { access_.CountNoPlace(); })) {}

std::optional<Identity> ControlServer::WhoIs(const grpc::ServerContext& context) const {
  const std::shared_ptr<const grpc::AuthContext> proof = context.auth_context();
  if (proof != nullptr && proof->IsPeerAuthenticated()) {
    Identity who;
    // Of no user; what certificates ask for has a budget of memory in common.
    who.uid = kCertificateUid;
    who.by_certificate = true;
    // The common name only where the certificate has no other.
    for (const char* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME}) {
      if (!who.certificate_names.empty()) break;
      for (const grpc::string_ref& name : proof->FindPropertyValues(property))
        who.certificate_names.emplace_back(name.data(), name.size());
    }
    return who;
  }
  std::lock_guard<std::mutex> lock(peers_mutex_);
  const auto found = peers_.find(context.peer());
  if (found == peers_.end()) return std::nullopt;
  places_.Touch(static_cast<FairPlaces::Place>(found->second.key));
  return found->second.who;
}

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Create(EventLoop& loop,
                                                                     PipelineTable& table,
                                                                     const Monitor& monitor,
                                                                     const Settings& settings,
                                                                     Access& access) {
  // Before gRPC has begun, which waits for threads of its own at its end, too.
  if (absl::Status status = CheckThreads(kStartThreads); !status.ok()) return status;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<ControlServer> control(new ControlServer(loop, table, monitor, settings, access));
  grpc::ServerBuilder builder;
  builder.RegisterService(&control->grpc_->service);
  builder.SetMaxReceiveMessageSize(settings.Get()->connection_limits().max_message_bytes());
  grpc::ResourceQuota quota("control");
  quota.SetMaxThreads(static_cast<int>(CallPlaces::kMaxCalls) + kFurtherThreads +
                      settings.Get()->connection_limits().max_streams());
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 16);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> counting;
  counting.push_back(control->grpc_->places.Interceptors(
      [server = control.get()](const grpc::ServerContext& context) {
        // Of those who have hung up meanwhile: nobody's.
        const std::optional<Identity> who = server->WhoIs(context);
        return who ? UserKey(*who) : UINT64_MAX;
      }));
  builder.experimental().SetInterceptorCreators(std::move(counting));
  const v1::TcpOptions tcp = settings.Get()->tcp();
  if (!tcp.address().empty()) {
    const absl::StatusOr<Certificates> certificates = ReadCertificates(tcp);
    if (!certificates.ok()) return certificates.status();
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = certificates->client_authorities;
    options.pem_key_cert_pairs.push_back({certificates->key, certificates->certificate});
    control->grpc_->tcp = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::SslServerCredentials(options));
    // Who says nothing, or half of a handshake, is sent away.
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               settings.Get()->connection_limits().first_bytes_timeout_ms());
  }
  control->grpc_->server = builder.BuildAndStart();
  if (control->grpc_->server == nullptr) {
    return absl::InternalError(
        tcp.address().empty() ? "cannot start the gRPC server"
                              : "cannot start the gRPC server: are tcp.certificate, tcp.key and "
                                "tcp.client_authorities PEM files that belong together?");
  }
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
  if (connections_.size() - static_cast<size_t>(tcp_connections_) >= limit &&
      !MakeRoomFor(visitor.who.uid)) {
    access_.CountNoPlace();
    // At powers of two, so that nobody fills the log by knocking.
    if (++refused_; (refused_ & (refused_ - 1)) == 0) {
      spdlog::warn(
          "closed a control connection of process {}: connection_limits.max_control_connections is "
          "{} "
          "({} refused so far)",
          visitor.pid, limit, refused_);
    }
    return;
  }
  const std::string peer = absl::StrCat("fd:", visitor.socket.get());
  int key = 0;
  if (!WatchOver(visitor.socket.get(), peer, "", &key)) return;
  {
    std::lock_guard<std::mutex> lock(peers_mutex_);
    places_.Take(static_cast<FairPlaces::Place>(key), visitor.who.uid);
    peers_[peer] = {key, std::move(visitor.who)};
  }
  grpc::AddInsecureChannelFromFd(grpc_->server.get(), visitor.socket.Release());
}

bool ControlServer::MakeRoomFor(uid_t user) {
  std::optional<FairPlaces::Place> leaving;
  {
    std::lock_guard<std::mutex> lock(peers_mutex_);
    leaving = places_.ToGiveUp(user);
  }
  if (!leaving) return false;
  access_.CountNoPlace();
  const int key = static_cast<int>(*leaving);
  // gRPC, which has the same socket, notices it as its peer's end.
  shutdown(key, SHUT_RDWR);
  Forget(key);
  return true;
}

bool ControlServer::WatchOver(int socket, const std::string& peer, const std::string& address,
                              int* key) {
  ring::Descriptor duplicate(fcntl(socket, F_DUPFD_CLOEXEC, 0));
  if (!duplicate) return false;
  *key = duplicate.get();
  const auto watch = loop_.Watch(*key, EPOLLRDHUP | EPOLLHUP | EPOLLET,
                                 [this, key = *key](uint32_t) { Forget(key); });
  if (!watch.ok()) return false;
  connections_[*key] = {std::move(duplicate), *watch, peer, address};
  return true;
}

void ControlServer::AdoptTcp(ring::Descriptor socket, const std::string& address) {
  const int limit = settings_.Get()->tcp().max_connections();
  int& of_address = by_address_[address];
  int key = 0;
  if (tcp_connections_ >= limit || of_address >= std::max(1, limit / kAddressShare) ||
      !WatchOver(socket.get(), "", address, &key)) {
    if (of_address == 0) by_address_.erase(address);
    access_.CountNoPlace();
    // At powers of two, so that nobody fills the log by knocking.
    if (++tcp_refused_; (tcp_refused_ & (tcp_refused_ - 1)) == 0) {
      spdlog::warn("closed a connection from {}: tcp.max_connections is {} ({} refused so far)",
                   address, limit, tcp_refused_);
    }
    return;
  }
  ++of_address;
  ++tcp_connections_;
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = socket.Release();
  grpc_->tcp->HandleNewConnection(&connection);
}

void ControlServer::Forget(int key) {
  const Connection& connection = connections_.at(key);
  loop_.Unwatch(connection.watch);
  if (!connection.address.empty()) {
    --tcp_connections_;
    if (--by_address_[connection.address] == 0) by_address_.erase(connection.address);
  }
  {
    // A newer connection may have got the number of one whose end was not noticed yet.
    std::lock_guard<std::mutex> lock(peers_mutex_);
    const auto found = peers_.find(connection.peer);
    if (found != peers_.end() && found->second.key == key) peers_.erase(found);
    places_.Leave(static_cast<FairPlaces::Place>(key));
  }
  connections_.erase(key);
}

}  // namespace penstock
