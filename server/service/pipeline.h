// A plan that runs under a name: its executor, its ring, and how it stands.
//
// Threads:  safe from any thread.
// Owns:     the executor until Close(), the ring until the last reference to the pipeline is gone:
// a
//           consumer's session keeps one, so that a ring outlives its deletion while it is read.
// Cost:     Create() lists and opens files and allocates the ring; it may take a second for a large
// one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "penstock/v1/control.pb.h"
#include "penstock/v1/server.pb.h"
#include "ring/writer.h"
#include "server/base/file.h"
#include "server/engine/cursor.h"
#include "server/engine/executor.h"
#include "server/engine/plan.h"
#include "server/service/ring_sink.h"

namespace penstock {

// 1 to 64 of [a-z A-Z 0-9 _ . -], the first a letter or digit.
absl::Status CheckPipelineName(absl::string_view name);

// A checked spec: nothing runs yet.
struct CheckedPipeline {
  std::shared_ptr<const Plan> plan;
  uint32_t slots = 0;
  int workers = 0;  // 0: one for each processor
};
absl::StatusOr<CheckedPipeline> CheckPipeline(const v1::PipelineSpec& spec,
                                              const v1::WorkerDefaults& defaults,
                                              FileSystem& files);

// What a client is told of it; no state.
v1::Pipeline Describe(const CheckedPipeline& checked);

class Pipeline {
 public:
  // Production starts at once.
  static absl::StatusOr<std::shared_ptr<Pipeline>> Create(const v1::PipelineSpec& spec,
                                                          std::string_view cursor,
                                                          ChangedWork changed_work,
                                                          const v1::WorkerDefaults& defaults,
                                                          FileSystem& files);
  ~Pipeline();

  const std::string& name() const { return name_; }
  v1::Pipeline Describe() const;
  v1::PipelineStats Stats() const;
  v1::ListSkippedResponse Skipped() const;
  // None after Close().
  std::vector<WorkerPulse> Pulses() const;

  ring::Status Attach(std::string_view group, int32_t pid, ring::ConsumerHandle* handle);
  void Detach(uint32_t consumer);

  // Stops the executor; its consumers get `reason` after the batches that were ready, unless the
  // stream had ended before.
  void Close(const absl::Status& reason);

 private:
  Pipeline(CheckedPipeline checked, std::unique_ptr<RingSink> sink)
      : name_(checked.plan->spec().name()), checked_(std::move(checked)), sink_(std::move(sink)) {}
  void SetState(v1::PipelineState* state, v1::PipelineError* error) const;

  const std::string name_;
  const CheckedPipeline checked_;
  const std::unique_ptr<RingSink> sink_;
  mutable std::mutex mutex_;
  std::unique_ptr<Executor> executor_;  // under mutex_; null after Close()
};

}  // namespace penstock
