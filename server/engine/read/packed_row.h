// A row that is made of pieces of several documents, in a cell of the record store: which
// documents, and which tokens of each.
//
// The cell owns the documents' references (RecordStore::Own), so that the row is one reference like
// any other:
//
//     path (uint64) │ pieces (uint64) │ start, length, tokens of the document (uint32 each) of every piece │ zeros up to a multiple of 8
//     │ the document's RecordRef of every piece
//
// Threads:  a written cell is constant.
// Limits:   2^24 pieces.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "server/engine/read/record.h"

namespace penstock {

class PackedRow {
 public:
  struct Piece {
    uint32_t start = 0;
    uint32_t length = 0;
    uint32_t tokens = 0;  // that the whole document has
  };

  // Of a row with so many pieces.
  static uint32_t CellBytes(size_t pieces) {
    return static_cast<uint32_t>(DocumentsAt(pieces) + pieces * sizeof(RecordRef));
  }
  // Writes one into that many bytes at `cell`. REQUIRES: as many documents as pieces.
  static void Write(uint64_t path, absl::Span<const Piece> pieces,
                    absl::Span<const RecordRef> documents, uint8_t* cell) {
    const uint64_t count = pieces.size();
    std::memcpy(cell, &path, sizeof(path));
    std::memcpy(cell + sizeof(path), &count, sizeof(count));
    std::memcpy(cell + kHeaderBytes, pieces.data(), count * sizeof(Piece));
    std::memset(cell + kHeaderBytes + count * sizeof(Piece), 0,
                DocumentsAt(count) - kHeaderBytes - count * sizeof(Piece));
    std::memcpy(cell + DocumentsAt(count), documents.data(), count * sizeof(RecordRef));
  }

  // The one that a reference points at, while that has an owner.
  explicit PackedRow(const RecordRef& row) : cell_(row.data) {}

  size_t num_pieces() const { return At<uint64_t>(sizeof(uint64_t)); }
  Piece piece(size_t i) const { return At<Piece>(kHeaderBytes + i * sizeof(Piece)); }
  RecordRef document(size_t i) const {
    return At<RecordRef>(DocumentsAt(num_pieces()) + i * sizeof(RecordRef));
  }

 private:
  static constexpr size_t kHeaderBytes = 2 * sizeof(uint64_t);
  static size_t DocumentsAt(size_t pieces) {
    return kHeaderBytes + (pieces * sizeof(Piece) + 7) / 8 * 8;
  }

  template <typename T>
  T At(size_t offset) const {
    T value;
    std::memcpy(&value, cell_ + offset, sizeof(value));
    return value;
  }

  const uint8_t* const cell_;
};

}  // namespace penstock
