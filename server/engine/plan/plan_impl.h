// The plan as the executor sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/engine/compute/batch_program.h"
#include "server/engine/plan/built_plan.h"
#include "server/engine/plan/plan.h"
#include "server/engine/share/shareable_work.h"

namespace penstock {

class PlanImpl final : public Plan {
 public:
  static absl::StatusOr<std::shared_ptr<const PlanImpl>> Create(BuiltPlan built, World world);

  const v1::PipelineSpec& spec() const override { return built_.stages.spec(); }
  const Signature& element() const override { return program_.element(); }
  const std::vector<BatchTensor>& tensors() const override { return program_.tensors(); }
  uint32_t batch_rows() const override { return program_.batch_rows(); }
  World world() const override { return program_.world(); }
  const std::string& structure() const override { return built_.dataset.structure; }
  uint64_t slot_bytes() const override { return program_.fixed_bytes() + variable_bytes_; }
  uint64_t variable_bytes() const override { return variable_bytes_; }
  bool variable_grows() const override {
    return variable_bytes_ > 0 && built_.stages.spec().ring().slot_bytes() == 0;
  }
  const std::string& FilePath(uint32_t file) const override { return manifest()[file].path; }
  std::vector<NeededIndex> NeededIndices() const override;
  bool endless() const override { return built_.dataset.endless; }
  std::string Explain() const override;
  std::string DescribeCursor() const override;

  std::shared_ptr<void> KeepIndices() const override { return indices_.KeepAll(); }

  FileSystem& files() const { return built_.files.system(); }
  KnownIndices& indices() const { return indices_; }
  const std::vector<FileRange>& sources() const { return built_.files.sources(); }
  // The stage of each of the sources.
  const std::vector<int>& source_stages() const { return built_.files.source_stages(); }
  const Manifest& manifest() const { return built_.files.manifest(); }
  const std::vector<std::string>& stage_names() const { return built_.stages.names(); }
  const std::vector<StageKind>& stage_kinds() const { return built_.stages.kinds(); }
  // The same of each stage's op.
  const std::vector<OpMeaning>& meanings() const { return built_.stages.meanings(); }
  const OrderNode& order() const { return *built_.dataset.order; }
  const WorkNode& work() const { return *built_.dataset.work; }
  const BatchProgram& program() const { return program_; }
  // What others may share of the work; it keeps `plan`, which must be one of MakePlan().
  static WorkToShare WorkOf(std::shared_ptr<const Plan> plan);
  // References of one row.
  uint32_t width() const { return program_.width(); }
  // The nodes of work() whose results may be shared (engine/share/shareable_work.h) are numbered
  // below this.
  int num_shareable() const { return num_shareable_; }
  // Rows that one task computes: a power of two.
  uint32_t block_rows() const { return program_.block_rows(); }
  uint32_t grain_rows() const { return program_.grain_rows(); }

 private:
  explicit PlanImpl(BuiltPlan built) : built_(std::move(built)) {}
  absl::Status Finish(World world);
  // Whether the batches can be divided among hosts.
  absl::Status CheckWorld() const;
  // What the hosts of a world compute and read of each other's rows.
  std::string ExplainWorld() const;

  BuiltPlan built_;
  mutable KnownIndices indices_;  // has its own lock
  BatchProgram program_;
  uint64_t variable_bytes_ = 0;
  int num_shareable_ = 0;
};

}  // namespace penstock
