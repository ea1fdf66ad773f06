#include "server/engine/read/arrow_batches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

using Kind = ArrowLevel::Kind;

constexpr uint64_t kMaxRows = uint64_t{1} << 62;
// Over all sets of dictionaries: one whose parts come by and by is in many of them.
constexpr uint64_t kMaxDictionaryParts = uint64_t{1} << 22;
// In front of compressed bytes: how many there were.
constexpr uint64_t kPlainSizeBytes = 8;

absl::Status Unsound(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the metadata of a record batch is not sound: ", what));
}

// What `count` values need; absent where that is more than there can be.
std::optional<uint64_t> BytesOf(uint64_t count, uint64_t each) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) return std::nullopt;
  return bytes;
}

// Finds one column's places in one batch after another.
class PlaceReader {
 public:
  PlaceReader(const ArrowBatch& batch, const ArrowCounts& counts) : batch_(batch) {
    uint64_t further = 0;
    sums_.push_back(0);
    for (const uint64_t buffers : batch.further_buffers) sums_.push_back(further += buffers);
    is_whole_ = batch.nodes.size() == counts.nodes &&
                batch.further_buffers.size() == counts.views &&
                batch.buffers.size() == counts.buffers + further;
  }

  absl::Status CheckWhole(const ArrowCounts& counts) const {
    if (is_whole_) return absl::OkStatus();
    return Unsound(absl::StrCat("expected ", counts.nodes, " columns and ", counts.buffers,
                                " buffers, as the schema has, found ", batch_.nodes.size(), " and ",
                                batch_.buffers.size()));
  }

  // `least`: how many elements there have to be.
  absl::Status Read(const ArrowLevel& level, uint64_t least, bool exactly,
                    ArrowBatches::Place* place) const {
    if (level.node >= batch_.nodes.size())
      return Unsound(absl::StrCat("column ", level.node, " is not there"));
    const ArrowBatch::Node& node = batch_.nodes[level.node];
    place->length = node.length;
    if (node.length < least || (exactly && node.length != least)) {
      return Unsound(
          absl::StrCat("column ", level.node, " has ", node.length, " values; expected ", least));
    }
    absl::Status status;
    if (node.nulls > 0)
      status = ReadPart(level, 0, BitmapBytes(node.length), ArrowPart::kBitmap, place);
    if (!status.ok() || node.length == 0) return status;
    switch (level.kind) {
      case Kind::kStruct:
      case Kind::kFixedList:
        return status;
      case Kind::kList:
      case Kind::kTexts:
        status =
            ReadPart(level, 1,
                     node.length == UINT64_MAX ? std::nullopt
                                               : BytesOf(node.length + 1, level.is_wide ? 8 : 4),
                     ArrowPart::kOffsets, place);
        if (!status.ok() || level.kind == Kind::kList) return status;
        // How many there are the offsets tell.
        return ReadPart(level, 2, 0, ArrowPart::kValues, place);
      case Kind::kBools:
        return ReadPart(level, 1, BitmapBytes(node.length), ArrowPart::kValues, place);
      case Kind::kNumbers:
      case Kind::kFixedTexts:
      case Kind::kPlaces:
        return ReadPart(level, 1, BytesOf(node.length, level.size), ArrowPart::kValues, place);
    }
    return status;
  }

 private:
  absl::Status ReadPart(const ArrowLevel& level, uint32_t number, std::optional<uint64_t> least,
                        ArrowPart part, ArrowBatches::Place* place) const {
    const uint64_t views = level.views_before < sums_.size() ? sums_[level.views_before] : 0;
    const uint64_t buffer = level.buffer + number + views;
    if (buffer >= batch_.buffers.size())
      return Unsound(absl::StrCat("buffer ", buffer, " is not there"));
    const ArrowExtent& extent = batch_.buffers[buffer];
    bool is_short = !least || extent.bytes < *least;
    // A compressed one says itself how much it holds; more than there can be, none does.
    if (least && batch_.codec != ArrowCodec::kNone)
      is_short = extent.bytes == 0 ? *least != 0 : extent.bytes < kPlainSizeBytes;
    if (is_short) {
      return Unsound(absl::StrCat("buffer ", buffer, " has ", extent.bytes, " bytes, too few for ",
                                  place->length, " values"));
    }
    place->parts[static_cast<size_t>(part)] = extent;
    return absl::OkStatus();
  }

  const ArrowBatch& batch_;
  std::vector<uint64_t> sums_;  // of further buffers, in front of each view
  bool is_whole_ = false;
};

}  // namespace

// Takes the batches of one file.
class ArrowBatches::FileBuilder {
 public:
  FileBuilder(ArrowBatches& all, const ArrowFile& file, absl::Span<const ArrowColumn> columns)
      : all_(all),
        columns_(columns),
        counts_(CountArrowParts(file.schema())),
        has_footer_(file.has_footer()),
        file_(all.num_files()),
        first_row_(all.num_rows()) {}

  absl::Status Take(const ArrowBatch& batch) {
    // All of a batch or nothing.
    const size_t num_places = all_.places_.size();
    absl::Status status;
    if (batch.dictionary) {
      status = TakeDictionary(batch);
    } else {
      status = TakeRows(batch);
      ++number_;
    }
    if (!status.ok()) all_.places_.resize(num_places);
    return status;
  }

 private:
  absl::Status MakeRoom(size_t places) const {
    if (all_.places_.size() + places <= kMaxArrowPlaces) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("more record batches than can be kept track of, the ", all_.batches_.size(),
                     "th among them, each with ", places, " levels of columns; expected at most ",
                     kMaxArrowPlaces, " in all: write larger batches, or ask for fewer columns"));
  }

  absl::Status TakeRows(const ArrowBatch& batch) {
    const PlaceReader reader(batch, counts_);
    if (absl::Status status = reader.CheckWhole(counts_); !status.ok()) return status;
    if (batch.rows >= kMaxRows - all_.num_rows()) return Unsound(absl::StrCat(batch.rows, " rows"));
    size_t levels = 0;
    for (const ArrowColumn& column : columns_) levels += column.levels.size();
    if (absl::Status status = MakeRoom(levels); !status.ok()) return status;
    Batch taken;
    taken.first_place = all_.places_.size();
    for (const ArrowColumn& column : columns_) {
      uint64_t least = batch.rows;
      bool exactly = true;
      for (const ArrowLevel& level : column.levels) {
        Place& place = all_.places_.emplace_back();
        if (absl::Status status = reader.Read(level, least, exactly, &place); !status.ok())
          return status;
        exactly = false;
        least = level.kind == Kind::kList ? 0 : place.length;
        if (level.kind == Kind::kFixedList) {
          const std::optional<uint64_t> elements = BytesOf(place.length, level.size);
          if (!elements) return Unsound(absl::StrCat(place.length, " lists of ", level.size));
          least = *elements;
        }
      }
    }
    if (absl::Status status = UseDictionaries(); !status.ok()) return status;
    taken.first_row = all_.num_rows();
    taken.first_row_of_file = taken.first_row - first_row_;
    taken.rows = batch.rows;
    taken.offset = batch.offset;
    taken.dictionaries = set_;
    taken.file = file_;
    taken.number = number_;
    taken.codec = batch.codec;
    all_.batches_.push_back(taken);
    all_.ends_.push_back(taken.first_row + taken.rows);
    return absl::OkStatus();
  }

  absl::Status TakeDictionary(const ArrowBatch& batch) {
    const ArrowColumn* wanted = nullptr;
    for (const ArrowColumn& column : columns_) {
      if (column.dictionary != batch.dictionary) continue;
      // What is checked here of a part holds for every column that looks at it.
      if (wanted != nullptr && !wanted->values.IsLike(column.values)) {
        return Unsound(absl::StrCat("dictionary ", *batch.dictionary, " is one of ",
                                    wanted->type_name, " and of ", column.type_name));
      }
      wanted = &column;
    }
    if (wanted == nullptr) return absl::OkStatus();
    if (absl::Status status = MakeRoom(1); !status.ok()) return status;
    Batch part;
    part.first_place = all_.places_.size();
    Place& place = all_.places_.emplace_back();
    const PlaceReader reader(batch, {});
    absl::Status status = reader.Read(wanted->values, batch.rows, /*exactly=*/true, &place);
    if (!status.ok()) return status;
    Dictionary& dictionary = now_[*batch.dictionary];
    if (!batch.is_delta && !dictionary.parts.empty()) {
      if (has_footer_)
        return Unsound(absl::StrCat("dictionary ", *batch.dictionary, " comes twice in a file"));
      dictionary = {};
    }
    if (batch.rows >= kMaxRows - dictionary.size())
      return Unsound(absl::StrCat(batch.rows, " values"));
    part.rows = batch.rows;
    part.offset = batch.offset;
    part.file = file_;
    part.number = number_;
    part.codec = batch.codec;
    dictionary.parts.push_back(static_cast<uint32_t>(all_.parts_.size()));
    dictionary.ends.push_back(dictionary.size() + batch.rows);
    all_.parts_.push_back(part);
    has_changed_ = true;
    return absl::OkStatus();
  }

  // The dictionaries that the stream has brought by now hold for the next batch.
  absl::Status UseDictionaries() {
    if (!has_changed_) return absl::OkStatus();
    const uint64_t set = all_.dictionaries_.size();
    for (const ArrowColumn& column : columns_) {
      Dictionary& dictionary = all_.dictionaries_.emplace_back();
      if (!column.dictionary) continue;
      const auto found = now_.find(*column.dictionary);
      if (found != now_.end()) dictionary = found->second;
      all_.dictionary_parts_ += dictionary.parts.size();
      if (all_.dictionary_parts_ > kMaxDictionaryParts) {
        return absl::InvalidArgumentError(
            absl::StrCat("dictionaries in more than ", kMaxDictionaryParts,
                         " parts, counted for each batch that they change in front of; write them "
                         "whole"));
      }
    }
    set_ = set;
    has_changed_ = false;
    return absl::OkStatus();
  }

  ArrowBatches& all_;
  const absl::Span<const ArrowColumn> columns_;
  const ArrowCounts counts_;
  const bool has_footer_;
  const uint32_t file_;
  const uint64_t first_row_;
  uint32_t number_ = 0;
  std::map<int64_t, Dictionary> now_;
  uint64_t set_ = 0;
  bool has_changed_ = true;  // no set is this file's yet
};

absl::Status ArrowBatches::AddFile(ArrowFile& file, absl::Span<const ArrowColumn> columns,
                                   std::vector<Damage>* damage) {
  if (file_ends_.empty()) {
    size_t level = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      first_levels_[i] = level;
      level += columns[i].levels.size();
    }
  }
  FileBuilder builder(*this, file, columns);
  absl::Status status = file.ForEachBatch(
      [&builder](const ArrowBatch& batch) { return builder.Take(batch); }, damage);
  file_ends_.push_back(num_rows());
  return status;
}

uint32_t ArrowBatches::BatchOf(uint64_t row) const {
  // The first batch that ends behind it. Without branches, as any guess would be wrong half of the
  // time.
  const uint64_t* end = ends_.data();
  for (size_t left = ends_.size(); left > 1;) {
    const size_t half = left / 2;
    end += half & -static_cast<size_t>(end[half - 1] <= row);
    left -= half;
  }
  return static_cast<uint32_t>(end - ends_.data());
}

}  // namespace penstock
