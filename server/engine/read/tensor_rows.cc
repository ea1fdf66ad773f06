#include "server/engine/read/tensor_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/arena.h"
#include "server/engine/read/npy_strings.h"

namespace penstock {
namespace {

// Readable behind every row, as column.h wants it.
constexpr size_t kPaddingBytes = Arena::kPadding;

void AppendU32(uint32_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A row of strings as column.h wants it: a scalar as it is, others as their sizes and then their
// bytes.
void AppendStringRow(absl::Span<const std::string> strings, bool is_scalar, std::string* out) {
  if (!is_scalar) {
    for (const std::string& text : strings) AppendU32(static_cast<uint32_t>(text.size()), out);
  }
  for (const std::string& text : strings) out->append(text);
}

// Rows that lie in memory one after another, of one size or of many.
class MemoryRows final : public TensorRows {
 public:
  // `ends`: of each row.
  MemoryRows(const std::string& bytes, std::vector<uint64_t> ends)
      : memory_(AllocateMemoryBlock(bytes.size() + kPaddingBytes)), ends_(std::move(ends)) {
    std::memcpy(memory_.get(), bytes.data(), bytes.size());
    std::memset(memory_.get() + bytes.size(), 0, kPaddingBytes);
  }

  // The rows stay where they are.
  RowStatus Load(RowReferences rows, FileTable&, Column* out, Arena& arena) const override {
    auto* places = arena.AllocateArray<RowBytes>(rows.rows);
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const uint64_t number = rows[row].offset;
      const uint64_t begin = number == 0 ? 0 : ends_[number - 1];
      places[row] = {memory_.get() + begin, ends_[number] - begin};
    }
    out->data = nullptr;
    out->rows = places;
    return {};
  }

 private:
  const MemoryBlock memory_;
  const std::vector<uint64_t> ends_;
};

class ArrayRows : public TensorRows {
 public:
  ArrayRows(const RowCut& cut, std::unique_ptr<FileArray> array)
      : array_(std::move(array)),
        row_bytes_(cut.rows == 0 ? 0 : array_->header().data_bytes / cut.rows) {}

  std::optional<RecordRef> Locate(uint64_t row) const override {
    return RecordRef{nullptr, array_->FileOffset(row * row_bytes_), 0, array_->file(), 0};
  }

 protected:
  const std::unique_ptr<FileArray> array_;
  const uint64_t row_bytes_;
};

class NumberArrayRows final : public ArrayRows {
 public:
  NumberArrayRows(const RowCut& cut, std::unique_ptr<FileArray> array)
      : ArrayRows(cut, std::move(array)), is_bool_(cut.row_type.dtype == DType::kBool) {}

  RowStatus Load(RowReferences rows, FileTable& files, Column* out, Arena& arena) const override {
    out->row_bytes = row_bytes_;
    if (out->data == nullptr) out->data = arena.Allocate(rows.rows * row_bytes_);
    for (uint32_t row = 0; row < rows.rows; ++row)
      array_->Prefetch(rows[row].offset * row_bytes_, row_bytes_);
    for (uint32_t first = 0; first < rows.rows;) {
      // Neighbours are copied together.
      uint32_t end = first + 1;
      while (end < rows.rows && rows[end].offset == rows[end - 1].offset + 1) ++end;
      uint8_t* const to = out->data + first * row_bytes_;
      const absl::Span<uint8_t> bytes(to, (end - first) * row_bytes_);
      absl::Status status = array_->Read(files, rows[first].offset * row_bytes_, bytes);
      if (!status.ok()) return {std::move(status), static_cast<int>(first)};
      // True is 1, whatever the file holds.
      if (is_bool_)
        std::transform(bytes.begin(), bytes.end(), to, [](uint8_t b) { return b != 0; });
      first = end;
    }
    files.CountRead(rows.rows * row_bytes_);
    return {};
  }

 private:
  const bool is_bool_;
};

class TextArrayRows final : public ArrayRows {
 public:
  TextArrayRows(const RowCut& cut, std::unique_ptr<FileArray> array)
      : ArrayRows(cut, std::move(array)),
        is_scalar_(cut.row_type.shape.empty()),
        elements_(static_cast<size_t>(*NumElements(cut.row_type.shape))) {}

  RowStatus Load(RowReferences rows, FileTable& files, Column* out, Arena& arena) const override {
    auto* places = arena.AllocateArray<RowBytes>(rows.rows);
    out->data = nullptr;
    out->rows = places;
    uint8_t* const raw = arena.Allocate(row_bytes_);
    std::vector<std::string> strings(elements_);
    std::string encoded;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      absl::Status status =
          array_->Read(files, rows[row].offset * row_bytes_, absl::MakeSpan(raw, row_bytes_));
      if (status.ok()) status = DecodeNpyStrings(array_->header(), raw, absl::MakeSpan(strings));
      if (!status.ok()) return {std::move(status), static_cast<int>(row)};
      encoded.clear();
      AppendStringRow(strings, is_scalar_, &encoded);
      uint8_t* const copy = arena.Allocate(encoded.size());
      std::memcpy(copy, encoded.data(), encoded.size());
      places[row] = {copy, encoded.size()};
    }
    files.CountRead(rows.rows * row_bytes_);
    return {};
  }

 private:
  const bool is_scalar_;
  const size_t elements_;
};

}  // namespace

RowCut CutRows(const TensorType& type, bool slices) {
  RowCut cut{1, type};
  if (!slices) return cut;
  cut.rows = static_cast<uint64_t>(type.shape[0]);
  cut.row_type.shape.erase(cut.row_type.shape.begin());
  return cut;
}

std::unique_ptr<TensorRows> NumberRows(const RowCut& cut, const std::string& values) {
  std::vector<uint64_t> ends(cut.rows);
  for (uint64_t row = 0; row < cut.rows; ++row) ends[row] = values.size() / cut.rows * (row + 1);
  return std::make_unique<MemoryRows>(values, std::move(ends));
}

std::unique_ptr<TensorRows> StringRows(const RowCut& cut, const std::vector<std::string>& values) {
  std::string bytes;
  std::vector<uint64_t> ends;
  const size_t elements = cut.rows == 0 ? 0 : values.size() / cut.rows;
  for (uint64_t row = 0; row < cut.rows; ++row) {
    AppendStringRow(absl::MakeConstSpan(values).subspan(row * elements, elements),
                    cut.row_type.shape.empty(), &bytes);
    ends.push_back(bytes.size());
  }
  return std::make_unique<MemoryRows>(bytes, std::move(ends));
}

std::unique_ptr<TensorRows> FileRows(const RowCut& cut, std::unique_ptr<FileArray> array) {
  if (cut.row_type.dtype == DType::kString)
    return std::make_unique<TextArrayRows>(cut, std::move(array));
  return std::make_unique<NumberArrayRows>(cut, std::move(array));
}

}  // namespace penstock
