// What a pipeline tells of itself. It has no state: it looks at that of the others.
//
// Threads:  safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/v1/control.pb.h"
#include "server/engine/run/executor.h"
#include "server/service/pipeline/pipeline_basis.h"
#include "server/service/pipeline/pipeline_keeper.h"
#include "server/service/pipeline/pipeline_numbers.h"
#include "server/service/pipeline/pipeline_streams.h"
#include "server/service/watch/analysis.h"
#include "server/service/watch/consumer_waits.h"

namespace penstock {

// What its workers did while it was taken, and when its consumers waited.
struct TakenProfile {
  WorkSpans spans;
  std::vector<ConsumerWait> waits;
};

class PipelineWatching {
 public:
  PipelineWatching(const PipelineBasis& basis, const PipelineNumbers& numbers,
                   const PipelineKeeper& keeper, PipelineStreams& streams)
      : name_(basis.name),
        checked_(basis.checked),
        options_(basis.options),
        high_water_(basis.high_water),
        numbers_(numbers),
        keeper_(keeper),
        streams_(streams) {}

  // As those of Pipeline.
  v1::Pipeline Describe() const;
  v1::PipelineStats Stats(std::vector<uint64_t>* streams) const;
  v1::ListSkippedResponse Skipped() const;
  v1::ListGroupsResponse Groups() const;
  std::vector<WaitLooks> Waits() const;
  absl::StatusOr<v1::SamplePipelineResponse> Sample(int sheet_rows, bool with_numbers) const;
  std::vector<WorkerPulse> Pulses() const;
  // Ends a rest for it.
  absl::StatusOr<TakenProfile> Profile(absl::Duration duration,
                                       const std::function<bool()>& cancelled) const;

 private:
  void SetState(v1::PipelineState* state, v1::PipelineError* error) const;

  const std::string& name_;
  const CheckedPipeline& checked_;
  const PipelineOptions& options_;
  const std::shared_ptr<HighWater>& high_water_;
  const PipelineNumbers& numbers_;
  const PipelineKeeper& keeper_;
  PipelineStreams& streams_;
};

}  // namespace penstock
