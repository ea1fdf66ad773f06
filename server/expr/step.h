// One step of a program: fills one column for a group of rows from others.
//
// Threads:  constant after construction; Run() is safe from any thread, each with its own Frame.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/column.h"
#include "base/signature.h"
#include "server/expr/bit_pattern.h"
#include "server/expr/graph.h"
#include "server/expr/region.h"

namespace penstock::expr {

// The columns of one group of rows while a program runs. Those of strings and of unknown sizes are
// scattered, and set by the step that makes them.
struct Frame {
  int rows = 0;
  // Whether memory right behind the outputs' rows belongs to rows that are written later by the
  // same call.
  bool more_rows = false;
  // Whether what is written to outputs had better go past the caches (kernels::LaneState).
  bool past_caches = false;
  Column* columns = nullptr;
  Arena* arena = nullptr;
};

// A value inside a column: `bytes` of each row from `offset` on.
struct Place {
  int column = 0;
  size_t offset = 0;
  TensorType type;
  bool constant = false;  // the same for all rows

  const uint8_t* row(const Frame& frame, int r) const {
    return frame.columns[column].row(r) + offset;
  }
};

class Step {
 public:
  virtual ~Step() = default;
  virtual RowStatus Run(Frame& frame) const = 0;
  // "bit_select float32 (8, 8, 24)".
  virtual std::string DebugString() const = 0;
};

std::unique_ptr<Step> MakeCopyStep(Place from, int to);
// The same rows once more, where they lie: of strings and of unknown sizes.
std::unique_ptr<Step> MakeAliasStep(Place from, int to);
std::unique_ptr<Step> MakeGatherStep(Place from, std::vector<int32_t> source,
                                     const TensorType& type, int to);
std::unique_ptr<Step> MakeBitStep(Place from, std::unique_ptr<BitPattern> pattern,
                                  const TensorType& type, Lanes lanes, int to);
std::unique_ptr<Step> MakeRegionStep(std::unique_ptr<Region> region, std::vector<Place> inputs,
                                     const TensorType& type, int to);
// `epilogue`, if any, works on each finished tile of the kernel's result; `type` is then what it
// makes of it.
std::unique_ptr<Step> MakeRowStep(std::shared_ptr<const RowKernel> kernel,
                                  const TensorType& kernel_type, std::vector<Place> arguments,
                                  std::unique_ptr<Region> epilogue, const TensorType& type,
                                  bool to_output, int to);

}  // namespace penstock::expr
