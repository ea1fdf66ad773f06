// The form of a function that works on one row at a time: decode, resize, and whatever is no
// elementwise arithmetic.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/arena.h"
#include "base/signature.h"

namespace penstock::expr {

// One argument for one row: values in C order. For a string, `shape` is empty and `bytes` its
// length.
struct RowValue {
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  Shape shape;  // with every size known
};

// Where a row kernel writes its result, tile by tile. The program decides what lies behind: the
// slot itself, a temporary, or elementwise arithmetic that takes each tile while it is still in L1
// and writes its own result on.
class RowOutput {
 public:
  virtual ~RowOutput() = default;

  // Must be called once, before Reserve(), when the type that the function was bound with has
  // unknown sizes.
  virtual void SetShape(const Shape& shape) = 0;

  // Memory for the next `bytes` bytes of the result in C order; 64 more may be overwritten. A
  // kernel that produces its result in pieces asks for about 2 to 8 KiB at a time; one that cannot
  // asks for the whole. A result that is a string scalar is asked for once, as a whole, and has as
  // many bytes.
  virtual uint8_t* Reserve(size_t bytes) = 0;

  // The reserved bytes are written.
  virtual void Commit() = 0;

  // A kernel that can as well write the rows of an image from right to left may ask, before its
  // first Reserve(), whether that is what becomes of them; it must then do so.
  virtual bool TakeMirrored() { return false; }
};

// One image that a kernel can give in parts, for less than the whole.
//
// Threads: one thread.
class PartReader {
 public:
  virtual ~PartReader() = default;
  // The whole image's shape, of the kernel's own arguments, which must stay until Read().
  virtual absl::StatusOr<Shape> Start(absl::Span<const RowValue> arguments) = 0;
  // Writes rows [top, top + height) of columns [left, left + width), which lie inside, without
  // gaps: the bytes of Run(). Called once.
  virtual absl::Status Read(int64_t top, int64_t left, int64_t height, int64_t width,
                            uint8_t* pixels) = 0;
  // Whether the whole may be read from top to bottom instead, a few rows at a time. After Start().
  virtual bool has_rows() const { return false; }
  // Writes the next `count` rows without gaps. REQUIRES: has_rows(); so many are left; no call
  // failed.
  virtual absl::Status ReadRows(int64_t count, uint8_t* pixels) {
    return absl::UnimplementedError("");
  }
  // The same as the whole of a result, `bytes` in all, instead of Read(): in tiles, where that is
  // cheaper.
  virtual absl::Status ReadTo(int64_t top, int64_t left, int64_t height, int64_t width,
                              size_t bytes, Arena& scratch, RowOutput& out) {
    absl::Status status = Read(top, left, height, width, out.Reserve(bytes));
    if (status.ok()) out.Commit();
    return status;
  }
};

// Where another kernel writes an image that a kernel changes on its way to the result.
//
// Threads: one thread.
class TileFilter : public RowOutput {
 public:
  // The image's type has known sizes.
  void SetShape(const Shape&) override {}
  // All of the image has been written.
  virtual absl::Status Finish() { return absl::OkStatus(); }
};

// Constant after construction; Run() is safe from any thread.
class RowKernel {
 public:
  virtual ~RowKernel() = default;

  // Null where only the whole result can be had.
  virtual std::unique_ptr<PartReader> NewPartReader() const { return nullptr; }
  // Whether the first argument may be what a PartReader reads: the program then calls RunOnPart()
  // instead of Run(), where nobody else wants the whole image. `shape` is the image's, `others` the
  // arguments behind the first.
  virtual bool takes_parts() const { return false; }
  virtual absl::Status RunOnPart(PartReader&, const Shape&, absl::Span<const RowValue>, Arena&,
                                 RowOutput&) const {
    return absl::UnimplementedError("");
  }

  // Whether the first argument may come in tiles, whole values each, while it is made: the program
  // then calls NewTileFilter() instead of Run(), where nobody else wants the image and its sizes
  // are known. `image` is its shape, `others` the arguments behind it; all but the shape outlive
  // the filter.
  virtual bool takes_tiles() const { return false; }
  virtual std::unique_ptr<TileFilter> NewTileFilter(const Shape& image,
                                                    absl::Span<const RowValue> others,
                                                    Arena& scratch, RowOutput& out) const {
    return nullptr;
  }

  // `scratch` lives until the row is done. An error is the row's own ("not a JPEG"); the engine
  // adds file, record and stage.
  virtual absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                           RowOutput& out) const = 0;
};

}  // namespace penstock::expr
