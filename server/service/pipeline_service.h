// The gRPC face of the pipeline table (proto/penstock/v1/control.proto).
//
// Threads:  gRPC's; keeps no state of its own.
// Owns:     nothing; the table must outlive it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/v1/control.grpc.pb.h"
#include "penstock/v1/server.pb.h"
#include "server/service/monitor.h"
#include "server/service/pipeline_table.h"

namespace penstock {

// The codes are the same. Messages are cut to what fits an HTTP/2 header.
grpc::Status ToGrpc(const absl::Status& status);

class PipelineServiceImpl final : public v1::PipelineService::Service {
 public:
  // Whether a call is admitted that comes from `peer` (grpc::ServerContext::peer()), or an item
  // belongs on a list that it gets.
  enum class Asked { kCall, kItem };
  using Gate = std::function<absl::Status(const std::string& peer, v1::Right right,
                                          const std::string& pipeline, Asked asked)>;

  PipelineServiceImpl(PipelineTable& table, const Monitor& monitor, Gate gate)
      : table_(table), monitor_(monitor), gate_(std::move(gate)) {}

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

 private:
  absl::Status Admit(const grpc::ServerContext* context, v1::Right right,
                     const std::string& pipeline) const;
  // The spec of `source`, which its author may have this daemon read.
  absl::StatusOr<v1::PipelineSpec> Resolve(const grpc::ServerContext* context,
                                           const v1::SpecSource& source) const;

  PipelineTable& table_;
  const Monitor& monitor_;
  const Gate gate_;
};

}  // namespace penstock
