#include "server/service/control/pipeline_service.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/utf8.h"
#include "server/codec/wire.h"
#include "server/engine/plan/open_seeds.h"
#include "server/engine/run/order_walk.h"
#include "server/service/control/while_called.h"
#include "server/service/state/overrides.h"
#include "server/service/state/world_message.h"
#include "server/service/watch/error_details.h"
#include "server/service/watch/hidden_names.h"

namespace penstock {
namespace {

// gRPC sends messages as a header, in which a byte may take three, and once more in the details;
// the sum of headers is limited to 8 KiB.
constexpr size_t kMaxMessageBytes = 1500;
constexpr size_t kMaxRequestIdBytes = 64;

// A fault of the spec, with the stage that the message names.
absl::Status InSpec(absl::Status status) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  constexpr absl::string_view kStage = "stage ";
  const absl::string_view message = status.message();
  std::string field = "source.spec";
  const size_t end = message.find(": ");
  if (absl::StartsWith(message, kStage) && end != message.npos)
    absl::StrAppend(&field, ".stage[", message.substr(kStage.size(), end - kStage.size()), "]");
  return WithField(std::move(status), field);
}

void FillPlace(const RecordPlace& record, v1::RecordPlace* out) {
  out->set_file(ReadableUtf8(record.file));
  if (record.record_known) out->set_record(record.record);
  out->set_offset(record.offset);
  out->set_epoch(record.epoch);
}

using PlanToWalk = std::shared_ptr<const Plan>;

// For the length of a look-up; ResourceExhausted where too many run.
class LookUpPlace {
 public:
  LookUpPlace(UserPlaces& places, const absl::StatusOr<Identity>& caller, size_t limit)
      : places_(places) {
    if (!caller.ok()) {
      status_ = caller.status();
      return;
    }
    user_ = UserKey(*caller);
    if (places_.Take(user_, limit)) return;
    status_ = absl::ResourceExhaustedError(
        absl::StrCat("too many look-ups at a time: at most ", limit,
                     " run, and the last of them is for users who have none; try again later"));
  }
  ~LookUpPlace() {
    if (status_.ok()) places_.GiveBack(user_);
  }
  LookUpPlace(const LookUpPlace&) = delete;
  LookUpPlace& operator=(const LookUpPlace&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  UserPlaces& places_;
  uint64_t user_ = 0;
  absl::Status status_;
};

}  // namespace

grpc::Status ToGrpc(const absl::Status& status, const std::string& pipeline) {
  if (status.ok()) return grpc::Status::OK;
  std::string message = ReadableUtf8(status.message(), kMaxMessageBytes);
  if (status.message().size() > kMaxMessageBytes) message += " …";
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      ErrorDetails(status, message, pipeline));
}

absl::Status PipelineServiceImpl::Admit(const grpc::ServerContext* context, v1::Right right,
                                        const std::string& pipeline) const {
  return gate_(*context, right, pipeline, Asked::kCall);
}

absl::StatusOr<Identity> PipelineServiceImpl::Caller(const grpc::ServerContext* context) const {
  std::optional<Identity> who = who_is_(*context);
  if (!who) return absl::PermissionDeniedError("the caller has hung up");
  return *std::move(who);
}

std::optional<uid_t> PipelineServiceImpl::UserOf(const grpc::ServerContext* context) const {
  const absl::StatusOr<Identity> who = Caller(context);
  return who.ok() ? std::optional(who->uid) : std::nullopt;
}

Asker PipelineServiceImpl::By(const grpc::ServerContext* context) const {
  const std::optional<Identity> who = who_is_(*context);
  return who ? AskerOf(*who) : Asker();
}

PipelineTable::Visible PipelineServiceImpl::VisibleTo(const grpc::ServerContext* context) const {
  return [this, context](const std::string& name) {
    return gate_(*context, v1::RIGHT_READ, name, Asked::kItem).ok();
  };
}

absl::StatusOr<std::shared_ptr<Pipeline>> PipelineServiceImpl::Get(
    const grpc::ServerContext* context, v1::Right right, const std::string& name) const {
  absl::Status status = Admit(context, right, name);
  if (!status.ok()) return WithReason(status, "ACCESS_DENIED");
  auto pipeline = table_.Find(name, VisibleTo(context));
  if (!pipeline.ok()) return NotThere(pipeline.status());
  return pipeline;
}

absl::Status PipelineServiceImpl::NotThere(const absl::Status& found) {
  return WithReason(found, absl::IsUnavailable(found)          ? "PIPELINE_RETURNING"
                           : absl::IsFailedPrecondition(found) ? "PIPELINE_SET_ASIDE"
                                                               : "PIPELINE_NOT_FOUND");
}

std::optional<v1::Pipeline> PipelineServiceImpl::SetAside(const absl::Status& got,
                                                          const std::string& name) const {
  if (!absl::IsFailedPrecondition(got)) return std::nullopt;
  std::map<std::string, v1::Pipeline> all = table_.SetAside();
  const auto found = all.find(name);
  return found == all.end() ? std::nullopt : std::optional(std::move(found->second));
}

absl::StatusOr<v1::PipelineSpec> PipelineServiceImpl::Resolve(const grpc::ServerContext* context,
                                                              const v1::SpecSource& source) const {
  absl::StatusOr<v1::PipelineSpec> spec = ResolveSource(source);
  if (!spec.ok()) return InSpec(spec.status());
  absl::Status status = Admit(context, v1::RIGHT_CONTROL, spec->name());
  if (!status.ok()) return WithReason(status, "ACCESS_DENIED");
  return spec;
}

grpc::Status PipelineServiceImpl::CreatePipeline(grpc::ServerContext* context,
                                                 const v1::CreatePipelineRequest* request,
                                                 v1::CreatePipelineResponse* response) {
  const auto creator = Caller(context);
  if (!creator.ok()) return ToGrpc(creator.status());
  const auto spec = Resolve(context, request->source());
  if (!spec.ok()) return ToGrpc(spec.status());
  PipelineOptions options;
  options.cursor = request->cursor();
  options.changed_work = request->allow_changed_work() ? ChangedWork::kAllow : ChangedWork::kRefuse;
  options.state.history.assign(request->history().begin(), request->history().end());
  options.request_id = request->request_id();
  options.world = WorldIn(*request);
  options.fewest_hosts = FewestHostsIn(*request);
  options.owner = {"", creator->uid, creator->pid};
  options.created_by = AskerOf(*creator);
  options.unwanted = WhileCalled(context, kPlanTime, "the creation");
  if (options.request_id.size() > kMaxRequestIdBytes) {
    return ToGrpc(WithField(absl::InvalidArgumentError(absl::StrCat(
                                "request_id longer than limit: ", options.request_id.size(), " > ",
                                kMaxRequestIdBytes, " bytes")),
                            "request_id"));
  }
  const auto pipeline = table_.Create(*spec, std::move(options));
  if (!pipeline.ok()) {
    absl::Status status = InSpec(pipeline.status());
    if (status.code() == absl::StatusCode::kAlreadyExists)
      status = WithReason(status, "PIPELINE_EXISTS");
    return ToGrpc(status, spec->name());
  }
  *response->mutable_pipeline() = (*pipeline)->Describe();
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::ValidatePipeline(grpc::ServerContext* context,
                                                   const v1::ValidatePipelineRequest* request,
                                                   v1::ValidatePipelineResponse* response) {
  const auto spec = Resolve(context, request->source());
  if (!spec.ok()) return ToGrpc(spec.status());
  const auto checked = table_.Check(*spec, WhileCalled(context, kPlanTime, "the check"),
                                    WorldIn(*request), UserOf(context));
  if (!checked.ok()) return ToGrpc(InSpec(checked.status()), spec->name());
  *response->mutable_pipeline() = Describe(*checked);
  response->set_explanation(checked->plan->Explain());
  for (const Plan::NeededIndex& needed : checked->plan->NeededIndices()) {
    // What has no place in a message is built by the daemon when it is needed.
    if (!wire::IsUtf8(needed.path)) continue;
    v1::IndexedFile* file = response->add_index_file();
    file->set_path(needed.path);
    file->set_skip_damage(needed.on_damage == OnDamage::kSkipRecord);
    file->set_format(needed.format);
  }
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::ListPipelines(grpc::ServerContext* context,
                                                const v1::ListPipelinesRequest* request,
                                                v1::ListPipelinesResponse* response) {
  if (request->page_size() < 0) {
    return ToGrpc(WithField(absl::InvalidArgumentError(absl::StrCat(
                                "page_size: expected at least 0, found ", request->page_size())),
                            "page_size"));
  }
  const PipelineTable::Visible visible = VisibleTo(context);
  std::map<std::string, v1::Pipeline> all;
  for (const auto& [name, failure] : table_.Returning()) {
    v1::Pipeline& out = all[name];
    out.set_name(name);
    out.set_state(v1::PIPELINE_STATE_RETURNING);
    if (const auto uid = table_.OwnerUid(name)) out.set_owner_uid(*uid);
    if (failure.ok()) continue;
    out.mutable_error()->set_code(static_cast<int32_t>(failure.code()));
    out.mutable_error()->set_message(ReadableUtf8(failure.message()));
  }
  for (auto& [name, pipeline] : table_.SetAside()) all[name] = std::move(pipeline);
  for (const auto& pipeline : table_.List()) all[pipeline->name()] = pipeline->Describe();
  for (auto& [name, pipeline] : all) {
    // A page's token is the last name of the one before it.
    if (name <= request->page_token() || !visible(name)) continue;
    if (request->page_size() > 0 && response->pipelines_size() == request->page_size()) {
      response->set_next_page_token(response->pipelines().rbegin()->name());
      break;
    }
    pipeline.clear_spec();
    pipeline.clear_history();
    *response->add_pipelines() = std::move(pipeline);
  }
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::GetPipeline(grpc::ServerContext* context,
                                              const v1::GetPipelineRequest* request,
                                              v1::GetPipelineResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_READ, request->name());
  if (std::optional<v1::Pipeline> aside = SetAside(pipeline.status(), request->name())) {
    *response->mutable_pipeline() = *std::move(aside);
    return grpc::Status::OK;
  }
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  *response->mutable_pipeline() = (*pipeline)->Describe();
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::GetStats(grpc::ServerContext* context,
                                           const v1::GetStatsRequest* request,
                                           v1::GetStatsResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_READ, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  *response->mutable_stats() = monitor_.Stats(**pipeline);
  HideOthers(VisibleTo(context), response->mutable_stats());
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::ListSkipped(grpc::ServerContext* context,
                                              const v1::ListSkippedRequest* request,
                                              v1::ListSkippedResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_READ, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  *response = (*pipeline)->Skipped();
  return grpc::Status::OK;
}

template <typename Found, typename Walk>
grpc::Status PipelineServiceImpl::LookUp(const grpc::ServerContext* context,
                                         const v1::SpecSource& source, Found* found,
                                         const Walk& walk) {
  const auto spec = Resolve(context, source);
  if (!spec.ok()) return ToGrpc(spec.status());
  const LookUpPlace place(look_ups_, Caller(context), look_up_limits_.at_a_time);
  if (!place.status().ok()) return ToGrpc(place.status(), spec->name());
  const Unwanted unwanted =
      WhileCalled(context, look_up_limits_.time,
                  "the look-up (begin nearer, at a later step or behind a cursor)");
  const auto checked = table_.Check(*spec, unwanted, {}, UserOf(context));
  if (!checked.ok()) return ToGrpc(checked.status());
  if (absl::Status seeds = CheckSeedsAreGiven(*spec, checked->plan->spec()); !seeds.ok())
    return ToGrpc(seeds);
  absl::StatusOr<Found> result = table_.LookUp<Found>(
      *spec, unwanted,
      [plan = checked->plan, walk](const WalkLimits& limits) { return walk(plan, limits); });
  if (!result.ok()) return ToGrpc(result.status());
  *found = *std::move(result);
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::FindRecords(grpc::ServerContext* context,
                                              const v1::FindRecordsRequest* request,
                                              v1::FindRecordsResponse* response) {
  std::vector<RecordPlace> records;
  const grpc::Status status = LookUp(context, request->source(), &records,
                                     [step = request->step(), row = request->row()](
                                         const PlanToWalk& plan, const WalkLimits& limits) {
                                       return penstock::FindRecords(plan, step, row, limits);
                                     });
  if (!status.ok()) return status;
  for (const RecordPlace& record : records) FillPlace(record, response->add_records());
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::ShowRow(grpc::ServerContext* context,
                                          const v1::ShowRowRequest* request,
                                          v1::ShowRowResponse* response) {
  ShownRow shown;
  const grpc::Status status = LookUp(context, request->source(), &shown,
                                     [step = request->step(), row = request->row()](
                                         const PlanToWalk& plan, const WalkLimits& limits) {
                                       return penstock::ShowRow(plan, step, row, limits);
                                     });
  if (!status.ok()) return status;
  for (const RecordPlace& record : shown.records) FillPlace(record, response->add_records());
  for (const DrawLog::Draw& draw : shown.log.draws) {
    v1::Draw* out = response->add_draws();
    out->set_call(draw.call);
    out->set_name(draw.name);
    out->set_value(draw.value);
  }
  for (size_t i = 0; i < shown.features.size(); ++i) {
    const Feature& feature = shown.features[i];
    v1::ShownFeature* out = response->add_features();
    out->set_name(feature.name);
    out->set_dtype(static_cast<v1::DataType>(feature.type.dtype));
    for (const int64_t size : feature.type.shape) out->add_shape(size);
    out->set_values(shown.values[i]);
  }
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::FindRow(grpc::ServerContext* context,
                                          const v1::FindRowRequest* request,
                                          v1::FindRowResponse* response) {
  constexpr uint64_t kDefaultSteps = 1'000'000;
  RowPlace row;
  const grpc::Status status = LookUp(
      context, request->source(), &row,
      [file = request->file(), offset = request->offset(), first = request->first_step(),
       steps = request->steps() > 0 ? static_cast<uint64_t>(request->steps()) : kDefaultSteps](
          const PlanToWalk& plan, const WalkLimits& limits) {
        return penstock::FindRow(plan, file, offset, first, steps, limits);
      });
  if (!status.ok()) return status;
  response->set_epoch(row.epoch);
  response->set_step(row.step);
  response->set_row(row.row);
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::DeletePipeline(grpc::ServerContext* context,
                                                 const v1::DeletePipelineRequest* request,
                                                 v1::DeletePipelineResponse*) {
  // Not Get(): what has not come back after a restart can be deleted as well.
  const absl::Status status = Admit(context, v1::RIGHT_CONTROL, request->name());
  if (!status.ok()) return ToGrpc(WithReason(status, "ACCESS_DENIED"), request->name());
  const absl::Status deleted =
      table_.Delete(request->name(), VisibleTo(context), /*expected=*/nullptr, By(context));
  return ToGrpc(deleted.ok() ? deleted : NotThere(deleted), request->name());
}

}  // namespace penstock
