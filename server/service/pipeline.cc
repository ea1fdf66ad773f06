#include "server/service/pipeline.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/engine/cursor.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr int kMaxWorkers = 1024;
constexpr int kMinSlots = 2;
constexpr int kMaxSlots = 64;

absl::Status CheckNumbers(const v1::PipelineSpec& spec) {
  if (spec.workers() < 0 || spec.workers() > kMaxWorkers) {
    return absl::InvalidArgumentError(absl::StrCat("workers out of range: ", spec.workers(),
                                                   " is not in [0, ", kMaxWorkers, "]"));
  }
  const int slots = spec.ring().slots();
  if (slots != 0 && (slots < kMinSlots || slots > kMaxSlots)) {
    return absl::InvalidArgumentError(absl::StrCat("ring.slots out of range: ", slots,
                                                   " is not 0 (automatic) or in [", kMinSlots, ", ",
                                                   kMaxSlots, "]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPipelineName(absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError(
        "the pipeline has no name: put name: \"…\" into the spec or give --name NAME");
  }
  bool good = name.size() <= kMaxNameBytes && absl::ascii_isalnum(name[0]);
  for (const char c : name) {
    good = good && (absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-');
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("not a pipeline's name: expected 1 to ", kMaxNameBytes,
                   " of [a-z A-Z 0-9 _ . -], the first a letter or digit, found \"",
                   name.substr(0, 2 * kMaxNameBytes), "\""));
}

absl::StatusOr<CheckedPipeline> CheckPipeline(const v1::PipelineSpec& spec,
                                              const v1::WorkerDefaults& defaults,
                                              FileSystem& files) {
  absl::Status status = CheckNumbers(spec);
  if (status.ok() && !spec.name().empty()) status = CheckPipelineName(spec.name());
  if (!status.ok()) return status;
  absl::StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(spec, files);
  if (!plan.ok()) return plan.status();

  CheckedPipeline checked;
  const int slots = (*plan)->spec().ring().slots();
  checked.slots = slots > 0 ? slots : DefaultSlots((*plan)->slot_bytes());
  checked.workers = spec.workers() > 0 ? spec.workers() : defaults.workers();
  checked.plan = *std::move(plan);
  return checked;
}

v1::Pipeline Describe(const CheckedPipeline& checked) {
  v1::Pipeline result;
  const Plan& plan = *checked.plan;
  result.set_name(plan.spec().name());
  *result.mutable_spec() = plan.spec();
  result.mutable_spec()->set_workers(checked.workers);
  result.mutable_spec()->mutable_ring()->set_slots(checked.slots);
  for (const Feature& feature : plan.element()) {
    v1::TensorSignature* tensor = result.add_element();
    tensor->set_name(feature.name);
    tensor->set_dtype(static_cast<v1::DataType>(feature.type.dtype));
    for (const int64_t size : feature.type.shape) tensor->add_shape(size);
    const TensorKind kind = plan.tensors()[result.element_size() - 1].kind;
    tensor->set_kind(kind == TensorKind::kString   ? v1::TENSOR_KIND_STRING
                     : kind == TensorKind::kRagged ? v1::TENSOR_KIND_RAGGED
                                                   : v1::TENSOR_KIND_DENSE);
  }
  result.set_batch_rows(plan.batch_rows());
  result.set_cursor(plan.DescribeCursor());
  result.set_structure(plan.structure());
  result.set_endless(plan.endless());
  result.set_slot_bytes(plan.slot_bytes());
  result.set_slots(checked.slots);
  return result;
}

absl::StatusOr<std::shared_ptr<Pipeline>> Pipeline::Create(const v1::PipelineSpec& spec,
                                                           std::string_view cursor,
                                                           ChangedWork changed_work,
                                                           const v1::WorkerDefaults& defaults,
                                                           FileSystem& files) {
  absl::Status status = CheckPipelineName(spec.name());
  if (!status.ok()) return status;
  absl::StatusOr<CheckedPipeline> checked = CheckPipeline(spec, defaults, files);
  if (!checked.ok()) return checked.status();
  const Plan& plan = *checked->plan;
  const std::shared_ptr<void> indices = plan.KeepIndices();
  ExecutorOptions options;
  options.workers = checked->workers;
  options.worker_nice = defaults.worker_nice();
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(plan);
  if (!fingerprint.ok()) return fingerprint.status();
  if (!cursor.empty()) {
    absl::StatusOr<ResumePoint> start = ReadCursor(cursor, *fingerprint, changed_work);
    if (!start.ok()) return start.status();
    if (!start->notice.empty()) spdlog::warn("pipeline {}: {}", spec.name(), start->notice);
    options.start = *std::move(start);
  }
  options.fingerprint = *std::move(fingerprint);
  absl::StatusOr<std::unique_ptr<RingSink>> sink =
      RingSink::Create(spec.name(), plan.tensors(), checked->slots, plan.structure(),
                       plan.variable_bytes(), options.start.step, CountSteps(plan));
  if (!sink.ok()) return sink.status();

  std::shared_ptr<Pipeline> pipeline(new Pipeline(*std::move(checked), *std::move(sink)));
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Create(pipeline->checked_.plan, *pipeline->sink_, options);
  if (!executor.ok()) return executor.status();
  pipeline->executor_ = *std::move(executor);
  pipeline->executor_->Start();
  return pipeline;
}

Pipeline::~Pipeline() { Close(absl::CancelledError("the pipeline is gone")); }

void Pipeline::SetState(v1::PipelineState* state, v1::PipelineError* error) const {
  const std::optional<absl::Status> outcome = sink_->outcome();
  if (!outcome) {
    *state = v1::PIPELINE_STATE_RUNNING;
  } else if (outcome->ok()) {
    *state = v1::PIPELINE_STATE_FINISHED;
  } else {
    *state = v1::PIPELINE_STATE_FAILED;
    error->set_code(outcome->raw_code());
    error->set_message(std::string(outcome->message()));
  }
}

v1::Pipeline Pipeline::Describe() const {
  v1::Pipeline result = penstock::Describe(checked_);
  v1::PipelineState state;
  v1::PipelineError error;
  SetState(&state, &error);
  result.set_state(state);
  if (error.code() != 0) *result.mutable_error() = error;
  result.set_slots(sink_->writer().slots());
  return result;
}

v1::PipelineStats Pipeline::Stats() const {
  v1::PipelineStats result;
  result.set_name(name_);
  v1::PipelineState state;
  v1::PipelineError error;
  SetState(&state, &error);
  result.set_state(state);
  if (error.code() != 0) *result.mutable_error() = error;
  for (const ring::ConsumerStats& consumer : sink_->writer().Consumers()) {
    v1::ConsumerStats* out = result.add_consumers();
    out->set_id(consumer.id);
    out->set_group(consumer.group);
    out->set_pid(consumer.pid);
    out->set_position(consumer.position);
    out->set_leases(consumer.leases);
  }
  result.set_slots(sink_->writer().slots());
  result.set_ring_bytes(result.slots() * checked_.plan->slot_bytes());

  std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ == nullptr) return result;
  const ExecutorStats stats = executor_->Snapshot();
  result.set_steps(stats.steps);
  result.set_rows(stats.rows);
  result.set_epoch(stats.epoch);
  result.set_records(stats.records);
  result.set_bytes_read(stats.bytes_read);
  result.set_workers(stats.workers);
  result.set_skipped(stats.skipped);
  result.set_slot_wait_ns(stats.slot_wait_ns);
  result.set_running_ns(stats.running_ns);
  result.set_bottleneck(stats.bottleneck);
  for (const StageStats& stage : stats.stages) {
    v1::StageStats* out = result.add_stages();
    out->set_name(stage.name);
    out->set_elements(stage.elements);
    out->set_busy_ns(stage.busy_ns);
  }
  return result;
}

v1::ListSkippedResponse Pipeline::Skipped() const {
  v1::ListSkippedResponse result;
  std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ == nullptr) return result;
  for (const SkippedPlace& place : executor_->Skipped()) {
    v1::SkippedPlace* out = result.add_places();
    out->set_file(checked_.plan->FilePath(place.file));
    out->set_offset(place.damage.offset);
    out->set_length(place.damage.length == kDamageToTheEnd ? 0 : place.damage.length);
    out->set_reason(place.message.empty() ? DamageReasonName(place.damage.reason) : place.message);
    out->set_epoch(place.epoch);
  }
  result.set_count(executor_->Snapshot().skipped);
  return result;
}

std::vector<WorkerPulse> Pipeline::Pulses() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return executor_ == nullptr ? std::vector<WorkerPulse>() : executor_->Pulses();
}

ring::Status Pipeline::Attach(std::string_view group, int32_t pid, ring::ConsumerHandle* handle) {
  return sink_->writer().Attach(group, pid, handle);
}

void Pipeline::Detach(uint32_t consumer) { sink_->writer().Detach(consumer); }

void Pipeline::Close(const absl::Status& reason) {
  std::unique_ptr<Executor> executor;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    executor = std::move(executor_);
  }
  if (executor == nullptr) return;
  executor->Stop();
  sink_->Close(reason);
}

}  // namespace penstock
