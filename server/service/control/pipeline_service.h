// The gRPC face of the pipeline table (proto/penstock/v1/control.proto).
//
// Threads:  gRPC's; a call that goes on telling keeps one until it ends.
// Owns:     nothing; the table must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/v1/control.grpc.pb.h"
#include "penstock/v1/server.pb.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/access.h"
#include "server/service/socket/asker.h"
#include "server/service/socket/user_places.h"
#include "server/service/tune/monitor.h"

namespace penstock {

// The codes are the same. Messages are cut to what fits an HTTP/2 header. With details
// (error_details.h), which name the pipeline if it is not "".
grpc::Status ToGrpc(const absl::Status& status, const std::string& pipeline = "");

class PipelineServiceImpl final : public v1::PipelineService::Service {
 public:
  // Whether a call is admitted, or an item belongs on a list that it gets.
  enum class Asked { kCall, kItem };
  using Gate = std::function<absl::Status(const grpc::ServerContext& context, v1::Right right,
                                          const std::string& pipeline, Asked asked)>;

  // Of look-ups: how long one may go through a stream, and how many run at a time, each on a thread
  // that computes: others call as before meanwhile.
  struct LookUpLimits {
    absl::Duration time = absl::Minutes(10);
    size_t at_a_time = 8;
  };

  // Nobody when the caller has hung up.
  using WhoIs = std::function<std::optional<Identity>(const grpc::ServerContext& context)>;

  // `max_streams`: calls at a time that go on telling. `no_place`: told of each beyond those.
  PipelineServiceImpl(PipelineTable& table, const Monitor& monitor,
                      std::function<int()> max_streams, Gate gate, WhoIs who_is,
                      std::function<void()> no_place)
      : table_(table),
        monitor_(monitor),
        max_streams_(std::move(max_streams)),
        gate_(std::move(gate)),
        who_is_(std::move(who_is)),
        no_place_(std::move(no_place)) {}

  // Before anybody calls.
  void SetLookUpLimits(const LookUpLimits& limits) { look_up_limits_ = limits; }

  // --- pipeline_service_watching.cc ---
  grpc::Status WatchStats(grpc::ServerContext* context, const v1::WatchStatsRequest* request,
                          grpc::ServerWriter<v1::WatchStatsResponse>* writer) override;
  grpc::Status WatchEvents(grpc::ServerContext* context, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::WatchEventsResponse>* writer) override;
  grpc::Status IndexTokens(grpc::ServerContext* context, const v1::IndexTokensRequest* request,
                           grpc::ServerWriter<v1::IndexTokensResponse>* writer) override;
  grpc::Status SamplePipeline(grpc::ServerContext* context,
                              const v1::SamplePipelineRequest* request,
                              v1::SamplePipelineResponse* response) override;
  grpc::Status ListGroups(grpc::ServerContext* context, const v1::ListGroupsRequest* request,
                          v1::ListGroupsResponse* response) override;

  // --- pipeline_service.cc ---
  grpc::Status ListSkipped(grpc::ServerContext* context, const v1::ListSkippedRequest* request,
                           v1::ListSkippedResponse* response) override;
  grpc::Status FindRecords(grpc::ServerContext* context, const v1::FindRecordsRequest* request,
                           v1::FindRecordsResponse* response) override;
  grpc::Status ShowRow(grpc::ServerContext* context, const v1::ShowRowRequest* request,
                       v1::ShowRowResponse* response) override;
  grpc::Status FindRow(grpc::ServerContext* context, const v1::FindRowRequest* request,
                       v1::FindRowResponse* response) override;
  grpc::Status CreatePipeline(grpc::ServerContext* context,
                              const v1::CreatePipelineRequest* request,
                              v1::CreatePipelineResponse* response) override;
  grpc::Status ValidatePipeline(grpc::ServerContext* context,
                                const v1::ValidatePipelineRequest* request,
                                v1::ValidatePipelineResponse* response) override;
  grpc::Status ListPipelines(grpc::ServerContext* context, const v1::ListPipelinesRequest* request,
                             v1::ListPipelinesResponse* response) override;
  grpc::Status GetPipeline(grpc::ServerContext* context, const v1::GetPipelineRequest* request,
                           v1::GetPipelineResponse* response) override;
  grpc::Status GetStats(grpc::ServerContext* context, const v1::GetStatsRequest* request,
                        v1::GetStatsResponse* response) override;
  grpc::Status DeletePipeline(grpc::ServerContext* context,
                              const v1::DeletePipelineRequest* request,
                              v1::DeletePipelineResponse* response) override;

  // --- pipeline_service_steering.cc ---
  grpc::Status PausePipeline(grpc::ServerContext* context, const v1::PausePipelineRequest* request,
                             v1::PausePipelineResponse* response) override;
  grpc::Status ResumePipeline(grpc::ServerContext* context,
                              const v1::ResumePipelineRequest* request,
                              v1::ResumePipelineResponse* response) override;
  grpc::Status DrainPipeline(grpc::ServerContext* context, const v1::DrainPipelineRequest* request,
                             v1::DrainPipelineResponse* response) override;
  grpc::Status SeekPipeline(grpc::ServerContext* context, const v1::SeekPipelineRequest* request,
                            v1::SeekPipelineResponse* response) override;
  grpc::Status UpdatePipeline(grpc::ServerContext* context,
                              const v1::UpdatePipelineRequest* request,
                              v1::UpdatePipelineResponse* response) override;
  grpc::Status ListConsumers(grpc::ServerContext* context, const v1::ListConsumersRequest* request,
                             v1::ListConsumersResponse* response) override;
  grpc::Status DetachConsumer(grpc::ServerContext* context,
                              const v1::DetachConsumerRequest* request,
                              v1::DetachConsumerResponse* response) override;
  grpc::Status UpdateGroup(grpc::ServerContext* context, const v1::UpdateGroupRequest* request,
                           v1::UpdateGroupResponse* response) override;
  grpc::Status DropGroup(grpc::ServerContext* context, const v1::DropGroupRequest* request,
                         v1::DropGroupResponse* response) override;
  grpc::Status ExplainPipeline(grpc::ServerContext* context,
                               const v1::ExplainPipelineRequest* request,
                               v1::ExplainPipelineResponse* response) override;
  grpc::Status ProfilePipeline(grpc::ServerContext* context,
                               const v1::ProfilePipelineRequest* request,
                               v1::ProfilePipelineResponse* response) override;
  grpc::Status SetLogLevel(grpc::ServerContext* context, const v1::SetLogLevelRequest* request,
                           v1::SetLogLevelResponse* response) override;

 private:
  absl::Status Admit(const grpc::ServerContext* context, v1::Right right,
                     const std::string& pipeline) const;
  // PermissionDenied when the caller has hung up.
  absl::StatusOr<Identity> Caller(const grpc::ServerContext* context) const;
  std::optional<uid_t> UserOf(const grpc::ServerContext* context) const;
  // The same for events and the log; nobody when the caller has hung up.
  Asker By(const grpc::ServerContext* context) const;
  // The spec of `source`, which its author may have this daemon read.
  absl::StatusOr<v1::PipelineSpec> Resolve(const grpc::ServerContext* context,
                                           const v1::SpecSource& source) const;

  // The pipeline that the caller has the right to; NotFound names those that it may see.
  absl::StatusOr<std::shared_ptr<Pipeline>> Get(const grpc::ServerContext* context, v1::Right right,
                                                const std::string& name) const;
  // The pipeline that Get() has refused since it is set aside; nothing where that was not the
  // reason.
  std::optional<v1::Pipeline> SetAside(const absl::Status& got, const std::string& name) const;
  // What PipelineTable::Find() says, with its reason.
  static absl::Status NotThere(const absl::Status& found);
  PipelineTable::Visible VisibleTo(const grpc::ServerContext* context) const;
  // What `walk(plan, limits)` finds in the stream that `source` describes, for as long as the
  // caller waits; at most so many at a time. It goes on unheard where it does not end, and so must
  // own what it touches.
  template <typename Found, typename Walk>
  grpc::Status LookUp(const grpc::ServerContext* context, const v1::SpecSource& source,
                      Found* found, const Walk& walk);

  PipelineTable& table_;
  const Monitor& monitor_;
  const std::function<int()> max_streams_;
  const Gate gate_;
  const WhoIs who_is_;
  const std::function<void()> no_place_;
  LookUpLimits look_up_limits_;  // constant once somebody calls
  UserPlaces streams_;           // of those that go on telling
  UserPlaces look_ups_;          // of those that go through a stream
};

}  // namespace penstock
