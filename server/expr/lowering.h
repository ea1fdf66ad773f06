// Cuts the graph into steps: element-wise regions, fused bit choices, rearrangements and row
// kernels, each of which fills one column.
//
// Threads:  one thread, while a program is compiled.
// Owns:     the steps until Lower() hands them over.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/expr/graph.h"
#include "server/expr/step.h"

namespace penstock::expr {

// What a program runs. Columns are numbered: inputs, outputs, temporaries; constants count down
// from -1.
struct Steps {
  std::vector<std::unique_ptr<Step>> steps;
  // What each of them computes, by the names of its functions: "decode_jpeg, resize".
  std::vector<std::string> names;
  size_t num_inputs = 0;
  std::vector<size_t> input_axes;
  size_t num_outputs = 0;
  // Bytes of one row of each temporary; 0 for those whose size only the data tells.
  std::vector<size_t> temporary_bytes;
  std::vector<std::vector<uint8_t>> constants;
  // Whether a row kernel runs: rows are then handled one at a time, so that the lowest failing one
  // is found and its temporaries stay in cache.
  bool row_by_row = false;
};

class Lowering {
 public:
  Lowering(Graph& graph, size_t num_inputs, Lanes lanes)
      : graph_(graph), num_inputs_(num_inputs), lanes_(lanes) {}

  absl::StatusOr<Steps> Lower(const std::vector<const Node*>& outputs);

 private:
  // Marks a node that must exist as a column, and decides how it comes about.
  absl::Status MarkRoot(const Node* node, const Node* reader);
  // Marks what a region needs that computes `node` on its way to `root`.
  absl::Status VisitRegion(const Node* node, const Node* root);

  void AddStep(std::string name, std::unique_ptr<Step> step);

  absl::StatusOr<Place> Materialize(const Node* node);
  absl::StatusOr<Place> MaterializeView(const Node* node);
  absl::StatusOr<Place> MaterializeBits(const Node* node);
  absl::StatusOr<Place> MaterializeRegion(const Node* node);
  absl::StatusOr<Place> MaterializeRow(const Node* node, std::unique_ptr<Region> epilogue,
                                       const Node* result);
  // What a row function's node runs: its own kernel, or one that makes its image, too.
  struct RowCall {
    std::string name;
    std::shared_ptr<const RowKernel> kernel;
    std::vector<const Node*> arguments;
  };
  RowCall CallOf(const Node& node);
  // A node's image, if another row function makes it for that node alone; else null.
  const Node* OwnImage(const Node& node) const;
  Place AddConstant(const Node* node);
  // The output that the node is, or a new temporary.
  Place Destination(const Node* node);

  Graph& graph_;
  const size_t num_inputs_;
  const Lanes lanes_;
  Steps result_;
  std::set<const Node*> roots_;
  std::map<const Node*, std::set<const Node*>> readers_;
  std::map<const Node*, const Node*> reached_from_;
  std::map<const Node*, std::unique_ptr<BitPattern>> patterns_;
  std::map<const Node*, int> output_columns_;
  std::map<const Node*, Place> places_;
};

}  // namespace penstock::expr
