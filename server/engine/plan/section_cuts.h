// The cuts of a plan, behind which elements lie in cells (ElementCells): where a section ends that
// is computed ahead of the front, and where the front makes elements itself.
//
// Threads:  one thread, while a plan is made.
// Owns:     nothing: a section belongs to its order op, the cells to the dataset's work.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/engine/plan/copy_marks.h"
#include "server/engine/plan/growing_dataset.h"
#include "server/engine/plan/plan_files.h"
#include "server/engine/plan/stage_table.h"
#include "server/engine/plan/stage_walk.h"
#include "server/engine/section/split_op.h"

namespace penstock {

class SectionCuts {
 public:
  SectionCuts(StageTable& stages, const StageWalk& walk, const PlanFiles& files,
              GrowingDataset& dataset, CopyMarks& copies)
      : stages_(stages), walk_(walk), files_(files), dataset_(dataset), copies_(copies) {}
  SectionCuts(const SectionCuts&) = delete;
  SectionCuts& operator=(const SectionCuts&) = delete;

  // PlanBuilder says of each of these what it is for.
  void End(std::unique_ptr<SplitOp> split, std::string structure, size_t hidden);
  void EndWith(std::unique_ptr<WorkOp> op, size_t hidden);
  void EndAsIs();
  void EndAlone();
  void EndEmpty();
  absl::Status EndBatches();
  absl::Status LeaveOutFailures();
  bool can_fail() const;
  const ElementCells* BeginInFront(Signature signature, std::string structure,
                                   const WorkNode** input);
  void BeginLoaded(std::unique_ptr<ColumnLoader> loader, std::string structure);

 private:
  // Such batches go through a section, which hands on the rows of those that are one. They stay
  // batches: of their rows ranks have parts.
  absl::Status LeaveOutBatches();
  // The dataset becomes that of the elements which the section hands over.
  void BeginAfter(Section& section, Signature signature, std::string structure, size_t hidden);
  const ElementCells* BeginInCells(int stage, Signature signature, std::string structure,
                                   size_t hidden, bool of_batches);
  // Of those that this work computes: whether the place that they are known by is that of a batch;
  // absent where they have none.
  std::optional<bool> LocatesBatch(const WorkNode& work) const;

  StageTable& stages_;
  const StageWalk& walk_;
  const PlanFiles& files_;
  GrowingDataset& dataset_;
  CopyMarks& copies_;
};

}  // namespace penstock
