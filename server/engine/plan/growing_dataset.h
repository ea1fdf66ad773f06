// The dataset that the stages so far have made, to which the next one adds an order op, a work op
// or a batch. Each of these knows what it leaves of what was known of the elements.
//
// Threads:  one thread, while a plan is made.
// Owns:     the dataset.
// Limits:   kMaxFused work ops that are made one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/order/dataset.h"
#include "server/engine/plan/stage_table.h"
#include "server/engine/plan/stage_walk.h"

namespace penstock {

class GrowingDataset {
 public:
  // Each work op is compiled again with those in front of it.
  static constexpr size_t kMaxFused = 32;

  GrowingDataset(StageTable& stages, const StageWalk& walk) : stages_(stages), walk_(walk) {}
  GrowingDataset(const GrowingDataset&) = delete;
  GrowingDataset& operator=(const GrowingDataset&) = delete;

  // What stands so far, for the other parts of the builder.
  Dataset& now() { return dataset_; }
  const Dataset& now() const { return dataset_; }
  bool has_begun() const { return dataset_.order != nullptr; }
  Dataset Take() { return std::exchange(dataset_, Dataset{}); }
  void Become(Dataset dataset) { dataset_ = std::move(dataset); }

  // The dataset of a source alone.
  Dataset MakeLeaf(std::unique_ptr<ColumnLoader> loader, FileRange files, OrderFactory make);
  // The source at the beginning becomes another one of the same columns, in the order that `make`
  // gives.
  void ReorderSource(std::unique_ptr<ColumnLoader> loader, OrderFactory make);
  void AddOrder(OrderFactory make, CursorClass cursor_class);
  void AddWork(std::unique_ptr<WorkOp> op, std::string structure);
  // One more node over the work that stands so far, for marks of what comes behind it.
  WorkNode* AddBoundary();
  // The number of one more reference of each element. What found the elements by one of them finds
  // them no more.
  uint32_t AddReference();
  // The elements are those of `cells` from here on, one reference each, which `stage` makes of what
  // stood so far.
  void BeginInCells(int stage, std::unique_ptr<ElementCells> cells, std::string structure);
  // The same where `loader` has them.
  void BeginLoaded(int stage, std::unique_ptr<ColumnLoader> loader, std::string structure);

  bool batched() const { return dataset_.batch_rows.has_value(); }
  // The elements of every batch, where all have as many.
  std::optional<uint32_t> full_batch_rows() const;
  void SetBatch(uint32_t rows, BatchForm form);
  void PadBatch(std::vector<std::string> values);
  bool PadsRows() const;
  // Whether elements are more than what a source has loaded.
  bool is_computed() const;

 private:
  StageTable& stages_;
  const StageWalk& walk_;
  Dataset dataset_;
};

}  // namespace penstock
