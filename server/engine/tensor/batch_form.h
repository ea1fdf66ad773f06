// How elements become a batch: what `batch`, `padded_batch` and `ragged_batch` leave to the one who
// fills its memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/signature.h"

namespace penstock {

// What becomes of the last elements of a pass when they fill no batch.
enum class Remainder : uint8_t {
  kKeep,  // a shorter batch
  kDrop,  // nothing
  kPad,   // a full batch, whose last rows are no elements
  kWrap,  // a full batch, whose last rows are the pass's first elements
};

struct BatchForm {
  enum class Kind : uint8_t { kPlain, kPadded, kRagged, kSparse };

  Kind kind = Kind::kPlain;
  Remainder remainder = Remainder::kKeep;
  int stage = 0;
  // kPadded and kSparse, for each feature: what its rows are padded to, or the sizes that they have
  // room in (kUnknownSize: the largest of the batch). kPadded: the bytes of the element that fills
  // them up.
  std::vector<Shape> shapes;
  std::vector<std::string> values;

  // kRagged: of what becomes ragged here (TensorType).
  bool narrow_splits = false;

  // Whether every batch has as many rows in memory.
  bool always_full() const { return remainder != Remainder::kKeep; }
};

// How the rows of one tensor come from a column into a slot.
struct RowLayout {
  TensorType row;            // as the column has it
  Shape shape;               // what a row of a batch has
  bool pads = false;         // a smaller row is filled up
  std::string padding = {};  // one element; "" is zero, or the empty string
};

}  // namespace penstock
