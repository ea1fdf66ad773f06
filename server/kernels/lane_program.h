// Element-wise arithmetic as a chain of vector instructions: what an expression's element-wise
// region is compiled into.
//
// One step of a program computes eight (or two) vectors of each value at once. A single accumulator
// of that many vectors stays in registers and is passed from instruction to instruction by tail
// calls
// ("threaded code"); second operands come from memory: a column, a constant, or a value that was
// put aside in an L1 tile earlier in the step. A program that needs two values at once keeps four
// vectors of each instead: the accumulator, and the one aside of it.
//
// Threads:  instructions are constant once built; a LaneState belongs to one call.
// Owns:     nothing; the caller provides instructions and every buffer.
// Limits:   kMaxOperands operands, kMaxCursors cursors a program.
// Cost:     about one nanosecond an instruction and step of eight vectors, besides the arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace penstock::kernels {

// The types that values have in registers. Narrower integers and flags are computed as kInt32.
enum class Lane : uint8_t { kInt32, kUint32, kInt64, kUint64, kFloat32, kFloat64 };
inline constexpr int kLaneTypes = 6;
inline constexpr size_t LaneBytes(Lane lane) {
  return lane == Lane::kInt64 || lane == Lane::kUint64 || lane == Lane::kFloat64 ? 8 : 4;
}

// How many elements an instruction handles.
enum class Span : uint8_t {
  kWide,   // eight vectors, nothing aside
  kPair,   // four vectors, and four aside
  kShort,  // two vectors: for columns of few elements, and the ends of others
  kOne,    // one element: the scalar twin, which defines the bytes
};

// What a program was built for. Its instructions share span and `has_64bit`.
struct Form {
  Span span = Span::kWide;
  // Whether a 64-bit type occurs. A vector then holds as many elements as fit of 8 bytes, and
  // 32-bit values use half of it.
  bool has_64bit = false;
  // A load: what the accumulator held goes aside first. An operation: its second operand is what
  // lies aside instead of memory. Not with Span::kWide; few operations and types have it.
  bool aside = false;
  // An operation that does the work of its neighbours, too, whose instructions stay where they are
  // and only say where the operands lie. Results of floating type and of eight or four vectors have
  // it: dispatch costs as much as their arithmetic.
  DType loaded = DType::kInvalid;  // the load before it, from memory of this type
  bool pushes = false;             // and that load has Form::aside
  bool stored = false;             // the store of the result behind it, with which the step ends

  bool is_fused() const { return loaded != DType::kInvalid || stored; }
};

struct LaneState;
struct Instruction;

// The code of an instruction for one form, lane type and instruction set. Its true parameters are
// vectors, which only the code of that instruction set can name.
using Handler = void (*)();

struct Instruction {
  Handler run = nullptr;
  // Second and third operand: where in LaneState::base and LaneState::cursor, and elements from one
  // vector to the next (0: the same vector for all, a broadcast).
  uint16_t operand = 0;
  uint16_t operand2 = 0;
  uint8_t cursor = 0;
  uint8_t cursor2 = 0;
  uint8_t vector_step = 0;
  uint8_t vector_step2 = 0;
};

inline constexpr int kMaxOperands = 4096;
inline constexpr int kMaxCursors = 8;

// An instruction whose operands have been found for one run: what its code is given. Looking them
// up at each step would cost as much as the arithmetic of a cheap operation.
struct BoundInstruction {
  Handler run = nullptr;
  uint8_t* base = nullptr;
  const size_t* cursor = nullptr;
  uint8_t* base2 = nullptr;
  const size_t* cursor2 = nullptr;
  uint32_t vector_step = 0;
  uint32_t vector_step2 = 0;
};

struct LaneState {
  // The start of each operand, in bytes.
  uint8_t* const* base = nullptr;
  // Elements from the start to this step's first: 0 is always 0, 1 runs through the columns, the
  // others through periodic constants.
  size_t cursor[kMaxCursors] = {};
  // The result is stored past the caches, where the form and its address allow it: nobody reads it
  // before they have been used for other things. Who hands it on to another thread calls
  // FinishStores() in between.
  bool past_caches = false;

  // Set by the loop over steps.
  const BoundInstruction* first = nullptr;
  size_t steps_left = 0;
  size_t step_elements = 0;
  const uint32_t* periods = nullptr;
  int num_cursors = 0;
};

// One operation for the current instruction set (highway's dynamic dispatch); null when it does not
// exist for that combination.
using HandlerLookup = Handler (*)(int code, Lane lane, Form form);

struct Operation {
  HandlerLookup lookup = nullptr;
  int code = 0;
  // The operation with its operands exchanged, a choice's values; -1: no such code.
  int reversed = -1;
  Handler Find(Lane lane, Form form) const { return lookup(code, lane, form); }
  Handler FindReversed(Lane lane, Form form) const {
    return reversed < 0 ? nullptr : lookup(reversed, lane, form);
  }
};

// Elements of one vector, and of one step.
size_t VectorElements(Form form);
size_t StepElements(Form form);
// Bytes of a vector register.
size_t VectorBytes();

// Runs `steps` steps of `step_elements` elements each, up to the first Finish(). Cursor 1 advances
// by the step; each further one does so modulo its period. A program keeps the loop of the
// instruction set that it was built for.
using StepLoop = void (*)(const Instruction* first, LaneState& state, size_t step_elements,
                          size_t steps, const uint32_t* periods, int num_cursors);
StepLoop FindStepLoop();
// What was stored past the caches is seen before all that this thread stores later.
void FinishStores();

// Instructions that every program needs. Null where the combination does not exist.

// Ends a step.
Handler Finish();
// accumulator = memory.
Handler Load(DType memory, Lane lane, Form form);
// The same with a conversion, for the pairs that have one.
Handler LoadConverted(DType memory, Lane lane, Form form);
// memory = accumulator, whose values are in range.
Handler Store(DType memory, Lane lane, Form form);
// The same for a result: every NaN becomes the one that x86 makes. Which of two NaNs an addition
// passes on depends on the order that the compiler gives its operands, so the bits of a NaN say
// nothing, but the bytes of a batch must be equal everywhere.
Handler StoreResult(DType memory, Lane lane, Form form);
// Saturates towards integers and takes NaN to 0.
Handler Convert(Lane from, Lane to, Form form);
// Brings an int32 into the range of a narrower integer by dropping high bits, as NumPy's arithmetic
// does.
Handler WrapInteger(DType narrow, Form form);

}  // namespace penstock::kernels
