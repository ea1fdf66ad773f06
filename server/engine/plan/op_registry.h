// The ops that a spec can name. Each file in server/ops registers one, by a static object:
//
//   const OpRegistration<v1::Take> kTake(
//       "take", {.gives = Given::kFirstOnes, .keeps_elements = false},
//       [](const v1::Take& options, PlanBuilder& plan) -> absl::Status { … });
//
// The name is the field of v1.Stage; the message is the op's manual; engine/spec/op_traits.h says
// what the traits are.
//
// Threads: ops are registered before main() and constant then.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/spec/op_traits.h"

namespace penstock {

struct OpDefinition {
  // Checks the options against what the plan holds so far and adds the op. Messages leave out the
  // stage's name.
  std::function<absl::Status(const google::protobuf::Message& options, PlanBuilder& plan)> plan;
};

void RegisterOp(std::string_view name, OpDefinition definition);
// Null when there is none of that name.
const OpDefinition* FindOp(std::string_view name);

template <typename Options>
struct OpRegistration {
  using Planner = absl::Status (*)(const Options& options, PlanBuilder& plan);
  OpRegistration(std::string_view name, OpTraits traits, Planner planner) {
    RegisterTraits(name, std::move(traits));
    RegisterOp(name, {[planner](const google::protobuf::Message& options, PlanBuilder& plan) {
                 return planner(static_cast<const Options&>(options), plan);
               }});
  }
};

}  // namespace penstock
