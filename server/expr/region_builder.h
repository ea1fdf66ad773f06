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
#include "server/kernels/choice.h"

namespace penstock::expr {

class RegionBuilder {
 public:
  RegionBuilder(const std::set<const Node*>& leaves, Lanes lanes)
      : leaves_(leaves), lanes_(lanes) {}

  absl::StatusOr<std::unique_ptr<Region>> Build(const Node& root);

 private:
  // Where an operand lies: an index into Region::base_, a cursor, and elements from vector to
  // vector.
  struct Operand {
    uint16_t operand = 0;
    uint8_t cursor = 0;
    uint8_t step = 0;
  };

  // Instructions are written once, for all forms: this one looks up its code when the forms are
  // known.
  struct Step {
    enum class Kind : uint8_t {
      kLoad,
      kLoadConverted,
      kStore,
      kStoreResult,
      kConvert,
      kWrap,
      kOperation,
      kReversed,
      kChoice,   // kernels::FindChoice()
      kOperand,  // says where an operand of the step before it lies
    };
    Kind kind = Kind::kLoad;
    DType memory = DType::kInvalid;
    kernels::Lane lane = kernels::Lane::kInt32;
    kernels::Lane to = kernels::Lane::kInt32;
    const kernels::Operation* operation = nullptr;
    Operand first;
    Operand second;
    bool aside = false;  // Form::aside
    // kChoice
    kernels::Comparison comparison = kernels::Comparison::kEqual;
    bool reversed = false;
  };

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
  // A choice whose condition compares two operands in memory as two steps, the second of them kOperand; none if it is not such a
  // one. `step` has the choice's lane, second operand and order.
  std::vector<Step> ChoiceSteps(const Node* condition, Step step);
  // Puts aside what the accumulator holds, and brings a node into it. REQUIRES: nothing lies aside.
  absl::Status GenerateBesides(const Node* node);
  // Whether an operation's second operand may lie aside.
  bool MayLieAside(kernels::HandlerLookup lookup, int code, kernels::Lane lane) const;
  // Whether two values are needed at once on the way to a node. A guess, since what is saved meanwhile is at hand.
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
  absl::Status Emit(Region& region, int which, kernels::Form form);
  // A load and the two or three operations behind it as one instruction, and the store of the result, too, if form.stored.
  struct Chain {
    kernels::Handler run = nullptr;  // null: the steps are none
    size_t steps = 0;
  };
  Chain FindChain(size_t first, kernels::Form form) const;
  kernels::Handler FindCode(const Step& step, kernels::Form form) const;
  bool IsOperation(size_t step) const;
  bool IsResult(size_t step) const;
  // Has operations do the work of the loads before them and of the store behind them, where there is code for it.
  void Fuse(std::vector<kernels::Instruction>& code, kernels::Form form) const;
  kernels::Handler FindOperation(const Step& step, kernels::Form form) const;

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
