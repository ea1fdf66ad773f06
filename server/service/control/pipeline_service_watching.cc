// The calls that go on telling, and those that look without touching anything.

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "base/monotonic_clock.h"
#include "base/nanoseconds.h"
#include "base/utf8.h"
#include "server/engine/run/token_indexer.h"
#include "server/service/control/pipeline_service.h"
#include "server/service/control/while_called.h"
#include "server/service/watch/error_details.h"
#include "server/service/watch/event_log.h"
#include "server/service/watch/hidden_names.h"
#include "server/service/watch/sample.h"

namespace penstock {
namespace {

constexpr int kDefaultIntervalMs = 1000;
constexpr int kMinIntervalMs = 50;
constexpr int kDefaultSheetRows = 16;
constexpr int kMaxIntervalMs = 3'600'000;
// How often a call looks whether its caller is still there.
constexpr absl::Duration kLook = absl::Milliseconds(250);
// How long an index of tokens may be made: hours for a large corpus, and whoever asks again goes on
// with the files that are left.
constexpr absl::Duration kIndexTime = absl::Hours(24);

// Where a thread of its own writes what a call tells, until the call is over.
class OpenCall {
 public:
  explicit OpenCall(grpc::ServerWriter<v1::IndexTokensResponse>* writer) : writer_(writer) {}
  // False where nobody hears it any more.
  bool Write(const v1::IndexTokensResponse& response) {
    std::lock_guard<std::mutex> lock(mutex_);
    return writer_ != nullptr && writer_->Write(response);
  }
  void Close() {
    std::lock_guard<std::mutex> lock(mutex_);
    writer_ = nullptr;
  }

 private:
  std::mutex mutex_;
  grpc::ServerWriter<v1::IndexTokensResponse>* writer_;  // under mutex_
};

// A place among the calls that go on; it is given back in whatever way a call is left.
class StreamPlace {
 public:
  StreamPlace(UserPlaces& places, const Identity& who, int limit,
              const std::function<void()>& no_place)
      : places_(places), user_(UserKey(who)), limit_(limit) {
    is_taken_ = places_.Take(user_, static_cast<size_t>(limit));
    if (!is_taken_) no_place();
  }
  ~StreamPlace() {
    if (is_taken_) places_.GiveBack(user_);
  }
  StreamPlace(const StreamPlace&) = delete;
  StreamPlace& operator=(const StreamPlace&) = delete;

  absl::Status status() const {
    if (is_taken_) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("too many calls go on telling: connection_limits.max_streams is ", limit_,
                     ", and the last eighth is for users who have less than that; this one has ",
                     places_.HeldBy(user_)));
  }

 private:
  UserPlaces& places_;
  const uint64_t user_;
  const int limit_;
  bool is_taken_ = false;
};

grpc::Status Stopping() {
  return ToGrpc(absl::UnavailableError("penstockd is stopping; start it again and ask anew"));
}

}  // namespace

grpc::Status PipelineServiceImpl::WatchStats(grpc::ServerContext* context,
                                             const v1::WatchStatsRequest* request,
                                             grpc::ServerWriter<v1::WatchStatsResponse>* writer) {
  const std::string& name = request->name();
  if (const auto pipeline = Get(context, v1::RIGHT_READ, name); !pipeline.ok())
    return ToGrpc(pipeline.status(), name);
  const int interval_ms = request->interval_ms() == 0 ? kDefaultIntervalMs : request->interval_ms();
  if (interval_ms < kMinIntervalMs || interval_ms > kMaxIntervalMs) {
    return ToGrpc(WithField(absl::InvalidArgumentError(
                                absl::StrCat("interval_ms: expected 0 or ", kMinIntervalMs, " to ",
                                             kMaxIntervalMs, ", found ", request->interval_ms())),
                            "interval_ms"),
                  name);
  }
  const auto caller = Caller(context);
  if (!caller.ok()) return ToGrpc(caller.status(), name);
  const StreamPlace place(streams_, *caller, max_streams_(), no_place_);
  if (!place.status().ok()) return ToGrpc(place.status(), name);
  // It hears of its end, and of the daemon's, at once.
  const auto listener = table_.events().Listen(
      UINT64_MAX, [&name](const std::string& pipeline) { return pipeline == name; });
  const PipelineTable::Visible visible = VisibleTo(context);
  // Not the time of day, which somebody may set back.
  int64_t next_ns = MonotonicNs();
  while (!context->IsCancelled()) {
    // The rules may have changed since.
    if (!visible(name)) return ToGrpc(absl::PermissionDeniedError("the right to see it is gone"));
    if (MonotonicNs() >= next_ns) {
      const auto pipeline = table_.Find(name, visible);
      if (!pipeline.ok()) return ToGrpc(NotThere(pipeline.status()), name);
      v1::WatchStatsResponse response;
      *response.mutable_stats() = monitor_.Stats(**pipeline);
      HideOthers(visible, response.mutable_stats());
      if (!writer->Write(response)) break;
      // Without a burst after a caller that did not take them for a while.
      next_ns = std::max(next_ns + interval_ms * kNsPerMs, MonotonicNs());
    }
    v1::WatchEventsResponse heard;
    if (!listener->Take(std::min(kLook, absl::Nanoseconds(next_ns - MonotonicNs())), &heard))
      return Stopping();
    for (const v1::Event& event : heard.events()) {
      if (event.kind() == v1::EVENT_KIND_DELETED) next_ns = MonotonicNs();
    }
  }
  return grpc::Status::CANCELLED;
}

grpc::Status PipelineServiceImpl::WatchEvents(grpc::ServerContext* context,
                                              const v1::WatchEventsRequest* request,
                                              grpc::ServerWriter<v1::WatchEventsResponse>* writer) {
  const std::string& name = request->name();
  // Those of a pipeline that was deleted are told too, so that it need not be there.
  const absl::Status admitted = Admit(context, v1::RIGHT_READ, name);
  const PipelineTable::Visible visible = VisibleTo(context);
  // Whoever may see some pipelines asks for all and gets those.
  if (!admitted.ok() && (!name.empty() || !absl::IsPermissionDenied(admitted)))
    return ToGrpc(WithReason(admitted, "ACCESS_DENIED"), name);
  const auto caller = Caller(context);
  if (!caller.ok()) return ToGrpc(caller.status(), name);
  const StreamPlace place(streams_, *caller, max_streams_(), no_place_);
  if (!place.status().ok()) return ToGrpc(place.status(), name);
  const auto listener = table_.events().Listen(request->after(), [&](const std::string& pipeline) {
    return (name.empty() || pipeline == name) && visible(pipeline);
  });
  if (!name.empty() && !listener->HasMore()) {
    const auto pipeline = table_.Find(name, visible);
    if (!pipeline.ok()) return ToGrpc(NotThere(pipeline.status()), name);
  }
  while (!context->IsCancelled()) {
    v1::WatchEventsResponse response;
    const bool goes_on =
        listener->Take(request->follow() ? kLook : absl::ZeroDuration(), &response);
    const bool has_any = response.events_size() > 0 || response.lost() > 0;
    if (has_any && !writer->Write(response)) break;
    if (!has_any && !request->follow()) return grpc::Status::OK;
    if (!goes_on && !has_any) return Stopping();
  }
  return grpc::Status::CANCELLED;
}

grpc::Status PipelineServiceImpl::IndexTokens(grpc::ServerContext* context,
                                              const v1::IndexTokensRequest* request,
                                              grpc::ServerWriter<v1::IndexTokensResponse>* writer) {
  const auto spec = Resolve(context, request->source());
  if (!spec.ok()) return ToGrpc(spec.status());
  const auto caller = Caller(context);
  if (!caller.ok()) return ToGrpc(caller.status(), spec->name());
  const StreamPlace place(streams_, *caller, max_streams_(), no_place_);
  if (!place.status().ok()) return ToGrpc(place.status(), spec->name());
  const auto checked = table_.Check(*spec, WhileCalled(context, kPlanTime, "the check"));
  if (!checked.ok()) return ToGrpc(checked.status(), spec->name());
  const auto call = std::make_shared<OpenCall>(writer);
  const auto tell = [call](const TokenIndexProgress& progress) {
    v1::IndexTokensResponse response;
    response.set_stage(ReadableUtf8(progress.stage));
    response.set_path(ReadableUtf8(progress.path));
    response.set_documents(progress.documents);
    response.set_left_out(progress.left_out);
    response.set_tokens(progress.tokens);
    response.set_bytes_done(progress.bytes_done);
    response.set_bytes(progress.bytes);
    response.set_index_path(ReadableUtf8(progress.index_path));
    response.set_was_there(progress.was_there);
    return call->Write(response);
  };
  const absl::StatusOr<bool> all =
      table_.LookUp<bool>(*spec, WhileCalled(context, kIndexTime, "the index of tokens"),
                          [plan = checked->plan, workers = request->workers(),
                           tell](const WalkLimits& limits) -> absl::StatusOr<bool> {
                            const MemoryAccount::Scope charged(limits.memory);
                            absl::Status status = penstock::IndexTokens(*plan, workers, tell);
                            if (!status.ok()) return status;
                            return true;
                          });
  call->Close();
  return ToGrpc(all.status(), spec->name());
}

grpc::Status PipelineServiceImpl::SamplePipeline(grpc::ServerContext* context,
                                                 const v1::SamplePipelineRequest* request,
                                                 v1::SamplePipelineResponse* response) {
  // What is in a batch is more than statistics: it takes the right to take batches.
  const auto pipeline = Get(context, v1::RIGHT_ATTACH, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  const int rows = request->sheet_rows() == 0 ? kDefaultSheetRows : request->sheet_rows();
  if (rows < 1 || rows > kMaxSheetRows) {
    return ToGrpc(WithField(absl::InvalidArgumentError(absl::StrCat("sheet_rows: expected 0 to ",
                                                                    kMaxSheetRows, ", found ",
                                                                    request->sheet_rows())),
                            "sheet_rows"),
                  request->name());
  }
  auto sample = (*pipeline)->Sample(rows, /*with_numbers=*/true);
  if (!sample.ok()) return ToGrpc(sample.status(), request->name());
  *response = *std::move(sample);
  return grpc::Status::OK;
}

grpc::Status PipelineServiceImpl::ListGroups(grpc::ServerContext* context,
                                             const v1::ListGroupsRequest* request,
                                             v1::ListGroupsResponse* response) {
  const auto pipeline = Get(context, v1::RIGHT_READ, request->name());
  if (!pipeline.ok()) return ToGrpc(pipeline.status(), request->name());
  *response = (*pipeline)->Groups();
  return grpc::Status::OK;
}

}  // namespace penstock
