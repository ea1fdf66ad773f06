// The plan as the executor sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/engine/plan.h"
#include "server/engine/plan_builder.h"

namespace penstock {

class PlanImpl final : public Plan {
 public:
  static absl::StatusOr<std::shared_ptr<const PlanImpl>> Create(PlanBuilder builder);

  const v1::PipelineSpec& spec() const override { return built_.spec_; }
  const Signature& element() const override { return element_; }
  const std::vector<BatchTensor>& tensors() const override { return tensors_; }
  uint32_t batch_rows() const override { return built_.batch_rows_.value_or(1); }
  uint64_t slot_bytes() const override { return slot_bytes_; }
  bool endless() const override { return built_.endless_; }
  std::string Explain() const override;

  FileSystem& files() const { return built_.files_; }
  const Manifest& manifest() const { return *built_.manifest_; }
  const std::vector<std::string>& stage_names() const { return built_.stage_names_; }
  const std::vector<PlannedOrder>& order() const { return built_.order_; }
  const std::vector<PlannedWork>& work() const { return built_.work_; }
  // Bytes of one row of each tensor.
  const std::vector<size_t>& row_bytes() const { return row_bytes_; }
  // Rows that one task computes: a power of two.
  uint32_t block_rows() const { return block_rows_; }

 private:
  explicit PlanImpl(PlanBuilder builder) : built_(std::move(builder)) {}
  absl::Status Finish();

  PlanBuilder built_;
  Signature element_;
  std::vector<BatchTensor> tensors_;
  std::vector<size_t> row_bytes_;
  uint64_t slot_bytes_ = 0;
  uint32_t block_rows_ = 1;
};

}  // namespace penstock
