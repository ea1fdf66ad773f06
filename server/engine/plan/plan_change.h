// Whether a stream may go on with another plan: which changes of a spec keep every position valid,
// so that no element is lost or doubled.
//
// A work op has no position: any other one may take its place, where no op behind it decides by
// values (those belong to the order). Weights and batch sizes are no part of a position either, but
// an op that puts together again what had reached it (a shuffle) would find other elements there:
// behind them stand only ops that keep nothing.
//
// Threads:  functions without state.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/plan/plan.h"

namespace penstock {

// `first`: the plan with which the stream began, whose batches the ring's slots fit.
// FailedPrecondition names the stage and its op, and says why.
absl::Status CheckPlanChange(const Plan& first, const Plan& from, const Plan& to);

// The part of it that is about consumers: they get the same features, in batches that are no
// larger.
absl::Status CheckSameElement(const Plan& first, const Plan& to);

// Seeds of `to` that are absent become those of `from`, a stage with the same op, nested ones
// included.
void KeepSeeds(v1::Stage from, v1::Stage* to);

// Stages of `spec` take those of `changed` that have their names; NotFound names one that fits
// none. Seeds that `changed` leaves out, and the inputs of sample_from_datasets, stay what they
// were.
absl::Status ReplaceStages(const google::protobuf::RepeatedPtrField<v1::Stage>& changed,
                           v1::PipelineSpec* spec);

// Of a mixture, only the weights are taken out of a changed stage: FailedPrecondition if `to` has
// other inputs.
absl::Status CheckInputs(const v1::Stage& from, const v1::Stage& to);

// The top-level stages of `to` that differ from those of `from`, as ReplaceStages() takes them;
// both are of plans, and as long.
google::protobuf::RepeatedPtrField<v1::Stage> ChangedStages(const v1::PipelineSpec& from,
                                                            const v1::PipelineSpec& to);

}  // namespace penstock
