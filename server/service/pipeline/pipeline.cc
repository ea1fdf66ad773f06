#include "server/service/pipeline/pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/on_behalf.h"
#include "server/engine/plan/open_seeds.h"
#include "server/engine/spec/stages.h"
#include "server/service/pipeline/pipeline_drain.h"
#include "server/service/stream/read_deadline.h"
#include "server/service/stream/within_deadline.h"
#include "spdlog/spdlog.h"

namespace penstock {

absl::StatusOr<Pipeline::Prepared> Pipeline::Prepare(const v1::PipelineSpec& spec,
                                                     const PipelineOptions& options,
                                                     FileSystem& files) {
  const MemoryAccount::Scope charged(options.work_memory.get());
  const OnBehalf::Scope owner(options.owner.uid);
  absl::Status status = CheckPipelineName(spec.name());
  if (!status.ok()) return status;
  absl::StatusOr<CheckedPipeline> checked =
      CheckPipeline(spec, options.defaults, files, options.world, options.fewest_hosts);
  if (!checked.ok()) return checked.status();
  std::shared_ptr<void> indices = checked->plan->KeepIndices();
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(*checked->plan);
  if (!fingerprint.ok()) return fingerprint.status();
  Timeline timeline(checked->plan, *std::move(fingerprint), checked->layout);
  for (size_t i = 0; i < options.state.history.size(); ++i) {
    const v1::Change& change = options.state.history[i];
    absl::StatusOr<Timeline::NextPlan> next = timeline.Prepare(change, files);
    status = next.ok() ? timeline.Add(change, *std::move(next), Timeline::kMaxKeptChanges)
                       : next.status();
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("change ", i, " of the history: ", status.message()));
    }
  }
  if (options.state.meanings) {
    status = timeline.CheckMeaningsOfPhases(*options.state.meanings);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat(status.message(),
                       "; restart the daemon of the release that this pipeline was made with, or "
                       "delete the pipeline and create it anew, to begin with the new meaning"));
    }
  }
  timeline.BeginBehind(options.cursor, options.changed_work);
  std::shared_ptr<Pipeline> pipeline(
      new Pipeline(*std::move(checked), std::move(timeline), options, files));
  return Prepared{std::move(pipeline), std::move(indices)};
}

absl::StatusOr<std::shared_ptr<Pipeline>> Pipeline::Create(const v1::PipelineSpec& spec,
                                                           const PipelineOptions& options,
                                                           FileSystem& files) {
  absl::StatusOr<Prepared> prepared = Within<Prepared>(
      {ReadDeadlineNs(spec, options.defaults), options.leftovers, options.unwanted},
      absl::StrCat("the creation of pipeline ", spec.name()),
      [spec, options, &files] { return Prepare(spec, options, files); });
  if (!prepared.ok()) return prepared.status();
  const std::shared_ptr<Pipeline> pipeline = std::move(prepared->pipeline);
  if (absl::Status taken = pipeline->numbers_.TakeWorkers(options.returns); !taken.ok())
    return taken;
  if (options.returns) return pipeline;
  PipelineStreams& streams = pipeline->streams_;
  absl::StatusOr<std::shared_ptr<Stream>> stream =
      streams.Make(options.cursor, pipeline->numbers_.slots(), options.owner);
  if (absl::IsFailedPrecondition(stream.status()) && !options.cursor.empty()) {
    const absl::Status seeds = CheckSeedsAreGiven(spec, pipeline->spec());
    if (!seeds.ok())
      return absl::FailedPreconditionError(
          absl::StrCat(stream.status().message(), "; ", seeds.message()));
  }
  if (!stream.ok()) return stream.status();
  if (absl::Status status = streams.Begin(*stream); !status.ok()) return status;
  return pipeline;
}

Pipeline::~Pipeline() { Close(absl::CancelledError("the pipeline is gone")); }

std::vector<std::string> Pipeline::StageNames() const { return penstock::StageNames(LastSpec()); }

uint32_t Pipeline::MostSlots() const {
  const std::shared_ptr<Stream> stream = streams_.shared();
  return stream == nullptr ? 0 : numbers_.MostSlots(stream->writer());
}

absl::StatusOr<DrainedAt> Pipeline::Drain(absl::Duration timeout, const Cancelled& cancelled,
                                          const Asker& by) {
  if (absl::Status status = Pause(true, /*notice=*/nullptr, by); !status.ok()) return status;
  return WaitUntilTaken(name(), streams_, timeout, cancelled);
}

void Pipeline::LeaveHighWater() {
  if (const absl::Status written = basis_.high_water->WriteLast(); !written.ok()) {
    spdlog::warn(
        "pipeline {}: what was handed out could not be written down: changes of the next daemon "
        "begin behind what was reserved ({})",
        name(), written.ToString());
  }
}

}  // namespace penstock
