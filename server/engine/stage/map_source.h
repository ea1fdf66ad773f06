// What the ops that compute with expressions have in common: constants and intermediate values.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/plan/plan_builder.h"
#include "server/expr/program.h"

namespace penstock {

// The text of the stage whose plan is made, but for its outs; `constants` are all of its op's.
// Messages leave out the stage's name.
absl::StatusOr<expr::MapSource> ReadMapSource(
    const google::protobuf::RepeatedPtrField<v1::Constant>& constants,
    const google::protobuf::RepeatedPtrField<std::string>& lets, PlanBuilder& plan);

}  // namespace penstock
