// Writes the rows of packed sequences, each feature in one pass over its tokens, from columns that
// hold their documents.
//
// Threads:  constant after construction; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/signature.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/read/packed_row.h"
#include "server/engine/stage/packed_documents.h"

namespace penstock {

class PackedRowWriter {
 public:
  PackedRowWriter(const Signature& documents, const PackForm& form);

  const Signature& output() const { return output_; }

  // Writes these rows, into places that it makes where they have none yet. `in`: the tokens, and
  // what the mask is by, of the documents of all of their pieces, one after another.
  void WriteRows(RowReferences rows, absl::Span<const Column> in, absl::Span<Column> out,
                 Arena& arena) const;

 private:
  void AllocateRows(RowReferences rows, absl::Span<Column> out, Arena& arena) const;
  void WriteRow(const PackedRow& packed, absl::Span<const Column> in, size_t first, uint32_t row,
                absl::Span<Column> out) const;
  void WriteId(int64_t id, uint8_t* to) const;
  size_t mask_bytes() const;
  size_t StoredOf(const Column& column, size_t document, const PackedRow::Piece& piece,
                  size_t bytes) const;
  void CopyTokens(const Column& column, size_t document, const PackedRow::Piece& piece,
                  uint8_t* to) const;
  void CopyMask(absl::Span<const Column> in, size_t document, const PackedRow::Piece& piece,
                uint8_t* mask, size_t used) const;

  const PackForm form_;
  const Signature output_;
  const size_t token_bytes_;
  Feature mask_feature_;
  uint8_t pad_[sizeof(int64_t)] = {};  // as a token
  uint8_t end_[sizeof(int64_t)] = {};  // the same
};

// The int32 or int64 () of a row.
int64_t AnswerBegin(const Feature& feature, const Column& column, size_t row);

}  // namespace penstock
