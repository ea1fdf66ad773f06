#include "server/engine/read/arrow_loader.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/record_access.h"
#include "io/record/record_index.h"
#include "io/record/record_stream.h"
#include "io/record/row_places.h"
#include "server/engine/read/arrow_buffers.h"
#include "server/engine/read/arrow_walk.h"

namespace penstock {
namespace {

using Batch = ArrowBatches::Batch;
using Kind = ArrowLevel::Kind;

// A row, and where it is.
struct PlacedRow {
  const Batch* batch = nullptr;
  uint64_t in_batch = 0;

  bool IsBehind(const PlacedRow& other) const {
    return batch == other.batch && in_batch == other.in_batch + 1;
  }
};

// One feature of a block of rows.
class FeatureLoad {
 public:
  FeatureLoad(const ArrowFeature& feature, size_t number, const ArrowBatches& batches,
              ArrowView& view, absl::Span<const PlacedRow> rows, Arena& arena)
      : feature_(feature),
        number_(number),
        batches_(batches),
        view_(view),
        rows_(rows),
        arena_(arena),
        is_flat_(feature.column.levels.size() == 1 && !feature.is_null) {}

  // Has what rows that are no neighbours will be read from brought nearer.
  void Prefetch() {
    if (!is_flat_) return;
    const ArrowLevel& level = feature_.column.levels[0];
    const bool is_text = level.kind == Kind::kTexts;
    if (!is_text && level.kind != Kind::kNumbers) return;
    const auto part = static_cast<size_t>(is_text ? ArrowPart::kOffsets : ArrowPart::kValues);
    const uint64_t bytes = is_text ? (level.is_wide ? 8 : 4) : level.size;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (row > 0 && rows_[row].IsBehind(rows_[row - 1])) continue;
      const uint8_t* const map = view_.MapOf(*rows_[row].batch);
      if (map == nullptr) continue;
      const ArrowExtent& extent = batches_.place(PlaceIn(*rows_[row].batch)).parts[part];
      __builtin_prefetch(map + extent.offset + rows_[row].in_batch * bytes);
    }
  }

  RowStatus Load(Column* out) {
    if (!feature_.is_dense()) return LoadScattered(out);
    const size_t row_bytes = feature_.row_values * DTypeSize(feature_.type.dtype);
    out->row_bytes = row_bytes;
    if (out->data == nullptr) out->data = arena_.Allocate(rows_.size() * row_bytes);
    const bool copies = is_flat_ && feature_.column.levels[0].kind == Kind::kNumbers;
    for (size_t first = 0; first < rows_.size();) {
      size_t end = first + 1;
      while (end < rows_.size() && rows_[end].IsBehind(rows_[end - 1])) ++end;
      uint8_t* const to = out->data + first * row_bytes;
      if (copies && HasNoNulls(*rows_[first].batch)) {
        absl::Status status = CopyNumbers(rows_[first], end - first, row_bytes, to);
        if (!status.ok()) return {std::move(status), static_cast<int>(first)};
      } else {
        for (size_t row = first; row < end; ++row) {
          absl::Status status = Walk().Take(*rows_[row].batch, rows_[row].in_batch,
                                            out->data + row * row_bytes, nullptr, nullptr);
          if (!status.ok()) return {std::move(status), static_cast<int>(row)};
        }
      }
      if (view_.HoldsMuch()) view_.LetGo();
      first = end;
    }
    return {};
  }

 private:
  uint64_t PlaceIn(const Batch& batch) const {
    return batch.first_place + batches_.first_level(number_);
  }

  bool HasNoNulls(const Batch& batch) const {
    return batches_.place(PlaceIn(batch)).parts[static_cast<size_t>(ArrowPart::kBitmap)].bytes == 0;
  }

  absl::Status CopyNumbers(const PlacedRow& row, size_t count, size_t bytes, uint8_t* to) {
    absl::StatusOr<const uint8_t*> values = view_.Get(
        *row.batch, PlaceIn(*row.batch), ArrowPart::kValues, (row.in_batch + count) * bytes);
    if (!values.ok()) return values.status();
    const uint8_t* const from = *values + row.in_batch * bytes;
    if (count == 1 && bytes == 8) {
      std::memcpy(to, from, 8);
    } else if (count == 1 && bytes == 4) {
      std::memcpy(to, from, 4);
    } else {
      std::memcpy(to, from, count * bytes);
    }
    return absl::OkStatus();
  }

  RowStatus LoadScattered(Column* out) {
    auto* const places = arena_.AllocateArray<RowBytes>(rows_.size());
    const size_t axes = feature_.type.shape.size();
    const bool has_dims = feature_.list_axes > 0 && !feature_.type.packed();
    auto* const dims = has_dims ? arena_.AllocateArray<int64_t>(rows_.size() * axes) : nullptr;
    *out = Column{};
    out->rows = places;
    out->dims = dims;
    if (is_flat_ && feature_.column.levels[0].kind == Kind::kTexts) return LoadTexts(places);
    for (size_t row = 0; row < rows_.size(); ++row) {
      absl::Status status = Walk().Take(*rows_[row].batch, rows_[row].in_batch, nullptr,
                                        &places[row], has_dims ? dims + row * axes : nullptr);
      if (!status.ok()) return {std::move(status), static_cast<int>(row)};
      if (view_.HoldsMuch()) view_.LetGo();
    }
    return {};
  }

  // Strings that are all of a column: found first, and then copied together.
  RowStatus LoadTexts(RowBytes* places) {
    const ArrowLevel& level = feature_.column.levels[0];
    const uint32_t width = level.is_wide ? 8 : 4;
    uint64_t total = 0;
    size_t moved = 0;  // rows that are in the arena already
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (view_.HoldsMuch()) {
        for (; moved < row; ++moved) places[moved] = CopyOf(places[moved]);
        view_.LetGo();
      }
      const PlacedRow& placed = rows_[row];
      places[row] = {};
      if (!HasNoNulls(*placed.batch)) {
        absl::Status status =
            Walk().Take(*placed.batch, placed.in_batch, nullptr, &places[row], nullptr);
        if (!status.ok()) return {std::move(status), static_cast<int>(row)};
        total += places[row].size;
        continue;
      }
      const uint64_t place = PlaceIn(*placed.batch);
      uint64_t bytes = 0;
      absl::StatusOr<const uint8_t*> offsets =
          view_.Get(*placed.batch, place, ArrowPart::kOffsets, (placed.in_batch + 2) * width);
      if (!offsets.ok()) return {offsets.status(), static_cast<int>(row)};
      absl::StatusOr<const uint8_t*> values =
          view_.Get(*placed.batch, place, ArrowPart::kValues, 0, &bytes);
      if (!values.ok()) return {values.status(), static_cast<int>(row)};
      const uint64_t from = LoadArrowNumber(*offsets + placed.in_batch * width, width, false);
      const uint64_t to = LoadArrowNumber(*offsets + (placed.in_batch + 1) * width, width, false);
      if (to < from || to > bytes || to - from > kMaxArrowRowBytes) {
        return {
            absl::DataLossError(absl::StrCat("a string of bytes ", from, " to ", to, " of ", bytes,
                                             ": its offsets are not sound, or it is longer than ",
                                             kMaxArrowRowBytes, " bytes")),
            static_cast<int>(row)};
      }
      places[row] = {*values + from, to - from};
      PrefetchRecord(places[row].data, places[row].size);
      total += to - from;
    }
    uint8_t* at = arena_.Allocate(total);
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (places[row].size > 0) std::memcpy(at, places[row].data, places[row].size);
      places[row].data = at;
      at += places[row].size;
    }
    return {};
  }

  RowBytes CopyOf(const RowBytes& bytes) {
    uint8_t* const to = arena_.Allocate(bytes.size);
    if (bytes.size > 0) std::memcpy(to, bytes.data, bytes.size);
    return {to, bytes.size};
  }

  ArrowWalk& Walk() {
    if (!walk_) walk_.emplace(feature_, number_, batches_, view_, arena_);
    return *walk_;
  }

  const ArrowFeature& feature_;
  const size_t number_;
  const ArrowBatches& batches_;
  ArrowView& view_;
  const absl::Span<const PlacedRow> rows_;
  Arena& arena_;
  const bool is_flat_;  // the values are all that the column is
  std::optional<ArrowWalk> walk_;
};

class ArrowLoaderImpl final : public ColumnLoader {
 public:
  explicit ArrowLoaderImpl(ArrowSource source)
      : source_(std::move(source)), buffers_(*source_.batches, source_.first_file) {
    for (const ArrowFeature& feature : source_.features)
      output_.push_back({feature.name, feature.type});
  }

  const Signature& output() const override { return output_; }
  bool is_dict() const override { return true; }
  bool fails_by_values() const override { return true; }

  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    auto* const placed = arena.AllocateArray<PlacedRow>(rows.rows);
    for (uint32_t row = 0; row < rows.rows; ++row) {
      uint64_t number = rows[row].offset;
      if (!source_.rows->is_all()) {
        absl::StatusOr<uint64_t> found = source_.rows->RowOf(number);
        if (!found.ok()) return {found.status(), static_cast<int>(row)};
        number = *found;
      }
      placed[row] = row == 0 ? PlaceOf(number) : PlaceOf(number, placed[row - 1]);
    }
    ArrowView view(buffers_, files);
    const absl::Span<const PlacedRow> all(placed, rows.rows);
    for (size_t i = 0; i < source_.features.size(); ++i)
      FeatureLoad(source_.features[i], i, *source_.batches, view, all, arena).Prefetch();
    RowStatus status;
    for (size_t i = 0; i < source_.features.size(); ++i) {
      RowStatus found =
          FeatureLoad(source_.features[i], i, *source_.batches, view, all, arena).Load(&out[i]);
      view.LetGo();  // what was made of it is in the arena
      if (found.ok()) CountRead(out[i], rows.rows, files);
      // The lowest row counts, whichever feature it is of.
      if (found.ok() || (!status.ok() && status.row <= found.row)) continue;
      found.status = WithAddress(found.status, source_.features[i].name, placed[found.row], files);
      status = std::move(found);
    }
    if (absl::Status torn = CheckMaps(all, view); !torn.ok()) return {std::move(torn), 0};
    return status;
  }

  RecordRef Locate(const RecordRef& reference) const override {
    RecordRef place = reference;
    const ArrowBatches& batches = *source_.batches;
    if (batches.num_rows() == 0) return place;
    const PlacedRow row = PlaceOf(source_.rows->RowOrFirst(reference.offset));
    place.offset = row.batch->first_row_of_file + row.in_batch;
    place.file = source_.first_file + row.batch->file;
    return place;
  }

  std::string ContentKey() const override {
    std::string key = absl::StrCat("arrow rows ", static_cast<int>(source_.on_damage));
    for (const ArrowFeature& feature : source_.features) {
      for (const std::string& part :
           {feature.name, ArrowPath(feature.path), TypeToString(feature.type),
            feature.default_value.value_or("")})
        absl::StrAppend(&key, " ", part.size(), ":", part);
      absl::StrAppend(&key, " ", feature.default_value.has_value(), feature.allow_missing,
                      feature.is_null);
    }
    return key;
  }

 private:
  PlacedRow PlaceOf(uint64_t row) const {
    const Batch& batch = source_.batches->batches()[source_.batches->BatchOf(row)];
    return {&batch, row - batch.first_row};
  }
  // Mostly in the batch of the row before it.
  PlacedRow PlaceOf(uint64_t row, const PlacedRow& before) const {
    const uint64_t in_batch = row - before.batch->first_row;
    if (in_batch < before.batch->rows) return {before.batch, in_batch};
    return PlaceOf(row);
  }

  absl::Status WithAddress(const absl::Status& status, const std::string& feature,
                           const PlacedRow& row, FileTable& files) const {
    return files.WithRecordAddress(
        WithMessage(status, absl::StrCat("feature \"", feature, "\": ", status.message())),
        source_.first_file + row.batch->file, row.batch->first_row_of_file + row.in_batch);
  }

  static void CountRead(const Column& column, uint32_t rows, FileTable& files) {
    uint64_t bytes = column.row_bytes * rows;
    for (uint32_t row = 0; column.rows != nullptr && row < rows; ++row)
      bytes += column.rows[row].size;
    files.CountRead(bytes);
  }

  absl::Status CheckMaps(absl::Span<const PlacedRow> rows, const ArrowView& view) const {
    if (absl::Status status = source_.rows->CheckFile(); !status.ok()) return status;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && rows[i].batch->file == rows[i - 1].batch->file) continue;
      if (absl::Status status = view.CheckMap(rows[i].batch->file); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const ArrowSource source_;
  const ArrowBuffers buffers_;
  Signature output_;
};

// Rows by their numbers. There is nothing to be scanned.
class Places final : public RecordFormat, public RecordAccess, public RowPlaces {
 public:
  Places(std::shared_ptr<const ArrowBatches> batches, uint32_t file)
      : batches_(std::move(batches)), file_(file) {}

  std::string ContentKey() const override { return "arrow rows"; }
  const RecordAccess* access() const override { return this; }
  std::unique_ptr<RecordStream> NewStream(RecordSource) const override { return nullptr; }

  std::string IndexKey() const override { return ContentKey(); }
  const RecordShape& shape() const override { return shape_; }
  bool is_kept() const override { return false; }
  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>&,
                                    const IndexOptions&) const override {
    FoundRecords found;
    found.offsets = RecordOffsets::Even(0, 1, batches_->num_rows_of_file(file_));
    found.records_end = found.offsets.size();
    found.verified = true;
    return found;
  }
  bool Open(uint8_t*, uint64_t*, bool) const override { return true; }
  bool IsAt(RandomAccessFile&, uint64_t, uint64_t) const override { return true; }
  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>&, uint64_t offset) const override {
    return offset;
  }

  std::string Describe(uint64_t row) const override {
    const Batch& batch = BatchOf(row);
    return absl::StrCat("row ", row, " of the file, row ", row - batch.first_row_of_file,
                        " of record batch ", batch.number);
  }

 private:
  const Batch& BatchOf(uint64_t row) const {
    return batches_->batches()[batches_->BatchOf(file_, row)];
  }

  const std::shared_ptr<const ArrowBatches> batches_;
  const uint32_t file_;
  const RecordShape shape_;
};

}  // namespace

std::unique_ptr<ColumnLoader> ArrowLoader(ArrowSource source) {
  return std::make_unique<ArrowLoaderImpl>(std::move(source));
}

std::shared_ptr<const RecordFormat> ArrowPlaces(std::shared_ptr<const ArrowBatches> batches,
                                                uint32_t file) {
  return std::make_shared<Places>(std::move(batches), file);
}

}  // namespace penstock
