// Elements that a section hands over: the values of all features of one element in a cell of the
// record store.
//
// A cell is the element's path; the fixed features, each at a place of its own; for every other one
// where its bytes lie and the sizes of its axes; and those bytes.
//
// Threads:  constant after construction; safe from any thread.
// Limits:   an element is at most 4 GiB.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/read/column_loader.h"
#include "server/engine/read/record_store.h"

namespace penstock {

class ElementCells final : public ColumnLoader {
 public:
  // The first `hidden` features are packed, but not loaded: they are for the front, which looks at
  // them by First() and Value(). `locates_batch`: as ColumnLoader has it.
  explicit ElementCells(Signature signature, size_t hidden = 0, bool locates_batch = false);

  // Puts row `row` of the columns into a cell and points `reference` at it (data, length). `path`
  // is the new element's; 0: that of the place which the reference names. ResourceExhausted when it
  // is too large.
  absl::Status Pack(absl::Span<const Column> columns, int row, CellCache& cells,
                    RecordRef* reference, uint64_t path = 0) const;

  // The bytes of the cell of row `row` of the columns, and the same written into that many at
  // `cell`, 16 of them aligned.
  uint64_t CellBytes(absl::Span<const Column> columns, int row) const;
  void Write(absl::Span<const Column> columns, int row, uint64_t path, uint8_t* cell) const;

  // The loader of further features of these cells: those from number `first` on, under other names.
  std::unique_ptr<ElementCells> Showing(size_t first, Signature visible) const;

  // Whether a cell holds more than what is loaded.
  bool hides() const { return visible_.size() < places_.size(); }

  // The int64 that is the first feature of an element.
  static int64_t First(const RecordRef& element);
  // The bytes of a feature of an element: the sizes of its axes where only the data tells, and its
  // value. DataLoss where it lies in a map and no longer is what was written there.
  absl::StatusOr<std::string> Value(const RecordRef& element, size_t feature) const;

  const Signature& output() const override { return visible_; }
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override;

  // Whether bytes that come from a file make up a cell.
  bool IsCell(const uint8_t* cell, uint32_t length) const;
  uint64_t Path(const RecordRef& reference) const override;
  bool locates_batch() const override { return locates_batch_; }
  // The path that Pack() was given for what is in this cell.
  static uint64_t PackedPath(const RecordRef& element);

 private:
  struct Place {
    size_t offset = 0;  // of the value, or of its Extent
    size_t bytes = 0;   // of the value; 0 where only the data tells
    bool fixed = false;
    TensorType type = {};
    size_t dims = 0;  // sizes kept behind the Extent
  };
  struct Extent {
    uint64_t offset;
    uint64_t bytes;
  };

  // An element that lies in the map of a file of elements, `element.length` bytes: false where it
  // is not what was written.
  bool CopyMapped(const RecordRef& element, uint8_t* copy) const;
  std::string ValueOf(const uint8_t* cell, size_t feature) const;
  // As Load() where some rows lie in such a map.
  RowStatus LoadMapped(RowReferences rows, FileTable& files, absl::Span<Column> out,
                       Arena& arena) const;

  Signature visible_;
  size_t first_visible_ = 0;
  std::vector<Place> places_;
  size_t fixed_bytes_ = 0;
  bool locates_batch_ = false;
};

}  // namespace penstock
