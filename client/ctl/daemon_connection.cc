#include "client/ctl/daemon_connection.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/commands.h"
#include "ring/attach.h"

namespace penstock::ctl {
namespace {

constexpr uint64_t kConnectTimeoutNs = 10'000'000'000;

}  // namespace

absl::StatusOr<DaemonConnection> DaemonConnection::Open(const std::string& socket) {
  DaemonConnection connection;
  connection.socket_ = socket.empty() ? ring::DefaultSocketPath() : socket;
  // Connected here and not by gRPC: its errors would be of the system's words only.
  int fd = -1;
  const ring::Status status = ring::ConnectToDaemon(connection.socket_, kConnectTimeoutNs, &fd);
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.code), status.message);
  }
  // A row that is shown has its values in the answer.
  grpc::ChannelArguments options;
  options.SetMaxReceiveMessageSize(-1);
  connection.stub_ = v1::PipelineService::NewStub(
      grpc::CreateCustomInsecureChannelFromFd("penstockd", fd, options));
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

absl::Status DaemonConnection::FromGrpc(const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && stub_ != nullptr &&
      status.error_message().find("penstockd") == std::string::npos) {
    return absl::UnavailableError(absl::StrCat(
        "penstockd at ", socket_, " closed the connection (", status.error_message(),
        "): it has ended, or user ", geteuid(), " is not in its allowed_uids; see its log"));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::StatusOr<v1::Pipeline> DaemonConnection::Create(const v1::SpecSource& source,
                                                      const std::string& cursor,
                                                      bool allow_changed_work) {
  grpc::ClientContext context;
  v1::CreatePipelineRequest request;
  request.set_cursor(cursor);
  request.set_allow_changed_work(allow_changed_work);
  v1::CreatePipelineResponse response;
  *request.mutable_source() = source;
  const absl::Status status = FromGrpc(stub_->CreatePipeline(&context, request, &response));
  if (!status.ok()) return status;
  return std::move(*response.mutable_pipeline());
}

absl::StatusOr<v1::ValidatePipelineResponse> DaemonConnection::Validate(
    const v1::SpecSource& source) {
  grpc::ClientContext context;
  v1::ValidatePipelineRequest request;
  v1::ValidatePipelineResponse response;
  *request.mutable_source() = source;
  const absl::Status status = FromGrpc(stub_->ValidatePipeline(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ListPipelinesResponse> DaemonConnection::List() {
  grpc::ClientContext context;
  v1::ListPipelinesResponse response;
  const absl::Status status = FromGrpc(stub_->ListPipelines(&context, {}, &response));
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::Pipeline> DaemonConnection::Get(const std::string& name) {
  grpc::ClientContext context;
  v1::GetPipelineRequest request;
  v1::GetPipelineResponse response;
  request.set_name(name);
  const absl::Status status = FromGrpc(stub_->GetPipeline(&context, request, &response));
  if (!status.ok()) return status;
  return std::move(*response.mutable_pipeline());
}

absl::StatusOr<v1::PipelineStats> DaemonConnection::Stats(const std::string& name) {
  grpc::ClientContext context;
  v1::GetStatsRequest request;
  v1::GetStatsResponse response;
  request.set_name(name);
  const absl::Status status = FromGrpc(stub_->GetStats(&context, request, &response));
  if (!status.ok()) return status;
  return std::move(*response.mutable_stats());
}

absl::StatusOr<v1::ListSkippedResponse> DaemonConnection::Skipped(const std::string& name) {
  grpc::ClientContext context;
  v1::ListSkippedRequest request;
  v1::ListSkippedResponse response;
  request.set_name(name);
  const absl::Status status = FromGrpc(stub_->ListSkipped(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ShowRowResponse> DaemonConnection::ShowRow(const v1::ShowRowRequest& request) {
  grpc::ClientContext context;
  v1::ShowRowResponse response;
  const absl::Status status = FromGrpc(stub_->ShowRow(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::FindRecordsResponse> DaemonConnection::FindRecords(
    const v1::FindRecordsRequest& request) {
  grpc::ClientContext context;
  v1::FindRecordsResponse response;
  const absl::Status status = FromGrpc(stub_->FindRecords(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::FindRowResponse> DaemonConnection::FindRow(const v1::FindRowRequest& request) {
  grpc::ClientContext context;
  v1::FindRowResponse response;
  const absl::Status status = FromGrpc(stub_->FindRow(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

absl::Status DaemonConnection::Delete(const std::string& name) {
  grpc::ClientContext context;
  v1::DeletePipelineRequest request;
  v1::DeletePipelineResponse response;
  request.set_name(name);
  return FromGrpc(stub_->DeletePipeline(&context, request, &response));
}

int Report(const std::string& command, const absl::Status& status) {
  if (status.ok()) return kDone;
  std::fprintf(stderr, "penstock %s: %s\n", command.c_str(), status.ToString().c_str());
  return kFailed;
}

}  // namespace penstock::ctl
