#include "server/engine/tensor_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Readable behind every row, as column.h wants it.
constexpr size_t kPaddingBytes = 64;

void AppendU32(uint32_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A row of strings as column.h wants it: a scalar as it is, others as their sizes and then their bytes.
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
    return {};
  }

 private:
  const bool is_bool_;
};

// UTF-8 of a code point; false where there is none.
bool AppendUtf8(uint32_t code, std::string* out) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  const auto tail = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | (code >> shift & 63)));
  };
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xc0 | code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | code >> 12));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xf0 | code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
  return true;
}

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
      if (status.ok()) status = Decode(raw, &strings);
      if (!status.ok()) return {std::move(status), static_cast<int>(row)};
      encoded.clear();
      AppendStringRow(strings, is_scalar_, &encoded);
      uint8_t* const copy = arena.Allocate(encoded.size());
      std::memcpy(copy, encoded.data(), encoded.size());
      places[row] = {copy, encoded.size()};
    }
    return {};
  }

 private:
  // What NumPy shows of an element: without the zeros at its end.
  absl::Status Decode(const uint8_t* raw, std::vector<std::string>* strings) const {
    const bool is_unicode = array_->header().element == NpyElement::kUnicode;
    const size_t element_bytes = array_->header().element_bytes;
    for (size_t i = 0; i < elements_; ++i, raw += element_bytes) {
      std::string& text = (*strings)[i];
      text.clear();
      size_t end = element_bytes;
      while (end > 0 && raw[end - 1] == 0) --end;
      if (!is_unicode) {
        text.assign(reinterpret_cast<const char*>(raw), end);
        continue;
      }
      for (size_t at = 0; at < end; at += sizeof(uint32_t)) {
        uint32_t code;
        std::memcpy(&code, raw + at, sizeof(code));
        if (!AppendUtf8(code, &text)) {
          return absl::DataLossError(
              absl::StrCat("no Unicode text: code point ", code, " in element ", i, " of the row"));
        }
      }
    }
    return absl::OkStatus();
  }

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
