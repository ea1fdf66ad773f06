#include "server/engine/stage/packed_row_writer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/row_shape.h"

namespace penstock {
namespace {

// Values of a feature with one for each token: those of a piece, of an end id and of padding.
void FillValue(uint8_t* to, size_t count, const uint8_t* value, size_t value_bytes) {
  if (value_bytes == 1) {
    std::memset(to, *value, count);
    return;
  }
  for (size_t i = 0; i < count; ++i) std::memcpy(to + i * value_bytes, value, value_bytes);
}

}  // namespace

int64_t AnswerBegin(const Feature& feature, const Column& column, size_t row) {
  int64_t value = 0;
  if (feature.type.dtype == DType::kInt64) {
    std::memcpy(&value, column.row(row), sizeof(value));
  } else {
    int32_t narrow = 0;
    std::memcpy(&narrow, column.row(row), sizeof(narrow));
    value = narrow;
  }
  return value;
}

PackedRowWriter::PackedRowWriter(const Signature& documents, const PackForm& form)
    : form_(form),
      output_(PackedSignature(documents, form)),
      token_bytes_(DTypeSize(documents[form.tokens].type.dtype)) {
  WriteId(form.pad_id, pad_);
  WriteId(form.end_id.value_or(0), end_);
  if (form.mask >= LossMask::kFeature) mask_feature_ = documents[form.mask_by];
}

void PackedRowWriter::WriteId(int64_t id, uint8_t* to) const {
  const auto narrow = static_cast<int32_t>(id);
  if (token_bytes_ == sizeof(id)) {
    std::memcpy(to, &id, sizeof(id));
  } else {
    std::memcpy(to, &narrow, sizeof(narrow));
  }
}

void PackedRowWriter::WriteRows(RowReferences rows, absl::Span<const Column> in,
                                absl::Span<Column> out, Arena& arena) const {
  AllocateRows(rows, out, arena);
  size_t first = 0;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    const PackedRow packed(rows[row]);
    WriteRow(packed, in, first, row, out);
    first += packed.num_pieces();
  }
}

void PackedRowWriter::AllocateRows(RowReferences rows, absl::Span<Column> out, Arena& arena) const {
  for (size_t i = 0; i < output_.size(); ++i) {
    Column& column = out[i];
    if (const std::optional<int64_t> bytes = NumBytes(output_[i].type)) {
      column.row_bytes = *bytes;
      if (column.data == nullptr) column.data = arena.Allocate(rows.rows * *bytes);
      continue;
    }
    // Only cu_seqlens has a size of its own in each row.
    auto* const values = arena.AllocateArray<RowBytes>(rows.rows);
    auto* const dims = arena.AllocateArray<int64_t>(rows.rows);
    for (uint32_t row = 0; row < rows.rows; ++row) {
      dims[row] = static_cast<int64_t>(PackedRow(rows[row]).num_pieces()) + 1;
      const size_t bytes = dims[row] * sizeof(int32_t);
      values[row] = {arena.Allocate(bytes), bytes};
    }
    column.rows = values;
    column.dims = dims;
  }
}

// `first`: where the documents of its pieces are among the rows of `in`.
void PackedRowWriter::WriteRow(const PackedRow& packed, absl::Span<const Column> in, size_t first,
                               uint32_t row, absl::Span<Column> out) const {
  const auto row_of = [row](const Column& column) {
    return column.rows != nullptr ? const_cast<uint8_t*>(column.rows[row].data)
                                  : column.data + row * column.row_bytes;
  };
  size_t feature = 0;
  uint8_t* const tokens = row_of(out[feature++]);
  auto* const segment_ids = form_.segment_ids ? row_of(out[feature++]) : nullptr;
  auto* const positions = form_.positions ? row_of(out[feature++]) : nullptr;
  auto* const mask = form_.mask != LossMask::kNone ? row_of(out[feature++]) : nullptr;
  auto* const ends = form_.cu_seqlens ? row_of(out[feature++]) : nullptr;
  const auto put = [](uint8_t* to, size_t i, size_t number) {
    const auto value = static_cast<int32_t>(number);
    std::memcpy(to + i * sizeof(value), &value, sizeof(value));
  };
  const size_t length = form_.sequence_length;
  size_t used = 0;
  const size_t pieces = packed.num_pieces();
  if (ends != nullptr) put(ends, 0, 0);
  for (size_t i = 0; i < pieces; ++i) {
    const PackedRow::Piece piece = packed.piece(i);
    const size_t document = first + i;
    CopyTokens(in[0], document, piece, tokens + used * token_bytes_);
    for (size_t t = 0; segment_ids != nullptr && t < piece.length; ++t)
      put(segment_ids, used + t, i + 1);
    for (size_t t = 0; positions != nullptr && t < piece.length; ++t) put(positions, used + t, t);
    if (mask != nullptr) CopyMask(in, document, piece, mask, used);
    used += piece.length;
    if (ends != nullptr) put(ends, i + 1, used);
  }
  const size_t places = form_.max_documents ? *form_.max_documents + 1 : pieces + 1;
  for (size_t i = pieces + 1; ends != nullptr && i < places; ++i) put(ends, i, used);
  const size_t padding = length - used;
  FillValue(tokens + used * token_bytes_, padding, pad_, token_bytes_);
  if (segment_ids != nullptr)
    std::memset(segment_ids + used * sizeof(int32_t), 0, padding * sizeof(int32_t));
  if (positions != nullptr)
    std::memset(positions + used * sizeof(int32_t), 0, padding * sizeof(int32_t));
  if (mask != nullptr) std::memset(mask + used * mask_bytes(), 0, padding * mask_bytes());
}

size_t PackedRowWriter::mask_bytes() const {
  return form_.mask == LossMask::kFeature ? DTypeSize(mask_feature_.type.dtype) : 1;
}

// The tokens of a document end with the end id, which is in no column.
size_t PackedRowWriter::StoredOf(const Column& column, size_t document,
                                 const PackedRow::Piece& piece, size_t bytes) const {
  const size_t stored = column.row_size(document) / bytes;
  return std::min<size_t>(piece.length, stored - std::min<size_t>(stored, piece.start));
}

void PackedRowWriter::CopyTokens(const Column& column, size_t document,
                                 const PackedRow::Piece& piece, uint8_t* to) const {
  const size_t stored = StoredOf(column, document, piece, token_bytes_);
  if (stored > 0) {
    std::memcpy(to, column.row(document) + piece.start * token_bytes_, stored * token_bytes_);
  }
  FillValue(to + stored * token_bytes_, piece.length - stored, end_, token_bytes_);
}

void PackedRowWriter::CopyMask(absl::Span<const Column> in, size_t document,
                               const PackedRow::Piece& piece, uint8_t* mask, size_t used) const {
  if (form_.mask == LossMask::kTokens) {
    std::memset(mask + used, 1, piece.length);
    return;
  }
  if (form_.mask == LossMask::kAnswer) {
    const int64_t begin = AnswerBegin(mask_feature_, in[1], document);
    const size_t prompt = std::clamp<int64_t>(begin - piece.start, 0, piece.length);
    std::memset(mask + used, 0, prompt);
    std::memset(mask + used + prompt, 1, piece.length - prompt);
    return;
  }
  const size_t bytes = mask_bytes();
  const size_t stored = StoredOf(in[1], document, piece, bytes);
  uint8_t* const to = mask + used * bytes;
  if (stored > 0) std::memcpy(to, in[1].row(document) + piece.start * bytes, stored * bytes);
  const size_t all = in[1].row_size(document) / bytes;
  constexpr uint8_t kZero[16] = {};
  const uint8_t* const last = all > 0 ? in[1].row(document) + (all - 1) * bytes : kZero;
  FillValue(to + stored * bytes, piece.length - stored, last, bytes);
}

}  // namespace penstock
