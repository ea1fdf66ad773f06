#include "client/ctl/daemon/daemon_connection.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/daemon/signs_of_life.h"
#include "client/ctl/grammar/exit_code.h"
#include "penstock/v1/control.grpc.pb.h"
#include "ring/answer_time.h"
#include "ring/attach.h"

namespace penstock::ctl {
namespace {

constexpr uint64_t kConnectTimeoutNs = 10'000'000'000;
// A bundle of all public authorities has a quarter of it.
constexpr size_t kPemBytesMax = size_t{1} << 20;
// How long a call may take that only looks something up or sets something, and how long a daemon
// may give no sign of life in one that takes longer.
constexpr uint64_t kAnswerNs = 30'000'000'000;

// Calls that take as long as the pipeline's data does, and those that wait for one that attaches,
// or changes it.
template <typename Request>
constexpr bool kTakesLong =
    std::is_same_v<Request, v1::CreatePipelineRequest> ||
    std::is_same_v<Request, v1::ValidatePipelineRequest> ||
    std::is_same_v<Request, v1::DeletePipelineRequest> ||
    std::is_same_v<Request, v1::PausePipelineRequest> ||
    std::is_same_v<Request, v1::ResumePipelineRequest> ||
    std::is_same_v<Request, v1::UpdateGroupRequest> ||
    std::is_same_v<Request, v1::DrainPipelineRequest> ||
    std::is_same_v<Request, v1::SeekPipelineRequest> ||
    std::is_same_v<Request, v1::UpdatePipelineRequest> ||
    std::is_same_v<Request, v1::SamplePipelineRequest> ||
    std::is_same_v<Request, v1::ProfilePipelineRequest> ||
    std::is_same_v<Request, v1::ShowRowRequest> || std::is_same_v<Request, v1::FindRowRequest> ||
    std::is_same_v<Request, v1::FindRecordsRequest>;

// "tcp:HOST:PORT" in the place of a socket's path.
constexpr char kTcpPrefix[] = "tcp:";

using Stub = v1::PipelineService::Stub;

}  // namespace

struct DaemonConnection::Channel {
  explicit Channel(std::shared_ptr<grpc::Channel> made)
      : channel(std::move(made)), stub(v1::PipelineService::NewStub(channel)) {}

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Stub> stub;
};

DaemonConnection::DaemonConnection() = default;
DaemonConnection::DaemonConnection(DaemonConnection&&) = default;
DaemonConnection& DaemonConnection::operator=(DaemonConnection&&) = default;
DaemonConnection::~DaemonConnection() = default;

absl::StatusOr<DaemonConnection> DaemonConnection::Open(const std::string& socket) {
  DaemonConnection connection;
  const ring::Status given = ring::AnswerTime(kAnswerNs, &connection.answer_ns_);
  if (!given.ok()) return absl::InvalidArgumentError(given.message);
  connection.socket_ = socket.empty() ? ring::DefaultSocketPath() : socket;
  if (connection.socket_.starts_with(kTcpPrefix)) return OpenTcp(std::move(connection));
  // Connected here and not by gRPC: its errors would be of the system's words only.
  int fd = -1;
  const ring::Status status = ring::ConnectToDaemon(connection.socket_, kConnectTimeoutNs, &fd);
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.code), status.message);
  }
  // A row that is shown has its values in the answer.
  grpc::ChannelArguments options;
  options.SetMaxReceiveMessageSize(-1);
  connection.channel_ =
      std::make_unique<Channel>(grpc::CreateCustomInsecureChannelFromFd("penstockd", fd, options));
  return connection;
}

absl::StatusOr<DaemonConnection> DaemonConnection::OpenTcp(DaemonConnection connection) {
  grpc::SslCredentialsOptions options;
  const std::pair<const char*, std::string*> files[] = {
      {"PENSTOCK_TLS_AUTHORITIES", &options.pem_root_certs},
      {"PENSTOCK_TLS_CERTIFICATE", &options.pem_cert_chain},
      {"PENSTOCK_TLS_KEY", &options.pem_private_key}};
  for (const auto& [variable, text] : files) {
    const char* path = std::getenv(variable);
    if (path == nullptr || *path == '\0') {
      return absl::InvalidArgumentError(absl::StrCat(
          "a daemon at tcp: is asked with a certificate: set ", variable, " to a PEM file"));
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) return absl::ErrnoToStatus(errno, absl::StrCat(variable, ": cannot read ", path));
    text->resize(kPemBytesMax + 1);
    file.read(text->data(), static_cast<std::streamsize>(text->size()));
    if (file.bad())
      return absl::ErrnoToStatus(errno, absl::StrCat(variable, ": cannot read ", path));
    text->resize(static_cast<size_t>(file.gcount()));
    if (text->size() > kPemBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          variable, ": a PEM file longer than the limit of ", kPemBytesMax, " bytes: ", path));
    }
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  connection.channel_ = std::make_unique<Channel>(
      grpc::CreateCustomChannel(connection.socket_.substr(std::strlen(kTcpPrefix)),
                                grpc::SslCredentials(options), arguments));
  return connection;
}

absl::StatusOr<DaemonConnection> DaemonConnection::OpenOrStart(const std::string& socket) {
  if (!socket.empty()) return Open(socket);
  absl::StatusOr<std::unique_ptr<PrivateDaemon>> daemon = PrivateDaemon::Start();
  if (!daemon.ok()) return daemon.status();
  absl::StatusOr<DaemonConnection> connection = Open((*daemon)->socket());
  if (connection.ok()) connection->daemon_ = *std::move(daemon);
  return connection;
}

template <typename Method, typename Request, typename Response>
absl::Status DaemonConnection::Call(Method method, const Request& request, Response* response) {
  grpc::ClientContext context;
  std::optional<SignsOfLife> signs;
  // A private daemon has nobody who could stop it.
  if (kTakesLong<Request> && !is_private()) {
    signs.emplace(channel_->channel, &context, answer_ns_);
    if (!signs->status().ok()) return signs->status();
  } else if (!is_private()) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(answer_ns_));
  }
  const grpc::Status status = (channel_->stub.get()->*method)(&context, request, response);
  if (status.error_code() == grpc::StatusCode::CANCELLED && signs && signs->missing()) {
    const absl::Status silent = NoAnswer();
    return absl::Status(
        silent.code(),
        absl::StrCat(silent.message(), "; what was asked for may still be done when it goes on"));
  }
  return FromGrpc(status.error_code(), status.error_message(), !status.error_details().empty());
}

template <typename Response, typename Method, typename Request>
absl::StatusOr<Response> DaemonConnection::Ask(Method method, const Request& request) {
  Response response;
  absl::Status status = Call(method, request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::Status DaemonConnection::NoAnswer() const {
  return absl::DeadlineExceededError(absl::StrCat(
      "penstockd at ", socket_, " does not answer: it stands still, or its machine is overloaded (",
      static_cast<double>(answer_ns_) * 1e-9, " s)"));
}

absl::Status DaemonConnection::FromGrpc(int code, const std::string& message,
                                        bool has_details) const {
  // The library's own words: a daemon that ran out of some time of its own says which.
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED && message == "Deadline Exceeded")
    return NoAnswer();
  // Whom the daemon does not know it answers in the words of its other protocol, and hangs up.
  const bool hung_up = code == grpc::StatusCode::UNKNOWN && message == "Stream removed";
  if (hung_up || (code == grpc::StatusCode::UNAVAILABLE && !has_details &&
                  message.find("penstockd") == std::string::npos)) {
    if (socket_.starts_with(kTcpPrefix)) {
      return absl::UnavailableError(
          absl::StrCat("penstockd at ", socket_,
                       " cannot be reached, or one side did not take the other's "
                       "certificate: ",
                       message));
    }
    return absl::UnavailableError(
        absl::StrCat("penstockd at ", socket_, " closed the connection (", message,
                     "): it has ended, or user ", geteuid(),
                     " is not in its allowed_uids, asks too often, or has more connections than "
                     "others while there are no more, or it has no descriptors left; see its log"));
  }
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

template <typename Response, typename Method, typename Request>
absl::Status DaemonConnection::Watch(Method method, const Request& request,
                                     const std::function<bool(const Response& response)>& take) {
  grpc::ClientContext context;
  std::optional<SignsOfLife> signs;
  // A private daemon has nobody who could stop it.
  if (!is_private()) {
    signs.emplace(channel_->channel, &context, answer_ns_);
    if (!signs->status().ok()) return signs->status();
  }
  const auto reader = (channel_->stub.get()->*method)(&context, request);
  Response response;
  while (reader->Read(&response)) {
    if (take(response)) continue;
    context.TryCancel();
    reader->Finish();
    return absl::OkStatus();
  }
  const grpc::Status status = reader->Finish();
  if (status.error_code() == grpc::StatusCode::CANCELLED && signs && signs->missing())
    return NoAnswer();
  return FromGrpc(status.error_code(), status.error_message(), !status.error_details().empty());
}

absl::Status DaemonConnection::WatchStats(
    const v1::WatchStatsRequest& request,
    const std::function<bool(const v1::PipelineStats& stats)>& take) {
  return Watch<v1::WatchStatsResponse>(
      &Stub::WatchStats, request,
      [&take](const v1::WatchStatsResponse& response) { return take(response.stats()); });
}

absl::Status DaemonConnection::WatchEvents(
    const v1::WatchEventsRequest& request,
    const std::function<bool(const v1::WatchEventsResponse& response)>& take) {
  return Watch<v1::WatchEventsResponse>(&Stub::WatchEvents, request, take);
}

absl::Status DaemonConnection::IndexTokens(
    const v1::IndexTokensRequest& request,
    const std::function<bool(const v1::IndexTokensResponse& response)>& take) {
  return Watch<v1::IndexTokensResponse>(&Stub::IndexTokens, request, take);
}

absl::StatusOr<v1::SamplePipelineResponse> DaemonConnection::Sample(
    const v1::SamplePipelineRequest& request) {
  return Ask<v1::SamplePipelineResponse>(&Stub::SamplePipeline, request);
}

absl::StatusOr<v1::ListGroupsResponse> DaemonConnection::Groups(const std::string& name) {
  v1::ListGroupsRequest request;
  request.set_name(name);
  return Ask<v1::ListGroupsResponse>(&Stub::ListGroups, request);
}

absl::StatusOr<v1::Pipeline> DaemonConnection::Create(const v1::SpecSource& source,
                                                      const std::string& cursor,
                                                      bool allow_changed_work) {
  v1::CreatePipelineRequest request;
  request.set_cursor(cursor);
  request.set_allow_changed_work(allow_changed_work);
  *request.mutable_source() = source;
  return Create(request);
}

absl::StatusOr<v1::Pipeline> DaemonConnection::Create(const v1::CreatePipelineRequest& request) {
  v1::CreatePipelineResponse response;
  const absl::Status status = Call(&Stub::CreatePipeline, request, &response);
  if (!status.ok()) return status;
  return std::move(*response.mutable_pipeline());
}

absl::StatusOr<v1::ValidatePipelineResponse> DaemonConnection::Validate(
    const v1::SpecSource& source, const WorldArgument& world) {
  v1::ValidatePipelineRequest request;
  *request.mutable_source() = source;
  world.AddTo(&request);
  v1::ValidatePipelineResponse response;
  const absl::Status status = Call(&Stub::ValidatePipeline, request, &response);
  if (!status.ok()) return status;
  if (request.world().hosts() > 1 && !response.pipeline().has_world()) {
    return absl::FailedPreconditionError(
        "--world: the daemon is of a release that knows nothing of several hosts, and would make "
        "all rows");
  }
  return response;
}

absl::StatusOr<v1::ListPipelinesResponse> DaemonConnection::List() {
  v1::ListPipelinesResponse response;
  const absl::Status status = Call(&Stub::ListPipelines, v1::ListPipelinesRequest(), &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::Pipeline> DaemonConnection::Get(const std::string& name) {
  v1::GetPipelineRequest request;
  request.set_name(name);
  v1::GetPipelineResponse response;
  const absl::Status status = Call(&Stub::GetPipeline, request, &response);
  if (!status.ok()) return status;
  return std::move(*response.mutable_pipeline());
}

absl::StatusOr<v1::PipelineStats> DaemonConnection::Stats(const std::string& name) {
  v1::GetStatsRequest request;
  request.set_name(name);
  v1::GetStatsResponse response;
  const absl::Status status = Call(&Stub::GetStats, request, &response);
  if (!status.ok()) return status;
  return std::move(*response.mutable_stats());
}

absl::StatusOr<v1::ListSkippedResponse> DaemonConnection::Skipped(const std::string& name) {
  v1::ListSkippedRequest request;
  request.set_name(name);
  v1::ListSkippedResponse response;
  const absl::Status status = Call(&Stub::ListSkipped, request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ShowRowResponse> DaemonConnection::ShowRow(const v1::ShowRowRequest& request) {
  v1::ShowRowResponse response;
  const absl::Status status = Call(&Stub::ShowRow, request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::FindRecordsResponse> DaemonConnection::FindRecords(
    const v1::FindRecordsRequest& request) {
  v1::FindRecordsResponse response;
  const absl::Status status = Call(&Stub::FindRecords, request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::FindRowResponse> DaemonConnection::FindRow(const v1::FindRowRequest& request) {
  v1::FindRowResponse response;
  const absl::Status status = Call(&Stub::FindRow, request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::Status DaemonConnection::Delete(const std::string& name) {
  v1::DeletePipelineRequest request;
  request.set_name(name);
  v1::DeletePipelineResponse response;
  return Call(&Stub::DeletePipeline, request, &response);
}

absl::Status DaemonConnection::Pause(const std::string& name) {
  v1::PausePipelineRequest request;
  request.set_name(name);
  v1::PausePipelineResponse response;
  return Call(&Stub::PausePipeline, request, &response);
}

absl::StatusOr<std::string> DaemonConnection::Resume(const std::string& name) {
  v1::ResumePipelineRequest request;
  request.set_name(name);
  v1::ResumePipelineResponse response;
  const absl::Status status = Call(&Stub::ResumePipeline, request, &response);
  if (!status.ok()) return status;
  return response.notice();
}

absl::StatusOr<v1::DrainPipelineResponse> DaemonConnection::Drain(
    const v1::DrainPipelineRequest& request) {
  return Ask<v1::DrainPipelineResponse>(&Stub::DrainPipeline, request);
}

absl::StatusOr<v1::SeekPipelineResponse> DaemonConnection::Seek(
    const v1::SeekPipelineRequest& request) {
  return Ask<v1::SeekPipelineResponse>(&Stub::SeekPipeline, request);
}

absl::StatusOr<v1::UpdatePipelineResponse> DaemonConnection::Update(
    const v1::UpdatePipelineRequest& request) {
  return Ask<v1::UpdatePipelineResponse>(&Stub::UpdatePipeline, request);
}

absl::StatusOr<v1::ListConsumersResponse> DaemonConnection::Consumers(
    const v1::ListConsumersRequest& request) {
  return Ask<v1::ListConsumersResponse>(&Stub::ListConsumers, request);
}

absl::StatusOr<v1::ProfilePipelineResponse> DaemonConnection::Profile(
    const v1::ProfilePipelineRequest& request) {
  return Ask<v1::ProfilePipelineResponse>(&Stub::ProfilePipeline, request);
}

absl::Status DaemonConnection::Detach(const v1::DetachConsumerRequest& request) {
  return Ask<v1::DetachConsumerResponse>(&Stub::DetachConsumer, request).status();
}

absl::Status DaemonConnection::DropGroup(const std::string& name, const std::string& group) {
  v1::DropGroupRequest request;
  request.set_name(name);
  request.set_group(group);
  return Ask<v1::DropGroupResponse>(&Stub::DropGroup, request).status();
}

absl::Status DaemonConnection::UpdateGroup(const v1::UpdateGroupRequest& request) {
  return Ask<v1::UpdateGroupResponse>(&Stub::UpdateGroup, request).status();
}

absl::StatusOr<v1::ExplainPipelineResponse> DaemonConnection::Explain(const std::string& name) {
  v1::ExplainPipelineRequest request;
  request.set_name(name);
  return Ask<v1::ExplainPipelineResponse>(&Stub::ExplainPipeline, request);
}

absl::Status DaemonConnection::SetLogLevel(v1::LogLevel level) {
  v1::SetLogLevelRequest request;
  request.set_level(level);
  return Ask<v1::SetLogLevelResponse>(&Stub::SetLogLevel, request).status();
}

int Report(const std::string& command, const absl::Status& status) {
  if (status.ok()) return kDone;
  std::fprintf(stderr, "penstock %s: %s\n", command.c_str(), status.ToString().c_str());
  return kFailed;
}

}  // namespace penstock::ctl
