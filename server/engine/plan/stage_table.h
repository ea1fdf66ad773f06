// The stages of a plan, in the order of the text, nested ones behind their op: what each is called,
// and what it has turned out to be.
//
// Threads:  one thread, while a plan is made; then constant.
// Owns:     the spec, in which ops fill in what was left open.
// Limits:   kMaxStages stages.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/order/dataset.h"
#include "server/engine/spec/op_traits.h"

namespace penstock {

// What a stage has turned out to be.
enum class StageKind {
  kHint,   // neither of the others
  kOrder,  // sequential, with a position
  kWork,   // a pure function of rows
};

class StageTable {
 public:
  // Planning takes time and memory by the number of stages.
  static constexpr size_t kMaxStages = 1024;

  explicit StageTable(v1::PipelineSpec spec);

  // InvalidArgument where there are no stages, too many, or two of one name.
  absl::Status Check() const;

  v1::PipelineSpec& spec() { return spec_; }
  const v1::PipelineSpec& spec() const { return spec_; }
  // By the number of the stage, each of these.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<StageKind>& kinds() const { return kinds_; }
  const std::vector<OpMeaning>& meanings() const { return meanings_; }
  const std::vector<std::string>& notices() const { return notices_; }

  // The number of a stage of the spec.
  int NumberOf(const v1::Stage& stage);

  void SetKind(int stage, StageKind kind) { kinds_[stage] = kind; }
  // Where values decide the order, what computes them belongs to it.
  void MarkOrder(const WorkNode& work);
  void SetMeaning(int stage, OpMeaning meaning) { meanings_[stage] = std::move(meaning); }
  // Where several things raise it, the highest number holds.
  void RaiseMeaning(int stage, OpMeaning meaning);
  // What Explain() says of a stage.
  void AddNotice(int stage, const std::string& notice) {
    notices_.push_back(names_[stage] + ": " + notice);
  }

 private:
  v1::PipelineSpec spec_;
  std::vector<std::string> names_;
  std::vector<StageKind> kinds_;
  std::vector<OpMeaning> meanings_;
  std::vector<std::string> notices_;
};

}  // namespace penstock
