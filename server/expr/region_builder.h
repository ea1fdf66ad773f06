// Turns the tree of a region into instructions: decides what is computed first, what is put aside,
// and which constants become memory operands.
//
// Threads:  one thread, for one region.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/expr/region.h"
#include "server/expr/region_code.h"

namespace penstock::expr {

class RegionBuilder {
 public:
  RegionBuilder(const std::set<const Node*>& leaves, Lanes lanes)
      : leaves_(leaves), lanes_(lanes) {}

  absl::StatusOr<std::unique_ptr<Region>> Build(const Node& root);

 private:
  using Operand = RegionOperand;
  using Step = RegionStep;

  // Node without views of the same order.
  static const Node* Skip(const Node* node);
  bool IsLeaf(const Node* node) const;
  // Whether a leaf is one value, repeated along a row.
  static bool Repeats(const Node* node);
  void Count(const Node* node);
  void CountConstant(const Node& node);
  bool Has64Bit(const Node* node);

  // Brings a node into the accumulator.
  absl::Status Generate(const Node* node);
  absl::Status GenerateOperation(const Node* node);
  absl::Status GenerateCast(const Node* node);
  absl::Status GenerateTernary(const Node* node);
  // A choice whose condition compares two operands in memory as two steps, the second of them
  // kOperand; none if it is not such a one. `step` has the choice's lane, second operand and order.
  std::vector<Step> ChoiceSteps(const Node* condition, Step step);
  // Puts aside what the accumulator holds, and brings a node into it. REQUIRES: nothing lies aside.
  absl::Status GenerateBesides(const Node* node);
  // Whether an operation's second operand may lie aside.
  bool MayLieAside(kernels::HandlerLookup lookup, int code, kernels::Lane lane) const;
  // Whether two values are needed at once on the way to a node. A guess, since what is saved
  // meanwhile is at hand.
  bool NeedsAside(const Node* node) const;

  // A node as a memory operand, if it is one without further instructions.
  std::optional<Operand> Direct(const Node* node);
  absl::StatusOr<Operand> ConstantOperand(const Node* node);
  Operand HeldOperand(const std::vector<uint8_t>& lanes, size_t element);
  Operand SplatOperand(kernels::Lane lane, double value);
  // Stores the accumulator into a tile.
  Operand PutAside(kernels::Lane lane);
  void Release(const Operand& tile);

  uint16_t AddOperand(uint8_t* base);
  Operand InputOperand(const Node* node);
  void AddLoad(Step load);
  // The instructions of all steps in a form, as one of the region's two programs.
  absl::Status Emit(int which, kernels::Form form);

  const std::set<const Node*>& leaves_;
  const Lanes lanes_;
  std::unique_ptr<Region> region_;
  std::vector<Step> steps_;
  bool has_64bit_ = false;
  bool aside_busy_ = false;
  bool aside_next_ = false;  // the next load puts the accumulator aside
  bool aside_used_ = false;
  uint8_t vector_elements_ = 1;
  std::map<const Node*, int> uses_;
  std::set<const Node*> visited_;
  std::set<const Node*> without_64bit_;
  std::set<const Node*> two_at_once_;
  std::map<const Node*, Operand> saved_;
  std::map<const Node*, uint16_t> input_operands_;
  std::map<const Node*, Operand> constant_operands_;
  std::vector<uint16_t> free_tiles_;
  size_t run_elements_ = 0;  // of which all runs of long constants are multiples
};

}  // namespace penstock::expr
