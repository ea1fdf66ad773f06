#include "server/engine/read/parquet_decoded.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "io/file/damage.h"

namespace penstock {

using Stretch = ParquetStretches::Stretch;

std::shared_ptr<const ParquetDecoded::Held> ParquetDecoded::Get(uint32_t number, FileTable& files,
                                                                Arena& scratch) const {
  const Stretch& stretch = stretches_.stretches()[number];
  return rows_.Get(
      number,
      [&](Rows* rows) {
        rows->columns.reserve(fills_.size());
        for (size_t feature = 0; feature < fills_.size(); ++feature) {
          Column column;
          absl::Status status = Decode(stretch, feature, files, scratch, &column.values);
          const bool is_damage = absl::IsDataLoss(status) && !IsFileShrunk(status);
          if (!status.ok() && !is_damage && !absl::IsUnimplemented(status)) return status;
          column.damage = std::move(status);
          rows->columns.push_back(std::move(column));
        }
        return absl::OkStatus();
      },
      [](const Rows& rows) { return rows.bytes(); });
}

absl::Status ParquetDecoded::Decode(const Stretch& stretch, size_t feature, FileTable& files,
                                    Arena& scratch, ParquetValues* values) const {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(first_file_ + stretch.file);
  if (!file.ok()) return file.status();
  const ParquetChunk& chunk = stretches_.chunk(stretch, feature);
  ParquetInput input{file->get(), nullptr};
  if (chunk.codec == ParquetCodec::kUncompressed) {
    // What is compressed is read once, and would be copied by nobody.
    Mapping& mapping = maps_[stretch.file];
    mapping.once.Call([&] { mapping.map = files.Map(first_file_ + stretch.file); });
    if (mapping.map != nullptr) input.map = mapping.map->bytes();
  }
  const auto held = chunks_.Get(
      stretch.group * fills_.size() + feature,
      [&](Chunk* made) { return ReadChunk(stretch, feature, input, scratch, made); },
      [](const Chunk& made) {
        return made.pages.bytes() + (made.dictionary == nullptr ? 0 : made.dictionary->bytes());
      });
  if (!held->status.ok()) return held->status;
  absl::StatusOr<ParquetValues> found = ReadParquetValues(
      input, stretches_.column(stretch, feature), chunk.codec, held->value.pages,
      held->value.dictionary, stretch.first_row_of_group, stretch.rows, fills_[feature], scratch);
  if (!found.ok()) return found.status();
  *values = *std::move(found);
  return absl::OkStatus();
}

absl::Status ParquetDecoded::ReadChunk(const Stretch& stretch, size_t feature,
                                       const ParquetInput& input, Arena& scratch,
                                       Chunk* made) const {
  const ParquetChunk& chunk = stretches_.chunk(stretch, feature);
  absl::StatusOr<ParquetPages> pages = ReadParquetPages(*input.file, chunk);
  if (!pages.ok()) return pages.status();
  if (pages->dictionary) {
    absl::StatusOr<std::shared_ptr<const ParquetDictionary>> dictionary = ReadParquetDictionary(
        input, stretches_.column(stretch, feature), chunk.codec, *pages, scratch);
    if (!dictionary.ok()) return dictionary.status();
    made->dictionary = *std::move(dictionary);
  }
  made->pages = *std::move(pages);
  return absl::OkStatus();
}

absl::Status ParquetDecoded::CheckMap(uint32_t file) const {
  const Mapping& mapping = maps_[file];
  if (!mapping.once.is_done() || mapping.map == nullptr || !mapping.map->torn())
    return absl::OkStatus();
  return FileShrunkError(
      absl::StrCat("the file lost bytes while it was mapped (", mapping.map->path(), ")"));
}

}  // namespace penstock
