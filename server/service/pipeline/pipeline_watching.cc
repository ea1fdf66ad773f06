#include "server/service/pipeline/pipeline_watching.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "server/engine/plan/files_of.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/python_functions.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"
#include "server/service/pipeline/group_lists.h"
#include "server/service/state/slow_policy.h"
#include "server/service/state/world_message.h"
#include "server/service/watch/remote_stats.h"
#include "server/service/watch/sample.h"

namespace penstock {
namespace {

// Between two looks at the consumers of a pipeline that is profiled.
constexpr std::chrono::milliseconds kLook(2);

v1::ReadUnderWay ToProto(const CallUnderWay& call) {
  v1::ReadUnderWay out;
  out.set_doing(call.doing);
  out.set_file(ReadableUtf8(call.path));
  out.set_offset(call.offset);
  out.set_seconds(1e-9 * static_cast<double>(call.ns));
  return out;
}

v1::PythonWorkers ToProto(const AwayWorkers& workers) {
  v1::PythonWorkers out;
  out.set_workers(workers.workers);
  out.set_most_workers(workers.most_workers);
  out.set_chosen(workers.is_chosen);
  out.set_rows(workers.rows);
  out.set_busy_ns(workers.busy_ns);
  out.set_started(workers.started);
  out.set_deaths(workers.deaths);
  out.set_memory_bytes(workers.memory_bytes);
  out.set_uid(workers.user);
  out.set_loading_seconds(1e-9 * static_cast<double>(workers.loading_ns));
  if (workers.offers >= 0) out.set_offers(static_cast<uint32_t>(workers.offers));
  const double oldest = 1e-9 * static_cast<double>(workers.oldest_row_ns);
  if (workers.is_unoffered) {
    out.set_waits_for_offer_seconds(oldest);
  } else {
    out.set_oldest_row_seconds(oldest);
  }
  return out;
}

// The one of both that has taken longest.
void TakeOlder(const std::optional<CallUnderWay>& call, std::optional<CallUnderWay>* oldest) {
  if (call && (!*oldest || call->ns > (*oldest)->ns)) *oldest = call;
}

// Elements that lie between a stage and the one before it: those that a shuffle holds, that workers
// have in their hands, that wait for the rest of their batch. 0 for stages that make other elements
// of them, whose numbers cannot be compared.
uint64_t QueueOf(const ExecutorStats& stats, const v1::PipelineSpec& spec, int stage) {
  if (stage == 0 || static_cast<int>(stats.stages.size()) != spec.stage_size()) return 0;
  const uint64_t before = stats.stages[static_cast<size_t>(stage - 1)].elements;
  uint64_t behind = stats.stages[static_cast<size_t>(stage)].elements;
  const OpTraits& traits = TraitsOf(spec.stage(stage));
  if (traits.batch_size != 0) {
    behind = stats.rows;
  } else if (traits.gives != Given::kOneEach) {
    return 0;
  }
  return before > behind ? before - behind : 0;
}

// How often a stage takes of each of its inputs, where its op weighs them. `stage`: as the spec has
// it.
void SayWeights(const v1::Stage& stage, v1::StageStats* out) {
  const OpTraits& traits = TraitsOf(stage);
  if (traits.weights == 0) return;
  const google::protobuf::Message& all_options = *OptionsOf(stage);
  if (const auto given = FindOption(all_options, traits.weights); given.options != nullptr) {
    const google::protobuf::Reflection& reflection = *given.options->GetReflection();
    for (int i = 0; i < reflection.FieldSize(*given.options, given.field); ++i)
      out->add_input_weight(reflection.GetRepeatedDouble(*given.options, given.field, i));
  }
  const google::protobuf::FieldDescriptor* const inputs = InputField(all_options);
  if (inputs == nullptr || !out->input_weight().empty()) return;
  for (int i = 0; i < all_options.GetReflection()->FieldSize(all_options, inputs); ++i)
    out->add_input_weight(1);
}

}  // namespace

void PipelineWatching::SetState(v1::PipelineState* state, v1::PipelineError* error) const {
  const std::optional<absl::Status> outcome = streams_.outcome();
  if (!outcome) {
    *state = keeper_.paused() ? v1::PIPELINE_STATE_PAUSED : v1::PIPELINE_STATE_RUNNING;
  } else if (outcome->ok()) {
    *state = v1::PIPELINE_STATE_FINISHED;
  } else {
    *state = v1::PIPELINE_STATE_FAILED;
    error->set_code(outcome->raw_code());
    error->set_message(ReadableUtf8(outcome->message()));
  }
}

v1::Pipeline PipelineWatching::Describe() const {
  v1::Pipeline result = penstock::Describe(checked_);
  keeper_.Look([&](const Timeline& timeline) {
    *result.mutable_spec()->mutable_stage() = timeline.known().plan->spec().stage();
    result.clear_world();
    SetWorld(timeline.known().plan->world(), &result);
    numbers_.Describe(result.mutable_spec());
    for (const v1::Change& change : timeline.history()) *result.add_history() = change;
    result.set_etag(timeline.Etag());
  });
  v1::PipelineState state;
  v1::PipelineError error;
  SetState(&state, &error);
  result.set_state(state);
  if (error.code() != 0) *result.mutable_error() = error;
  PythonFunctions functions;
  AddPythonFunctions(result.spec(), &functions);
  if (!functions.empty()) result.set_python_uid(options_.owner.uid);
  for (const std::string& notice : keeper_.Notices()) result.add_notice(notice);
  if (const auto stream = streams_.shared()) result.set_slots(stream->writer().slots());
  if (const auto uid = ShownUid(options_.owner.uid)) result.set_owner_uid(*uid);
  result.set_workers(static_cast<uint32_t>(numbers_.workers()));
  return result;
}

v1::PipelineStats PipelineWatching::Stats(std::vector<uint64_t>* streams) const {
  v1::PipelineStats result;
  result.set_name(name_);
  v1::PipelineState state;
  v1::PipelineError error;
  SetState(&state, &error);
  result.set_state(state);
  if (error.code() != 0) *result.mutable_error() = error;
  keeper_.Look([&](const Timeline& timeline) {
    SetWorld(timeline.known().plan->world(), &result);
    result.set_python_code(timeline.known().fingerprint.code());
  });
  AddRemote(FilesOf(*checked_.plan), &result);
  const PipelineStreams::Standing now = streams_.standing();
  if (now.resting) {
    result.set_resting(true);
    result.set_steps(now.resting->at.step);
  }
  const std::shared_ptr<Stream>& stream = now.shared;
  if (stream == nullptr) return result;
  result.set_small_pages(!stream->writer().has_huge_pages());
  stream->placement().Describe(stream->writer(), &result);
  const std::vector<std::shared_ptr<Stream>> all = streams_.All();
  for (const auto& one : all) {
    for (const ring::ConsumerStats& consumer : one->writer().Consumers()) {
      if (streams != nullptr) streams->push_back(one->ordinal());
      v1::ConsumerStats* out = result.add_consumers();
      out->set_id(consumer.id);
      out->set_group(consumer.group);
      out->set_pid(consumer.pid);
      out->set_position(consumer.position);
      out->set_lag(consumer.lag);
      out->set_leases(consumer.leases);
      out->set_name(consumer.name);
      out->set_replay(one != stream);
      out->set_missed(consumer.skipped);
      out->set_detached(consumer.detached);
      out->set_left(consumer.left);
      if (consumer.uid != UINT32_MAX) out->set_uid(consumer.uid);
    }
  }
  AddWaitedFor(stream->writer(), &result);
  result.set_slots(stream->writer().slots());
  result.set_used_slots(stream->writer().used_slots());
  result.set_ring_bytes(stream->writer().memory_bytes());
  if (options_.work_memory != nullptr) {
    const uint64_t most = options_.work_memory->bytes_max();
    result.set_work_bytes(options_.work_memory->taken());
    result.set_max_work_bytes(most == UINT64_MAX ? 0 : most);
  }

  if (numbers_.tunes().any()) {
    *result.mutable_autotune() = numbers_.autotune();
    result.mutable_autotune()->set_on(true);
  }

  const std::optional<ExecutorStats> snapshot = stream->Snapshot();
  if (!snapshot) return result;
  const ExecutorStats& stats = *snapshot;
  result.set_steps(stats.steps);
  result.set_made_steps(stats.steps - std::min(stats.steps, stream->first_step()));
  result.set_rows(stats.rows);
  result.set_epoch(stats.epoch);
  result.set_records(stats.records);
  result.set_bytes_read(stats.bytes_read);
  result.set_workers(stats.workers);
  result.set_skipped(stats.skipped);
  result.set_slot_wait_ns(stats.slot_wait_ns);
  result.set_running_ns(stats.running_ns);
  result.set_bottleneck(stats.bottleneck);
  std::optional<CallUnderWay> read = stats.oldest_read, write = stats.oldest_write,
                              work = stats.oldest_work;
  size_t tasks_away = stats.tasks_away;
  for (const auto& one : all) {
    const std::optional<ExecutorStats> of_replay = one == stream ? std::nullopt : one->Snapshot();
    if (!of_replay) continue;
    TakeOlder(of_replay->oldest_read, &read);
    TakeOlder(of_replay->oldest_write, &write);
    TakeOlder(of_replay->oldest_work, &work);
    tasks_away += of_replay->tasks_away;
  }
  if (const auto held_back_ns = high_water_->HeldBackNs())
    TakeOlder(CallUnderWay{CallKind::kWrite, "writing", high_water_->path(), 0, *held_back_ns},
              &write);
  if (const auto unkept_ns = keeper_.EpochUnkeptNs())
    TakeOlder(CallUnderWay{CallKind::kWrite, "writing", options_.state_path, 0, *unkept_ns},
              &write);
  if (read) *result.mutable_oldest_read() = ToProto(*read);
  if (write) *result.mutable_oldest_write() = ToProto(*write);
  if (work) *result.mutable_oldest_work() = ToProto(*work);
  result.set_tasks_away(static_cast<uint32_t>(tasks_away));
  v1::PipelineSpec spec_now = keeper_.LastSpec();
  const std::vector<v1::Stage*> all_now = AllStages(spec_now);
  const std::vector<std::string> names_now = StageNames(spec_now);
  std::unordered_map<std::string_view, const v1::Stage*> by_name;
  for (size_t i = 0; i < names_now.size(); ++i) by_name.emplace(names_now[i], all_now[i]);
  for (const StageStats& stage : stats.stages) {
    v1::StageStats* out = result.add_stages();
    out->set_name(stage.name);
    out->set_elements(stage.elements);
    out->set_busy_ns(stage.busy_ns);
    out->set_away_ns(stage.away_ns);
    out->set_queue(QueueOf(stats, spec_now, result.stages_size() - 1));
    if (const auto it = by_name.find(stage.name); it != by_name.end()) SayWeights(*it->second, out);
    if (stage.read_bytes > 0) {
      out->set_read_bytes(stage.read_bytes);
      out->set_read_ns(stage.read_ns);
      out->set_read_ahead_bytes(stage.read_ahead);
    }
    if (stage.away_workers) *out->mutable_python_workers() = ToProto(*stage.away_workers);
    if (stage.packed.documents > 0) {
      v1::PackedStats* packed = out->mutable_packed();
      packed->set_sequences(stage.packed.sequences);
      packed->set_tokens(stage.packed.tokens);
      packed->set_padding(stage.packed.padding);
      packed->set_documents(stage.packed.documents);
      packed->set_pieces(stage.packed.pieces);
    }
    if (stage.kept.state.empty()) continue;
    v1::KeptStats* kept = out->mutable_kept();
    kept->set_state(stage.kept.state);
    kept->set_elements(stage.kept.elements);
    kept->set_bytes(stage.kept.bytes);
    kept->set_hits(stage.kept.hits);
  }
  for (const SharedStats& shared : stats.shared) {
    v1::SharedPrefixStats* out = result.add_shared_prefix();
    out->set_stage(shared.stage);
    for (const std::string& name : shared.with) out->add_with(name);
    out->set_state(shared.state);
    out->set_hits(shared.hits);
    out->set_misses(shared.misses);
    out->set_elements(shared.elements);
    out->set_bytes(shared.bytes);
  }
  return result;
}

v1::ListSkippedResponse PipelineWatching::Skipped() const {
  v1::ListSkippedResponse result;
  const std::shared_ptr<Stream> stream = streams_.shared();
  if (stream == nullptr) return result;
  for (const auto& [place, path] : stream->Skipped()) {
    v1::SkippedPlace* out = result.add_places();
    out->set_file(ReadableUtf8(path));
    out->set_offset(place.damage.offset);
    out->set_length(place.damage.length == kDamageToTheEnd ? 0 : place.damage.length);
    out->set_reason(place.message.empty() ? DamageReasonName(place.damage.reason)
                                          : ReadableUtf8(place.message));
    out->set_epoch(place.epoch);
  }
  if (const auto stats = stream->Snapshot()) result.set_count(stats->skipped);
  return result;
}

std::vector<WaitLooks> PipelineWatching::Waits() const {
  std::vector<WaitLooks> waits;
  for (const auto& stream : streams_.All()) {
    for (const ring::ConsumerStats& consumer : stream->writer().Consumers())
      waits.push_back({consumer.id, consumer.looks, consumer.waiting_looks, stream->ordinal()});
  }
  return waits;
}

absl::StatusOr<v1::SamplePipelineResponse> PipelineWatching::Sample(int sheet_rows,
                                                                    bool with_numbers) const {
  const std::shared_ptr<Stream> stream = streams_.shared();
  if (stream == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
  return penstock::Sample(stream->writer(), checked_.plan->tensors(), sheet_rows, with_numbers);
}

std::vector<WorkerPulse> PipelineWatching::Pulses() const {
  std::vector<WorkerPulse> pulses;
  for (const auto& stream : streams_.All()) {
    const std::vector<WorkerPulse> more = stream->Pulses();
    pulses.insert(pulses.end(), more.begin(), more.end());
  }
  return pulses;
}

v1::ListGroupsResponse PipelineWatching::Groups() const {
  GroupList groups;
  for (const auto& stream : streams_.All()) AddGroups(stream->writer(), &groups);
  v1::ListGroupsResponse response;
  for (auto& [name, group] : groups) {
    if (group.consumers() == 0 && !group.kept()) group.set_first_position(0);
    if (const auto policy = keeper_.SlowPolicyOf(name)) {
      group.set_slow(ToProto(policy->first));
      group.set_lag_ms(policy->second);
    }
    *response.add_groups() = std::move(group);
  }
  return response;
}

absl::StatusOr<TakenProfile> PipelineWatching::Profile(
    absl::Duration duration, const std::function<bool()>& cancelled) const {
  {
    const std::unique_lock<std::mutex> streams_lock = streams_.Lock();
    if (absl::Status status = streams_.EndRest(); !status.ok()) return status;
  }
  const std::shared_ptr<Stream> stream = streams_.shared();
  if (stream == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
  if (!stream->StartTrace())
    return absl::FailedPreconditionError("a profile of this pipeline is being made already");
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + absl::ToChronoNanoseconds(duration);
  const auto passed_ns = [begin] {
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  };
  ConsumerWaits waits;
  while (std::chrono::steady_clock::now() < end && !cancelled()) {
    for (const auto& one : streams_.All())
      waits.Look(one->ordinal(), one->writer().Consumers(), passed_ns());
    std::this_thread::sleep_until(std::min(end, std::chrono::steady_clock::now() + kLook));
  }
  TakenProfile taken;
  taken.waits = waits.End(passed_ns());
  taken.spans = stream->StopTrace();
  taken.spans.dropped += waits.dropped();
  return taken;
}

}  // namespace penstock
