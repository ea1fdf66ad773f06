// The calls that change a running pipeline, and those that look closely at one.

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ring/attach.h"
#include "server/engine/plan/pass_change.h"
#include "server/engine/plan/plan_change.h"
#include "server/service/control/pipeline_service.h"
#include "server/service/state/overrides.h"
#include "server/service/state/slow_policy.h"
#include "server/service/state/text_proto.h"
#include "server/service/watch/error_details.h"
#include "server/service/watch/explain.h"
#include "server/service/watch/log_output.h"
#include "server/service/watch/profile_json.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr int kDefaultDrainMs = 60'000;
constexpr int kMaxDrainMs = 600'000;
constexpr int kDefaultProfileMs = 1'000;
constexpr int kMaxProfileMs = 60'000;
constexpr int kUpdateTurns = 16;

// `value`, or `least` for 0; InvalidArgument beyond `most`.
absl::StatusOr<absl::Duration> Milliseconds(const char* field, int value, int least, int most) {
  if (value >= 0 && value <= most) return absl::Milliseconds(value == 0 ? least : value);
  return WithField(
      absl::InvalidArgumentError(absl::StrCat(field, ": expected 0 to ", most, ", found ", value)),
      field);
}

// The stages that the request's are to replace: those of `now` that it changes.
absl::Status TakeStages(const v1::UpdatePipelineRequest& request, bool all,
                        const v1::PipelineSpec& now, v1::Change* change) {
  v1::PipelineSpec spec = now;
  if (all) {
    if (request.spec().stage_size() != now.stage_size()) {
      return WithField(absl::FailedPreconditionError(absl::StrCat(
                           "stages cannot be added or left out while the pipeline runs: expected ",
                           now.stage_size(), ", found ", request.spec().stage_size())),
                       "spec.stage");
    }
    *spec.mutable_stage() = request.spec().stage();
    for (int i = 0; i < spec.stage_size(); ++i) {
      if (spec.stage(i).name().empty()) spec.mutable_stage(i)->set_name(now.stage(i).name());
      absl::Status status = CheckInputs(now.stage(i), spec.stage(i));
      if (!status.ok()) return WithField(status, absl::StrCat("spec.stage[", i, "]"));
    }
  }
  v1::SpecOverrides constants;
  *constants.mutable_constants() = request.constants();
  absl::Status status = ApplyOverrides(constants, &spec);
  if (!status.ok()) return WithField(status, "constants");
  *change->mutable_stage() = ChangedStages(now, spec);
  return absl::OkStatus();
}

// What holds from the next epoch on is told whole.
absl::Status TakeAllStages(const v1::UpdatePipelineRequest& request, bool from_spec,
                           const v1::PipelineSpec& now, v1::Change* change) {
  v1::PipelineSpec spec = now;
  if (from_spec) *spec.mutable_stage() = request.spec().stage();
  v1::SpecOverrides constants;
  *constants.mutable_constants() = request.constants();
  if (absl::Status status = ApplyOverrides(constants, &spec); !status.ok())
    return WithField(status, "constants");
  KeepSeedsOf(now, &spec);
  *change->mutable_stage() = spec.stage();
  return absl::OkStatus();
}

absl::Status ReadMask(const v1::UpdatePipelineRequest& request, const v1::PipelineSpec& now,
                      v1::Change* change) {
  bool stages = false;
  for (int i = 0; i < request.update_mask().paths_size(); ++i) {
    const std::string& path = request.update_mask().paths(i);
    if (path == "workers") {
      change->set_workers(request.spec().workers());
    } else if (path == "ring.slots") {
      change->set_slots(request.spec().ring().slots());
    } else if (path == "read_ahead_bytes") {
      change->set_read_ahead_bytes(request.spec().read_ahead_bytes());
    } else if (path == "stage") {
      stages = true;
    } else {
      return WithField(
          absl::InvalidArgumentError(absl::StrCat(
              "cannot be changed while the pipeline runs: expected workers, ring.slots, "
              "read_ahead_bytes or stage, found ",
              path.substr(0, 128))),
          absl::StrCat("update_mask.paths[", i, "]"));
    }
  }
  if (request.has_memory_bytes()) change->set_memory_bytes(request.memory_bytes());
  change->set_skip_steps(request.skip_steps());
  if (request.at_next_epoch()) return TakeAllStages(request, stages, now, change);
  if (!stages && request.constants().empty()) return absl::OkStatus();
  return TakeStages(request, stages, now, change);
}

absl::Status CheckWithdraws(const v1::UpdatePipelineRequest& request) {
  v1::UpdatePipelineRequest only;
  only.set_name(request.name());
  only.set_etag(request.etag());
  only.set_withdraw(true);
  if (google::protobuf::util::MessageDifferencer::Equals(only, request)) return absl::OkStatus();
  return WithField(
      absl::InvalidArgumentError(
          "withdraw: nothing but the name and the etag goes with it; change again afterwards"),
      "withdraw");
}

absl::Status ReadWorld(const v1::UpdatePipelineRequest& request, v1::Change* change) {
  v1::UpdatePipelineRequest only;
  only.set_name(request.name());
  only.set_etag(request.etag());
  if (request.has_step()) only.set_step(request.step());
  *only.mutable_world() = request.world();
  if (!google::protobuf::util::MessageDifferencer::Equals(only, request)) {
    return WithField(absl::InvalidArgumentError(
                         "world: nothing but the name, the step and the etag goes with it"),
                     "world");
  }
  change->mutable_world()->set_hosts(request.world().hosts());
  change->mutable_world()->set_host(request.world().host());
  return absl::OkStatus();
}

template <typename Request>
absl::Status ReadStep(const Request& request, RequestedChange* requested) {
  if (!request.has_step()) return absl::OkStatus();
  requested->step = request.step();
  if (request.step() <= kMaxChangeStep) return absl::OkStatus();
  return WithField(absl::InvalidArgumentError(absl::StrCat(
                       "step: expected at most ", kMaxChangeStep, ", found ", request.step())),
                   "step");
}

absl::StatusOr<v1::Change> Change(Pipeline& pipeline, RequestedChange requested,
                                  std::string* notice) {
  requested.change.set_time_unix_ms(absl::ToUnixMillis(absl::Now()));
  absl::StatusOr<v1::Change> change = pipeline.Update(requested, notice);
  if (absl::IsAborted(change.status())) return WithReason(change.status(), "ETAG_MISMATCH");
  if (absl::IsFailedPrecondition(change.status()))
    return WithReason(change.status(), "CANNOT_CHANGE");
  return change;
}

// One try of an update: Aborted where the pipeline was changed meanwhile.
absl::StatusOr<v1::Change> UpdateOnce(Pipeline& pipeline, const v1::UpdatePipelineRequest& request,
                                      std::optional<uid_t> user, const Asker& by,
                                      std::string* notice) {
  RequestedChange requested;
  requested.user = user;
  requested.by = by;
  // Stages are compared with those that this etag stands for.
  requested.etag = request.etag().empty() ? pipeline.etag() : request.etag();
  const v1::PipelineSpec now = pipeline.LastSpec();
  requested.withdraw = request.withdraw();
  absl::Status status = WithField(CheckFields(request.spec()), "spec");
  if (status.ok()) {
    status = requested.withdraw    ? CheckWithdraws(request)
             : request.has_world() ? ReadWorld(request, &requested.change)
                                   : ReadMask(request, now, &requested.change);
  }
  if (status.ok()) status = ReadStep(request, &requested);
  if (!status.ok()) return status;
  requested.at_next_epoch = request.at_next_epoch();
  return Change(pipeline, std::move(requested), notice);
}

}  // namespace

grpc::Status PipelineServiceImpl::PausePipeline(grpc::ServerContext* context,
                                                const v1::PausePipelineRequest* request,
                                                v1::PausePipelineResponse*) {
  const auto pipeline = Get(context, v1::RIGHT_CONTROL, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  return ToGrpc((*pipeline)->Pause(true, /*notice=*/nullptr, By(context)), request->name());
}

grpc::Status PipelineServiceImpl::ResumePipeline(grpc::ServerContext* context,
                                                 const v1::ResumePipelineRequest* request,
                                                 v1::ResumePipelineResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_CONTROL, request->name());
  if (SetAside(pipeline.status(), request->name())) {
    // It comes back as after a restart, paused if it was.
    return ToGrpc(table_.TakeBack(request->name(), By(context)), request->name());
  }
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  return ToGrpc((*pipeline)->Pause(false, response->mutable_notice(), By(context)),
                request->name());
}

grpc::Status PipelineServiceImpl::DrainPipeline(grpc::ServerContext* context,
                                                const v1::DrainPipelineRequest* request,
                                                v1::DrainPipelineResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_CONTROL, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  const auto timeout =
      Milliseconds("timeout_ms", request->timeout_ms(), kDefaultDrainMs, kMaxDrainMs);
  if (!timeout.ok()) return ToGrpc(timeout.status(), request->name());
  const auto drained = (*pipeline)->Drain(
      *timeout, [context] { return context->IsCancelled(); }, By(context));
  if (!drained.ok()) return ToGrpc(drained.status(), request->name());
  response->set_step(drained->step);
  response->set_cursor(drained->cursor);
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::SeekPipeline(grpc::ServerContext* context,
                                               const v1::SeekPipelineRequest* request,
                                               v1::SeekPipelineResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_CONTROL, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  RequestedChange requested;
  requested.etag = request->etag();
  requested.by = By(context);
  requested.change.set_seek_cursor(request->cursor());
  if (absl::Status status = ReadStep(*request, &requested); !status.ok())
    return ToGrpc(status, request->name());
  auto change = Change(**pipeline, std::move(requested), response->mutable_notice());
  if (!change.ok()) return ToGrpc(WithField(change.status(), "cursor"), request->name());
  *response->mutable_change() = *std::move(change);
  response->set_etag((*pipeline)->etag());
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::UpdatePipeline(grpc::ServerContext* context,
                                                 const v1::UpdatePipelineRequest* request,
                                                 v1::UpdatePipelineResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_CONTROL, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  v1::UpdatePipelineRequest resolved;
  if (request->has_source()) {
    absl::StatusOr<v1::PipelineSpec> source = ResolveSource(request->source());
    if (!source.ok()) return ToGrpc(WithField(source.status(), "source"), request->name());
    resolved = *request;
    *resolved.mutable_spec()->mutable_stage() = source->stage();
    resolved.mutable_update_mask()->add_paths("stage");
    request = &resolved;
  }
  std::string* const notice = response->mutable_notice();
  const Asker by = By(context);
  const std::optional<uid_t> user = UserOf(context);
  absl::StatusOr<v1::Change> change = UpdateOnce(**pipeline, *request, user, by, notice);
  // Who gives no etag wants it whatever the pipeline is: another one's change in the middle is no
  // matter.
  for (int turn = 1;
       turn < kUpdateTurns && request->etag().empty() && absl::IsAborted(change.status()); ++turn) {
    change = UpdateOnce(**pipeline, *request, user, by, notice);
  }
  if (!change.ok()) return ToGrpc(change.status(), request->name());
  *response->mutable_change() = *std::move(change);
  response->set_etag((*pipeline)->etag());
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::ListConsumers(grpc::ServerContext* context,
                                                const v1::ListConsumersRequest* request,
                                                v1::ListConsumersResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_READ, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  const v1::PipelineStats stats = monitor_.Stats(**pipeline);
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    if (request->group().empty() || consumer.group() == request->group())
      *response->add_consumers() = consumer;
  }
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::DetachConsumer(grpc::ServerContext* context,
                                                 const v1::DetachConsumerRequest* request,
                                                 v1::DetachConsumerResponse*) {
  const auto pipeline = Get(context, v1::RIGHT_CONTROL, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  absl::Status status = (*pipeline)->DetachConsumer(request->id(), request->pid());
  if (status.ok())
    spdlog::info("pipeline {}: consumer {} is sent away{}", request->name(), request->id(),
                 By(context).By());
  if (absl::IsNotFound(status)) status = WithReason(status, "CONSUMER_NOT_FOUND");
  return ToGrpc(WithField(std::move(status), "id"), request->name());
}

grpc::Status PipelineServiceImpl::UpdateGroup(grpc::ServerContext* context,
                                              const v1::UpdateGroupRequest* request,
                                              v1::UpdateGroupResponse*) {
  const auto pipeline = Get(context, v1::RIGHT_CONTROL, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  const std::optional<ring::SlowPolicy> slow = FromProto(request->slow());
  if (!slow) {
    return ToGrpc(WithField(absl::InvalidArgumentError(
                                absl::StrCat("slow: expected a policy, found ", request->slow())),
                            "slow"),
                  request->name());
  }
  if (request->group().size() > ring::kMaxGroupBytes) {
    return ToGrpc(WithField(absl::InvalidArgumentError(
                                absl::StrCat("group: longer than limit: ", request->group().size(),
                                             " > ", ring::kMaxGroupBytes, " bytes")),
                            "group"),
                  request->name());
  }
  return ToGrpc((*pipeline)->SetSlowPolicy(
                    request->group(), *slow,
                    request->lag_ms() == 0 ? ring::kDefaultLagMs : request->lag_ms(), By(context)),
                request->name());
}

grpc::Status PipelineServiceImpl::DropGroup(grpc::ServerContext* context,
                                            const v1::DropGroupRequest* request,
                                            v1::DropGroupResponse*) {
  const auto pipeline = Get(context, v1::RIGHT_CONTROL, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  absl::Status status = (*pipeline)->DropGroup(request->group(), By(context));
  if (absl::IsNotFound(status)) status = WithReason(status, "GROUP_NOT_FOUND");
  return ToGrpc(WithField(std::move(status), "group"), request->name());
}

grpc::Status PipelineServiceImpl::ExplainPipeline(grpc::ServerContext* context,
                                                  const v1::ExplainPipelineRequest* request,
                                                  v1::ExplainPipelineResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_READ, request->name());
  if (const std::optional<v1::Pipeline> aside = SetAside(pipeline.status(), request->name())) {
    response->add_sentences(aside->error().message());
    return grpc::Status::OK;
  }
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  for (std::string& sentence : Explain(monitor_.Stats(**pipeline)))
    response->add_sentences(std::move(sentence));
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::ProfilePipeline(grpc::ServerContext* context,
                                                  const v1::ProfilePipelineRequest* request,
                                                  v1::ProfilePipelineResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_READ, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  const auto duration =
      Milliseconds("duration_ms", request->duration_ms(), kDefaultProfileMs, kMaxProfileMs);
  if (!duration.ok()) return ToGrpc(duration.status(), request->name());
  const auto taken = (*pipeline)->Profile(*duration, [context] { return context->IsCancelled(); });
  if (!taken.ok()) return ToGrpc(taken.status(), request->name());
  response->set_trace(
      ProfileJson(request->name(), (*pipeline)->StageNames(), taken->spans, taken->waits));
  response->set_dropped(taken->spans.dropped);
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::SetLogLevel(grpc::ServerContext* context,
                                              const v1::SetLogLevelRequest* request,
                                              v1::SetLogLevelResponse*) {
  // Of no pipeline: a rule for some of them gives no right to it.
  const absl::Status admitted = Admit(context, v1::RIGHT_CONTROL, "");
  if (!admitted.ok()) return ToGrpc(WithReason(admitted, "ACCESS_DENIED"));
  if (!v1::LogLevel_IsValid(request->level()) || request->level() == v1::LOG_LEVEL_UNSPECIFIED) {
    return ToGrpc(WithField(absl::InvalidArgumentError(
                                absl::StrCat("level: expected a level, found ", request->level())),
                            "level"));
  }
  spdlog::info("the log's level is {} from here on, set{}", v1::LogLevel_Name(request->level()),
               By(context).By());
  SetLogLevelNow(request->level());
  return grpc::Status::OK;
}

}  // namespace penstock
