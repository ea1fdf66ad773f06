// The way through the stages of a spec: which one is being built, and what stands around it. Each
// stage's op is looked up and has the builder to add itself to.
//
// Threads:  one thread, while a plan is made.
// Limits:   kMaxDepth stages inside of each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/plan/stage_table.h"
#include "server/engine/read/skip_limits.h"

namespace penstock {

class PlanBuilder;

class StageWalk {
 public:
  // Each step of the order takes time by the depth of stages inside of stages.
  static constexpr int kMaxDepth = 32;
  // Of an element's tuples and dicts in one another.
  static constexpr int kMaxStructureDepth = 64;

  // Ops are given `plan`.
  StageWalk(StageTable& stages, PlanBuilder& plan) : stages_(stages), plan_(plan) {}
  StageWalk(const StageWalk&) = delete;
  StageWalk& operator=(const StageWalk&) = delete;

  // Builds all stages of the spec.
  absl::Status BuildAll() { return BuildList(stages_.spec().mutable_stage(), true); }
  // Builds the stages of input `i` of the stage's op, and comes back to the stage unless one of
  // them fails. They are taken from the stage's own message, since nested ops fill in seeds.
  // `from_source`: whether the first of them begins a dataset.
  absl::Status BuildInput(int i, bool from_source);
  // Whether that input has any.
  bool HasStages(int i) { return Input(i)->stage_size() > 0; }

  // The stage that is being built.
  int number() const { return number_; }
  const std::string& name() const { return stages_.names()[number_]; }
  v1::Stage& message() const { return *message_; }
  // Of the outer list.
  bool is_last() const;
  // Of what it draws by this seed of its own.
  uint64_t DrawKey(int64_t seed) const;
  // What is left out of the elements that fail, where an ignore_errors follows
  // (PlanBuilder::ignored).
  const std::optional<IgnoredFailures>& ignored() const { return ignored_; }

  // The stages before it in its list, and what their ops mean with all that is inside of them,
  // where that is not 1.
  std::vector<const v1::Stage*> Before() const;
  std::string MeaningsBefore() const;

 private:
  using StageList = google::protobuf::RepeatedPtrField<v1::Stage>;

  absl::Status BuildList(StageList* stages, bool from_source);
  absl::Status BuildStage(v1::Stage* stage, bool is_first);
  v1::Input* Input(int i);
  // What is ignored of stage `i` of the list by one behind it, or else `around`.
  std::optional<IgnoredFailures> FindIgnored(const StageList& stages, int i,
                                             const std::optional<IgnoredFailures>& around);

  StageTable& stages_;
  PlanBuilder& plan_;
  int depth_ = 0;      // of the list that is being built
  int num_begun_ = 0;  // stages
  int number_ = 0;
  v1::Stage* message_ = nullptr;
  StageList* list_ = nullptr;  // where it stands
  std::optional<IgnoredFailures> ignored_;
};

}  // namespace penstock
