// The control plane of a daemon, as the commands call it.
//
// Threads:  one.
// Owns:     its connection, and the private daemon if it started one. gRPC's headers are left to
//           the file behind this one.
// Limits:   a daemon that gives no sign of life for 30 seconds, or $PENSTOCK_ANSWER_SECONDS, is not
//           waited for: DeadlineExceeded.
// Cost:     a private daemon takes some tens of milliseconds to start.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ctl/arguments/world_argument.h"
#include "client/ctl/daemon/private_daemon.h"
#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

class DaemonConnection {
 public:
  // The daemon at `socket`, or at the default place if that is empty; "tcp:HOST:PORT" with the
  // certificate, key and authorities that $PENSTOCK_TLS_CERTIFICATE, _KEY and _AUTHORITIES name.
  // Unavailable and PermissionDenied say what to type next.
  static absl::StatusOr<DaemonConnection> Open(const std::string& socket);

  // The same, but starts a private daemon if `socket` is empty.
  static absl::StatusOr<DaemonConnection> OpenOrStart(const std::string& socket);

  DaemonConnection(DaemonConnection&&);
  DaemonConnection& operator=(DaemonConnection&&);
  ~DaemonConnection();

  const std::string& socket() const { return socket_; }
  bool is_private() const { return daemon_ != nullptr; }
  // REQUIRES: is_private().
  void KillPrivate() { daemon_->Kill(); }

  absl::StatusOr<v1::Pipeline> Create(const v1::SpecSource& source, const std::string& cursor = "",
                                      bool allow_changed_work = false);
  absl::StatusOr<v1::Pipeline> Create(const v1::CreatePipelineRequest& request);
  absl::StatusOr<v1::ValidatePipelineResponse> Validate(const v1::SpecSource& source,
                                                        const WorldArgument& world = {});
  absl::StatusOr<v1::ListPipelinesResponse> List();
  absl::StatusOr<v1::Pipeline> Get(const std::string& name);
  absl::StatusOr<v1::PipelineStats> Stats(const std::string& name);
  // Calls `take` with each answer, until that returns false or the daemon ends it.
  absl::Status WatchStats(const v1::WatchStatsRequest& request,
                          const std::function<bool(const v1::PipelineStats& stats)>& take);
  absl::Status WatchEvents(
      const v1::WatchEventsRequest& request,
      const std::function<bool(const v1::WatchEventsResponse& response)>& take);
  absl::Status IndexTokens(
      const v1::IndexTokensRequest& request,
      const std::function<bool(const v1::IndexTokensResponse& response)>& take);
  absl::StatusOr<v1::SamplePipelineResponse> Sample(const v1::SamplePipelineRequest& request);
  absl::StatusOr<v1::ListGroupsResponse> Groups(const std::string& name);
  absl::StatusOr<v1::ShowRowResponse> ShowRow(const v1::ShowRowRequest& request);
  absl::StatusOr<v1::FindRecordsResponse> FindRecords(const v1::FindRecordsRequest& request);
  absl::StatusOr<v1::FindRowResponse> FindRow(const v1::FindRowRequest& request);
  absl::StatusOr<v1::ListSkippedResponse> Skipped(const std::string& name);
  absl::Status Delete(const std::string& name);

  absl::Status Pause(const std::string& name);
  // What is to be known of it although it was done, or "".
  absl::StatusOr<std::string> Resume(const std::string& name);
  absl::StatusOr<v1::DrainPipelineResponse> Drain(const v1::DrainPipelineRequest& request);
  absl::StatusOr<v1::SeekPipelineResponse> Seek(const v1::SeekPipelineRequest& request);
  absl::StatusOr<v1::UpdatePipelineResponse> Update(const v1::UpdatePipelineRequest& request);
  absl::StatusOr<v1::ListConsumersResponse> Consumers(const v1::ListConsumersRequest& request);
  absl::Status Detach(const v1::DetachConsumerRequest& request);
  absl::Status UpdateGroup(const v1::UpdateGroupRequest& request);
  absl::Status DropGroup(const std::string& name, const std::string& group);
  absl::StatusOr<v1::ExplainPipelineResponse> Explain(const std::string& name);
  absl::StatusOr<v1::ProfilePipelineResponse> Profile(const v1::ProfilePipelineRequest& request);
  absl::Status SetLogLevel(v1::LogLevel level);

 private:
  struct Channel;

  DaemonConnection();
  static absl::StatusOr<DaemonConnection> OpenTcp(DaemonConnection connection);
  // One call: `method` is the stub's.
  template <typename Method, typename Request, typename Response>
  absl::Status Call(Method method, const Request& request, Response* response);
  // One call that goes on telling, until `take` returns false or the daemon ends it or gives no
  // sign of life.
  template <typename Response, typename Method, typename Request>
  absl::Status Watch(Method method, const Request& request,
                     const std::function<bool(const Response& response)>& take);
  absl::Status NoAnswer() const;
  // A daemon's own answers have details; those of gRPC's library have none.
  absl::Status FromGrpc(int code, const std::string& message, bool has_details) const;
  template <typename Response, typename Method, typename Request>
  absl::StatusOr<Response> Ask(Method method, const Request& request);

  std::unique_ptr<PrivateDaemon> daemon_;  // outlives the connection
  std::string socket_;
  uint64_t answer_ns_ = 0;
  std::unique_ptr<Channel> channel_;
};

// "INVALID_ARGUMENT: …" on stderr after the command's name; returns kFailed.
int Report(const std::string& command, const absl::Status& status);

}  // namespace penstock::ctl
