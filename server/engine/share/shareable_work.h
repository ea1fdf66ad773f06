// The parts of a plan's work whose results other pipelines may use as well: chains of work ops over
// the records of files, as far as nothing in them is drawn by chance.
//
// A chain's levels are its stages, one after another; each has a text that says all that its
// results depend on, besides the bytes of the files: pipelines whose first texts are equal compute
// the same of the same record, whatever their order, batches and names are.
//
// Threads:  constant after construction.
// Owns:     nothing of the plan, which must outlive it.
// Cost:     made once a pipeline, from the messages of its spec.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/v1/pipeline.pb.h"
#include "server/engine/order/dataset.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/read/file_table.h"

namespace penstock {

// What a plan tells of its work to pipelines that may share it.
struct WorkToShare {
  std::shared_ptr<const void> plan;  // keeps what the others point to
  const v1::PipelineSpec* spec = nullptr;
  const WorkNode* work = nullptr;
  const Manifest* manifest = nullptr;
  const std::vector<std::string>* stage_names = nullptr;
  int num_shareable = 0;  // the nodes of `work` that may be shared are numbered below this
};

struct ShareableLevel {
  std::string text;
  const WorkNode* node = nullptr;
  size_t parts = 0;  // of the node's, from the first on, that belong to it
  int stage = 0;     // its last one
};

struct ShareableChain {
  const WorkNode* source = nullptr;
  std::vector<ShareableLevel> levels;
};

std::vector<ShareableChain> FindShareable(const WorkToShare& plan);

// Numbers the nodes that FindShareable() may name (WorkNode::shareable), from 0 on; returns how
// many there are.
int NumberShareable(WorkNode& work, int next = 0);

// A node's work in two steps: up to a level, and the rest of it.
struct SplitWork {
  SplitWork(const ShareableChain& chain, size_t level);

  const WorkNode* node;
  const WorkNode* source;
  std::vector<int> stages;            // up to the level, of the whole chain
  int stage;                          // the level's
  std::vector<const WorkOp*> prefix;  // over the node's input
  std::vector<const WorkOp*> rest;    // may be none
  ElementCells cells;                 // of the results

 private:
  std::vector<std::unique_ptr<WorkOp>> fused_;
};

}  // namespace penstock
