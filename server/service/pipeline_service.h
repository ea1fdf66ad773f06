// The gRPC face of the pipeline table (proto/penstock/v1/control.proto).
//
// Threads:  gRPC's; keeps no state of its own.
// Owns:     nothing; the table must outlive it.
#pragma once

#include "absl/status/status.h"
#include "penstock/v1/control.grpc.pb.h"
#include "server/service/pipeline_table.h"

namespace penstock {

// The codes are the same. Messages are cut to what fits an HTTP/2 header.
grpc::Status ToGrpc(const absl::Status& status);

class PipelineServiceImpl final : public v1::PipelineService::Service {
 public:
  explicit PipelineServiceImpl(PipelineTable& table) : table_(table) {}

  grpc::Status ListSkipped(grpc::ServerContext*, const v1::ListSkippedRequest* request,
                           v1::ListSkippedResponse* response) override;
  grpc::Status FindRecords(grpc::ServerContext*, const v1::FindRecordsRequest* request,
                           v1::FindRecordsResponse* response) override;
  grpc::Status ShowRow(grpc::ServerContext*, const v1::ShowRowRequest* request,
                       v1::ShowRowResponse* response) override;
  grpc::Status FindRow(grpc::ServerContext*, const v1::FindRowRequest* request,
                       v1::FindRowResponse* response) override;
  grpc::Status CreatePipeline(grpc::ServerContext*, const v1::CreatePipelineRequest* request,
                              v1::CreatePipelineResponse* response) override;
  grpc::Status ValidatePipeline(grpc::ServerContext*, const v1::ValidatePipelineRequest* request,
                                v1::ValidatePipelineResponse* response) override;
  grpc::Status ListPipelines(grpc::ServerContext*, const v1::ListPipelinesRequest* request,
                             v1::ListPipelinesResponse* response) override;
  grpc::Status GetPipeline(grpc::ServerContext*, const v1::GetPipelineRequest* request,
                           v1::GetPipelineResponse* response) override;
  grpc::Status GetStats(grpc::ServerContext*, const v1::GetStatsRequest* request,
                        v1::GetStatsResponse* response) override;
  grpc::Status DeletePipeline(grpc::ServerContext*, const v1::DeletePipelineRequest* request,
                              v1::DeletePipelineResponse* response) override;

 private:
  PipelineTable& table_;
};

}  // namespace penstock
