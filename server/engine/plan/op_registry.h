// The ops that a spec can name. Each file in server/ops registers one, by a static object:
//
//   const OpRegistration<v1::Take> kTake("take", [](const v1::Take& options, PlanBuilder& plan) ->
//   absl::Status { … });
//
// The name is the field of v1.Stage; the message is the op's manual.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "server/engine/plan/op_meaning.h"
#include "server/engine/plan/plan_builder.h"

namespace penstock {

// Where a stage of this op may stand in its list.
enum class OpPlace {
  kSource,  // first
  kInside,  // anywhere but first
  kAnywhere,
};

struct OpDefinition {
  // Checks the options against what the plan holds so far and adds the op. Messages leave out the
  // stage's name.
  std::function<absl::Status(const google::protobuf::Message& options, PlanBuilder& plan)> plan;
  OpPlace place = OpPlace::kInside;
  // Of every plan; PlanBuilder::RaiseMeaning() raises it for one.
  OpMeaning meaning = {};
};

void RegisterOp(std::string_view name, OpDefinition definition);
// Null when there is none of that name.
const OpDefinition* FindOp(std::string_view name);

template <typename Options>
struct OpRegistration {
  using Planner = absl::Status (*)(const Options& options, PlanBuilder& plan);
  OpRegistration(std::string_view name, Planner planner, OpPlace place = OpPlace::kInside,
                 OpMeaning meaning = {}) {
    RegisterOp(name, {[planner](const google::protobuf::Message& options, PlanBuilder& plan) {
                        return planner(static_cast<const Options&>(options), plan);
                      },
                      place, std::move(meaning)});
  }
};

}  // namespace penstock
