// The steps of a region as instructions of the lane program (server/kernels/lane_program.h): finds
// the code of each in a form, and has one instruction do the work of several where there is code
// for that.
//
// Threads:  any.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/dtype.h"
#include "server/kernels/arithmetic.h"
#include "server/kernels/choice.h"
#include "server/kernels/lane_program.h"

namespace penstock::expr {

// Where an operand lies: an index into Region::base_, a cursor, and elements from vector to vector.
struct RegionOperand {
  uint16_t operand = 0;
  uint8_t cursor = 0;
  uint8_t step = 0;
};

// What one instruction does. Steps are written once, for all forms.
struct RegionStep {
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
  RegionOperand first;
  RegionOperand second;
  bool aside = false;  // Form::aside
  // kChoice
  kernels::Comparison comparison = kernels::Comparison::kEqual;
  bool reversed = false;
};

// The code of an operation or a choice; null where the form has none.
kernels::Handler FindOperation(const RegionStep& step, kernels::Form form);

// One instruction for each step, and the last one, which ends the program. Internal where a step
// has no code in that form.
absl::StatusOr<std::vector<kernels::Instruction>> EncodeSteps(absl::Span<const RegionStep> steps,
                                                              kernels::Form form);

}  // namespace penstock::expr
