// An element-wise region: a tree of arithmetic over columns and constants as one lane program
// (server/kernels/lane_program.h).
//
// Threads:  constant after Build(); Run() is safe from any thread.
// Owns:     its instructions and constants.
// Cost:     Run() writes `elements` results; about 30 ns a call besides the arithmetic, more when
//           the number of elements is no multiple of a short step (two vectors), since the rest
//           goes through buffers on the stack.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/expr/graph.h"
#include "server/kernels/lane_program.h"

namespace penstock::expr {

// Whether programs are built for vectors or for their scalar twin.
enum class Lanes : uint8_t { kVector, kScalar };

class Region {
 public:
  // Columns that it reads, in the order of Run()'s `inputs`: nodes for which `is_leaf` is true, and
  // all that are neither element-wise nor views of the same order nor constants. Of a scalar that
  // is repeated along a row: the scalar.
  static absl::StatusOr<std::unique_ptr<Region>> Build(const Node& root,
                                                       const std::set<const Node*>& leaves,
                                                       Lanes lanes);

  const std::vector<const Node*>& inputs() const { return inputs_; }
  // Whether an input is one value for all elements of a row: Run() is then called row by row, and
  // reads kSplatBytes of copies of it.
  bool repeats(size_t input) const { return columns_[input].element_bytes == 0; }
  bool any_repeats() const { return any_repeats_; }
  static constexpr size_t kSplatBytes = 64;  // the widest vector

  // Input i has `elements` values of the type of inputs()[i], and `out` room for as many of the
  // root's, at any alignment. Periodic constants begin at element `first`. `past_caches`: as
  // kernels::LaneState has it.
  void Run(size_t first, size_t elements, const uint8_t* const* inputs, uint8_t* out,
           bool past_caches = false) const;

  // Operations, for DebugString().
  std::string DebugString() const;
  size_t num_instructions() const { return code_[0].empty() ? code_[1].size() : code_[0].size(); }

 private:
  friend class RegionBuilder;

  struct Column {
    uint16_t operand;
    uint8_t element_bytes;  // 0: one value for all elements
  };

  // Constants that stay the same for long runs of elements (one value a plane) are broadcast, run
  // by run.
  struct HeldConstant {
    uint16_t operand;
    uint8_t* values;  // kSplatBytes of the same value for each run
    size_t runs;
  };

  // Elements of one run, or all.
  void RunPiece(size_t first, size_t elements, const uint8_t* const* inputs, uint8_t* out,
                bool past_caches) const;
  void RunTail(size_t elements, uint8_t** base, kernels::LaneState& state) const;

  std::vector<const Node*> inputs_;
  bool any_repeats_ = false;
  std::vector<Column> columns_;  // the inputs, then the output
  std::vector<uint8_t*> base_;   // by operand: constants are filled in, columns and tiles are not
  std::vector<std::unique_ptr<uint8_t[]>> constants_;
  std::vector<HeldConstant> held_constants_;
  size_t run_elements_ = 0;      // of the held constants; 0: there are none
  std::vector<uint16_t> tiles_;  // operands
  size_t tile_bytes_ = 0;
  std::vector<uint32_t> periods_;  // by cursor; 0 and 1 are unused
  // Instructions of wide steps (none if an operation has no wide form) and of short ones; for the
  // twin, only the latter.
  std::vector<kernels::Instruction> code_[2];
  size_t step_elements_[2] = {0, 0};
  kernels::StepLoop loop_ = nullptr;
  std::string text_;
};

// The elements of an element-wise node all of whose arguments are constants.
absl::StatusOr<std::vector<uint8_t>> EvaluateConstant(const Node& node);

// The type in which values of `dtype` are computed.
kernels::Lane LaneOf(DType dtype);

}  // namespace penstock::expr
