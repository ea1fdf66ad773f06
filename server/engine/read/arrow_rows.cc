#include "server/engine/read/arrow_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/arrow/arrow_column.h"
#include "io/arrow/arrow_file.h"
#include "server/engine/read/arrow_batches.h"

namespace penstock {
namespace {

constexpr uint64_t kNumberBytes = 8;

template <typename Part>
size_t PartOf(const std::vector<Part>& parts, uint64_t number) {
  return std::upper_bound(parts.begin(), parts.end(), number,
                          [](uint64_t n, const Part& part) { return n < part.end; }) -
         parts.begin();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArrowRows>> ArrowRows::Make(const v1::ArrowRows& rows,
                                                           const std::string& row_file,
                                                           uint64_t num_rows, FileSystem& files,
                                                           FileEntry* entry) {
  auto made = std::make_unique<ArrowRows>();
  absl::Status status = made->ReadStretches(rows, num_rows);
  if (status.ok() && rows.row_size() > 0 && !row_file.empty()) {
    status =
        absl::InvalidArgumentError("row_file: expected either rows.row or row_file, found both");
  }
  if (status.ok()) status = made->ReadList(rows);
  if (status.ok() && !row_file.empty()) status = made->ReadFile(row_file, files, entry);
  if (!status.ok()) return status;
  return made;
}

absl::Status ArrowRows::ReadStretches(const v1::ArrowRows& rows, uint64_t num_rows) {
  num_rows_ = num_rows;
  if (rows.start_size() != rows.count_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows: expected as many of count as of start, found ", rows.start_size(),
                     " of start and ", rows.count_size(), " of count"));
  }
  uint64_t end = 0;
  for (int i = 0; i < rows.start_size(); ++i) {
    const int64_t start = rows.start(i), count = rows.count(i);
    if (start < 0 || count < 0 || static_cast<uint64_t>(start) > num_rows ||
        static_cast<uint64_t>(count) > num_rows - start ||
        static_cast<uint64_t>(count) >= (uint64_t{1} << 62) - end) {
      return absl::InvalidArgumentError(absl::StrCat("rows: expected stretches of the ", num_rows,
                                                     " rows that the files have, found ", count,
                                                     " from ", start, " on"));
    }
    end += static_cast<uint64_t>(count);
    stretches_.push_back({static_cast<uint64_t>(start), end});
  }
  if (!stretches_.empty()) num_rows_ = end;
  size_ = num_rows_;
  return absl::OkStatus();
}

absl::Status ArrowRows::ReadList(const v1::ArrowRows& rows) {
  if (rows.row().empty()) return absl::OkStatus();
  for (const int64_t row : rows.row()) {
    if (row < 0 || static_cast<uint64_t>(row) >= num_rows_) {
      return absl::InvalidArgumentError(
          absl::StrCat("rows.row: expected numbers of ", num_rows_, " rows, found ", row));
    }
  }
  list_.assign(rows.row().begin(), rows.row().end());
  has_list_ = true;
  size_ = list_.size();
  return absl::OkStatus();
}

absl::Status ArrowRows::ReadFile(const std::string& path, FileSystem& files, FileEntry* entry) {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(path);
  if (!file.ok()) return file.status();
  const auto wrong = [&path](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "row_file: expected one column of int64 or uint64, without nulls and compression; ", what,
        " (", path, ")"));
  };
  absl::StatusOr<std::unique_ptr<ArrowFile>> arrow = ArrowFile::Open(*file, OnDamage::kFail);
  if (!arrow.ok()) return arrow.status();
  const std::vector<ArrowField>& fields = (*arrow)->schema().fields;
  if (fields.size() != 1) return wrong(absl::StrCat("found ", fields.size(), " columns"));
  absl::StatusOr<ArrowColumn> column =
      FindArrowColumn((*arrow)->schema(), {fields[0].name}, /*to_values=*/true);
  if (!column.ok() || column->levels.size() != 1 || column->dictionary ||
      (column->dtype != DType::kInt64 && column->dtype != DType::kUint64)) {
    return wrong(absl::StrCat("found ", ArrowTypeName(fields[0].type)));
  }
  ArrowBatches batches(1);
  std::vector<Damage> damage;
  absl::Status status = batches.AddFile(**arrow, {&*column, 1}, &damage);
  if (!status.ok()) return status;
  const uint8_t* bytes = nullptr;
  absl::StatusOr<std::unique_ptr<MappedFile>> map =
      (*file)->descriptor() < 0
          ? absl::StatusOr<std::unique_ptr<MappedFile>>(absl::UnavailableError("no descriptor"))
          : MappedFile::Map(**file);
  if (map.ok() && (*map)->size() == (*file)->size()) {
    map_ = *std::move(map);
    bytes = map_->bytes();
  } else {
    const uint64_t size = (*file)->size();
    if (size > kMaxArrowRowFileBytes) {
      return absl::InvalidArgumentError(absl::StrCat("row_file: it cannot be mapped, and has ",
                                                     size, " bytes; expected at most ",
                                                     kMaxArrowRowFileBytes, " (", path, ")"));
    }
    memory_ = AllocateMemoryBlock(size);
    absl::StatusOr<size_t> read = (*file)->ReadAt(0, absl::MakeSpan(memory_.get(), size));
    if (!read.ok()) return read.status();
    if (*read < size) return FileShrunkError(absl::StrCat("the file became shorter (", path, ")"));
    bytes = memory_.get();
  }
  uint64_t end = 0;
  for (const ArrowBatches::Batch& batch : batches.batches()) {
    const ArrowBatches::Place& place = batches.place(batch.first_place);
    if (batch.codec != ArrowCodec::kNone) return wrong("found compressed buffers");
    if (place.parts[static_cast<size_t>(ArrowPart::kBitmap)].bytes > 0) return wrong("found nulls");
    end += batch.rows;
    pieces_.push_back({bytes + place.parts[static_cast<size_t>(ArrowPart::kValues)].offset, end});
  }
  has_list_ = true;
  size_ = end;
  path_ = path;
  *entry = EntryOf(**file);
  return absl::OkStatus();
}

uint64_t ArrowRows::Listed(uint64_t element) const {
  if (!list_.empty()) return static_cast<uint64_t>(list_[element]);
  const size_t piece = PartOf(pieces_, element);
  const uint64_t in_piece = element - (piece == 0 ? 0 : pieces_[piece - 1].end);
  uint64_t number = 0;
  std::memcpy(&number, pieces_[piece].numbers + in_piece * kNumberBytes, sizeof(number));
  return number;
}

uint64_t ArrowRows::InStretches(uint64_t number) const {
  if (stretches_.empty()) return number;
  const size_t stretch = PartOf(stretches_, number);
  return stretches_[stretch].start + number - (stretch == 0 ? 0 : stretches_[stretch - 1].end);
}

absl::StatusOr<uint64_t> ArrowRows::RowOf(uint64_t element) const {
  const uint64_t number = has_list_ ? Listed(element) : element;
  if (number >= num_rows_) {
    return absl::DataLossError(
        absl::StrCat("a number of a row that is not there: expected less than ", num_rows_,
                     ", found ", number, " (", path_, ", row ", element, ")"));
  }
  return InStretches(number);
}

uint64_t ArrowRows::RowOrFirst(uint64_t element) const {
  const uint64_t number = has_list_ ? Listed(element) : element;
  return number < num_rows_ ? InStretches(number) : 0;
}

absl::Status ArrowRows::CheckFile() const {
  if (map_ == nullptr || !map_->torn()) return absl::OkStatus();
  return FileShrunkError(absl::StrCat("the file lost bytes while it was mapped (", path_, ")"));
}

}  // namespace penstock
