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
  uint32_t batch_rows() const override { return built_.dataset_.batch_rows.value_or(1); }
  const std::string& structure() const override { return built_.dataset_.structure; }
  uint64_t slot_bytes() const override { return fixed_bytes_ + variable_bytes_; }
  uint64_t variable_bytes() const override { return variable_bytes_; }
  const std::string& FilePath(uint32_t file) const override { return manifest()[file].path; }
  bool endless() const override { return built_.dataset_.endless; }
  std::string Explain() const override;
  std::string DescribeCursor() const override;

  FileSystem& files() const { return built_.files_; }
  const std::vector<FileRange>& sources() const { return built_.sources_; }
  const Manifest& manifest() const { return *built_.manifest_; }
  const std::vector<std::string>& stage_names() const { return built_.stage_names_; }
  const std::vector<StageKind>& stage_kinds() const { return built_.stage_kinds_; }
  const OrderNode& order() const { return *built_.dataset_.order; }
  const WorkNode& work() const { return *built_.dataset_.work; }
  // References of one row.
  uint32_t width() const { return built_.dataset_.width; }
  // Bytes of one row of each tensor; 0 where only the data tells.
  const std::vector<size_t>& row_bytes() const { return row_bytes_; }
  const std::vector<RowLayout>& layouts() const { return layouts_; }
  const BatchForm& batch_form() const { return built_.dataset_.batch; }
  bool batched() const { return built_.dataset_.batch_rows.has_value(); }
  // Rows that one task computes: a power of two.
  uint32_t block_rows() const { return block_rows_; }

 private:
  explicit PlanImpl(PlanBuilder builder) : built_(std::move(builder)) {}
  absl::Status Finish();
  absl::Status AddTensor(size_t index);
  absl::Status MakeRagged(BatchTensor* tensor, Feature* seen) const;
  RowLayout LayoutOf(size_t index) const;

  PlanBuilder built_;
  Signature element_;
  std::vector<BatchTensor> tensors_;
  std::vector<RowLayout> layouts_;
  std::vector<size_t> row_bytes_;
  uint64_t fixed_bytes_ = 0;
  uint64_t variable_bytes_ = 0;
  uint32_t block_rows_ = 1;
};

}  // namespace penstock
