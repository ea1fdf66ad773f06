#include "server/engine/read/parquet_loader.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "io/record/record_access.h"
#include "io/record/record_index.h"
#include "io/record/record_stream.h"
#include "io/record/row_places.h"
#include "server/engine/read/parquet_decoded.h"

namespace penstock {
namespace {

using Stretch = ParquetStretches::Stretch;

// A row, and where it is.
struct PlacedRow {
  uint32_t stretch = 0;
  uint64_t in_stretch = 0;

  bool IsBehind(const PlacedRow& other) const {
    return stretch == other.stretch && in_stretch == other.in_stretch + 1;
  }
};

absl::Status Null() { return absl::DataLossError("the value is null, and has no default_value"); }

// Rows of a block that are in one stretch, up to `end`.
struct Run {
  size_t end = 0;
  bool is_sequence = true;  // each is behind the one before it
  std::shared_ptr<const ParquetDecoded::Held> held;
};
// Mostly one, two where a stretch ends.
using Runs = absl::InlinedVector<Run, 2>;

// One feature of a block of rows.
class FeatureLoad {
 public:
  FeatureLoad(const ArrowFeature& feature, size_t number, const Runs& runs,
              absl::Span<const PlacedRow> rows, Arena& arena)
      : feature_(feature), number_(number), runs_(runs), rows_(rows), arena_(arena) {}

  RowStatus Load(Column* out) {
    const bool is_text = feature_.type.dtype == DType::kString;
    RowBytes* places = nullptr;
    if (is_text) {
      places = arena_.AllocateArray<RowBytes>(rows_.size());
      *out = Column{};
      out->rows = places;
    } else {
      out->row_bytes = DTypeSize(feature_.type.dtype);
      if (out->data == nullptr) out->data = arena_.Allocate(rows_.size() * out->row_bytes);
    }
    size_t first = 0;
    for (const Run& run : runs_) {
      const std::vector<ParquetDecoded::Column>& columns = run.held->value.columns;
      // Of all features behind the one at which the stretch could not be read, the first one tells.
      if (number_ >= columns.size()) return {run.held->status, static_cast<int>(first)};
      const absl::Status& damage = columns[number_].damage;
      if (!damage.ok()) return {damage, static_cast<int>(first)};
      const ParquetValues& values = columns[number_].values;
      RowStatus status = is_text ? TakeTexts(values, first, run.end, places)
                                 : TakeNumbers(values, first, run, *out);
      if (!status.ok()) return status;
      first = run.end;
    }
    return {};
  }

 private:
  static bool IsNull(const ParquetValues& values, uint64_t row) {
    return values.nulls > 0 && (values.validity.block.get()[row / 8] >> (row % 8) & 1) == 0;
  }

  // The first row that is null, where none may be; `end` where there is none.
  size_t FirstNull(const ParquetValues& values, size_t first, size_t end) const {
    if (values.nulls == 0 || feature_.default_value || feature_.is_null) return end;
    while (first < end && !IsNull(values, rows_[first].in_stretch)) ++first;
    return first;
  }

  RowStatus TakeNumbers(const ParquetValues& values, size_t first, const Run& run,
                        Column& out) const {
    const size_t bytes = out.row_bytes;
    const size_t end = run.end;
    if (feature_.is_null) {
      for (size_t row = first; row < end; ++row)
        out.data[row] = static_cast<uint8_t>(IsNull(values, rows_[row].in_stretch));
      return {};
    }
    const uint8_t* const slots = values.slots.block.get();
    const size_t null = FirstNull(values, first, end);
    for (size_t row = first; row < null;) {
      size_t next = run.is_sequence ? null : row + 1;
      while (next < null && rows_[next].IsBehind(rows_[next - 1])) ++next;
      std::memcpy(out.data + row * bytes, slots + rows_[row].in_stretch * bytes,
                  (next - row) * bytes);
      row = next;
    }
    if (null < end) return {Null(), static_cast<int>(null)};
    return {};
  }

  // Found first, and then copied together.
  RowStatus TakeTexts(const ParquetValues& values, size_t first, size_t end,
                      RowBytes* places) const {
    const size_t null = FirstNull(values, first, end);
    uint64_t total = 0;
    for (size_t row = first; row < null; ++row) {
      const ParquetText& text = values.texts()[rows_[row].in_stretch];
      PrefetchRecord(text.data, text.size);
      places[row] = {text.data, text.size};
      total += text.size;
    }
    if (null < end) return {Null(), static_cast<int>(null)};
    uint8_t* at = arena_.Allocate(total);
    for (size_t row = first; row < end; ++row) {
      if (places[row].size > 0) std::memcpy(at, places[row].data, places[row].size);
      places[row].data = at;
      at += places[row].size;
    }
    return {};
  }

  const ArrowFeature& feature_;
  const size_t number_;
  const Runs& runs_;
  const absl::Span<const PlacedRow> rows_;
  Arena& arena_;
};

std::vector<std::string> FillsOf(const std::vector<ArrowFeature>& features) {
  std::vector<std::string> fills;
  for (const ArrowFeature& feature : features) fills.push_back(feature.default_value.value_or(""));
  return fills;
}

class ParquetLoaderImpl final : public ColumnLoader {
 public:
  explicit ParquetLoaderImpl(ParquetSource source)
      : source_(std::move(source)),
        decoded_(*source_.stretches, FillsOf(source_.features), source_.first_file) {
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
    const absl::Span<const PlacedRow> all(placed, rows.rows);
    const Runs runs = RunsOf(all, files, arena);
    RowStatus status;
    for (size_t i = 0; i < source_.features.size(); ++i) {
      RowStatus found = FeatureLoad(source_.features[i], i, runs, all, arena).Load(&out[i]);
      if (found.ok()) CountRead(out[i], rows.rows, files);
      // The lowest row counts, whichever feature it is of.
      if (found.ok() || (!status.ok() && status.row <= found.row)) continue;
      found.status = WithAddress(found.status, source_.features[i].name, placed[found.row], files);
      status = std::move(found);
    }
    if (absl::Status torn = CheckMaps(all); !torn.ok()) return {std::move(torn), 0};
    return status;
  }

  RecordRef Locate(const RecordRef& reference) const override {
    RecordRef place = reference;
    if (source_.stretches->num_rows() == 0) return place;
    const PlacedRow row = PlaceOf(source_.rows->RowOrFirst(reference.offset));
    const Stretch& stretch = StretchOf(row);
    place.offset = stretch.first_row_of_file + row.in_stretch;
    place.file = source_.first_file + stretch.file;
    return place;
  }

  std::string ContentKey() const override {
    std::string key = "parquet rows";
    for (const ArrowFeature& feature : source_.features) {
      for (const std::string& part :
           {feature.name, ArrowPath(feature.path), TypeToString(feature.type),
            feature.default_value.value_or("")})
        absl::StrAppend(&key, " ", part.size(), ":", part);
      absl::StrAppend(&key, " ", feature.default_value.has_value(), feature.is_null);
    }
    return key;
  }

 private:
  const Stretch& StretchOf(const PlacedRow& row) const {
    return source_.stretches->stretches()[row.stretch];
  }
  PlacedRow PlaceOf(uint64_t row) const {
    const uint32_t number = source_.stretches->StretchOf(row);
    return {number, row - source_.stretches->stretches()[number].first_row};
  }
  // Mostly in the stretch of the row before it.
  PlacedRow PlaceOf(uint64_t row, const PlacedRow& before) const {
    const Stretch& stretch = StretchOf(before);
    const uint64_t in_stretch = row - stretch.first_row;
    if (in_stretch < stretch.rows) return {before.stretch, in_stretch};
    return PlaceOf(row);
  }

  Runs RunsOf(absl::Span<const PlacedRow> rows, FileTable& files, Arena& scratch) const {
    Runs runs;
    for (size_t first = 0; first < rows.size(); first = runs.back().end) {
      Run& run = runs.emplace_back();
      for (run.end = first + 1; run.end < rows.size(); ++run.end) {
        if (rows[run.end].stretch != rows[first].stretch) break;
        run.is_sequence &= rows[run.end].IsBehind(rows[run.end - 1]);
      }
      run.held = decoded_.Get(rows[first].stretch, files, scratch);
    }
    return runs;
  }

  absl::Status WithAddress(const absl::Status& status, const std::string& feature,
                           const PlacedRow& row, FileTable& files) const {
    const Stretch& stretch = StretchOf(row);
    const char* const remedy =
        absl::IsUnimplemented(status) ? "; Dataset.parquet(…, reader=\"pyarrow\") reads them" : "";
    return files.WithRecordAddress(
        WithMessage(status, absl::StrCat("feature \"", feature, "\": ", status.message(), remedy)),
        source_.first_file + stretch.file, stretch.first_row_of_file + row.in_stretch);
  }

  static void CountRead(const Column& column, uint32_t rows, FileTable& files) {
    uint64_t bytes = column.row_bytes * rows;
    for (uint32_t row = 0; column.rows != nullptr && row < rows; ++row)
      bytes += column.rows[row].size;
    files.CountRead(bytes);
  }

  absl::Status CheckMaps(absl::Span<const PlacedRow> rows) const {
    if (absl::Status status = source_.rows->CheckFile(); !status.ok()) return status;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && rows[i].stretch == rows[i - 1].stretch) continue;
      if (absl::Status status = decoded_.CheckMap(StretchOf(rows[i]).file); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  const ParquetSource source_;
  const ParquetDecoded decoded_;
  Signature output_;
};

// Rows by their numbers. There is nothing to be scanned.
class Places final : public RecordFormat, public RecordAccess, public RowPlaces {
 public:
  Places(std::shared_ptr<const ParquetStretches> stretches, uint32_t file)
      : stretches_(std::move(stretches)), file_(file) {}

  std::string ContentKey() const override { return "parquet rows"; }
  const RecordAccess* access() const override { return this; }
  std::unique_ptr<RecordStream> NewStream(RecordSource) const override { return nullptr; }

  std::string IndexKey() const override { return ContentKey(); }
  const RecordShape& shape() const override { return shape_; }
  bool is_kept() const override { return false; }
  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>&,
                                    const IndexOptions&) const override {
    FoundRecords found;
    found.offsets = RecordOffsets::Even(0, 1, stretches_->num_rows_of_file(file_));
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
    const Stretch& stretch = stretches_->stretches()[stretches_->StretchOf(file_, row)];
    return absl::StrCat("row ", row, " of the file, row ",
                        row - stretch.first_row_of_file + stretch.first_row_of_group,
                        " of row group ", stretch.in_file);
  }

 private:
  const std::shared_ptr<const ParquetStretches> stretches_;
  const uint32_t file_;
  const RecordShape shape_;
};

}  // namespace

std::unique_ptr<ColumnLoader> ParquetLoader(ParquetSource source) {
  return std::make_unique<ParquetLoaderImpl>(std::move(source));
}

std::shared_ptr<const RecordFormat> ParquetPlaces(std::shared_ptr<const ParquetStretches> stretches,
                                                  uint32_t file) {
  return std::make_shared<Places>(std::move(stretches), file);
}

}  // namespace penstock
