// What a stage tells the plan about itself.
//
// An op reads the signature of the elements before it, checks its options, and adds itself as order
// op or as work op.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/base/file.h"
#include "server/base/signature.h"
#include "server/engine/file_table.h"
#include "server/engine/order_op.h"
#include "server/engine/work_op.h"

namespace penstock {

// A work op and the stages whose work it does: several where they were fused.
struct PlannedWork {
  std::vector<int> stages;
  std::unique_ptr<WorkOp> op;
};

struct PlannedOrder {
  int stage;
  OrderFactory make;
};

class PlanBuilder {
 public:
  PlanBuilder(v1::PipelineSpec spec, FileSystem& files);

  // --- for ops ---
  const std::string& stage() const { return stage_names_[stage_]; }
  int stage_index() const { return stage_; }
  FileSystem& files() { return files_; }

  // One element as it leaves the stage before, without the batch axis.
  const Signature& signature() const { return signature_; }
  bool batched() const { return batch_rows_.has_value(); }

  // Reads the records of files; the element becomes the feature `value`. Called by sources. The
  // manifest outlives the plan's executors.
  const Manifest& SetSource(Manifest manifest);
  void AddOrder(OrderFactory make) { order_.push_back({stage_, std::move(make)}); }
  // The element's features become those of `op`.
  void AddWork(std::unique_ptr<WorkOp> op);
  void SetBatch(uint32_t rows, bool drop_remainder);
  void SetEndless(bool endless) { endless_ = endless; }
  // Says in Explain() what the user should know of this stage.
  void AddNotice(std::string notice) { notices_.push_back(stage() + ": " + std::move(notice)); }
  bool is_last_stage() const { return stage_ + 1 == spec_.stage_size(); }
  v1::PipelineSpec& spec() { return spec_; }
  v1::Stage& stage_spec() { return *spec_.mutable_stage(stage_); }

 private:
  friend class PlanImpl;
  friend absl::Status BuildStages(PlanBuilder& builder);

  v1::PipelineSpec spec_;
  FileSystem& files_;
  std::vector<std::string> stage_names_;
  int stage_ = 0;
  Signature signature_;
  std::unique_ptr<Manifest> manifest_;
  std::vector<PlannedOrder> order_;
  std::vector<PlannedWork> work_;
  std::optional<uint32_t> batch_rows_;
  bool drop_remainder_ = false;
  bool endless_ = false;
  std::vector<std::string> notices_;
};

}  // namespace penstock
