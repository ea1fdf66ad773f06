// Whether a stream may go on with another plan when a pass of its outermost `repeat` ends: there
// nothing waits in any op, so that all stages may be others, as long as consumers get the same
// element.
//
// Threads:  functions without state.
// Cost:     StagesWithFiles() copies the list of the plan's files.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/plan/plan.h"

namespace penstock {

// How many passes the plan's `repeat` makes; nullopt: without end. FailedPrecondition where a pass
// does not end with a step: without a `repeat` at the top, or with an op behind it that decides the
// order.
absl::StatusOr<std::optional<uint64_t>> PassesOf(const Plan& plan);

// `first`: the plan with which the stream began, whose batches the ring's slots fit.
absl::Status CheckPassChange(const Plan& first, const Plan& from, const Plan& to);
// FailedPrecondition where the plan makes fewer passes.
absl::Status CheckHasPass(const Plan& plan, uint64_t pass);
// FailedPrecondition where `to` makes fewer passes than `from`, so that it may lack one that `from`
// comes to.
absl::Status CheckHasPassesOf(const Plan& from, const Plan& to);

// All stages of the plan, sources with their files one by one instead of globs, so that they are
// the same ones in another run.
google::protobuf::RepeatedPtrField<v1::Stage> StagesWithFiles(const Plan& plan);

// Seeds that stages of `to` leave out become those of the stages of `from` that have their names
// and ops.
void KeepSeedsOf(const v1::PipelineSpec& from, v1::PipelineSpec* to);

}  // namespace penstock
