#include "server/engine/read/document_counts.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/cache_folder.h"

namespace penstock {

std::string RemedyOfCounts() {
  return "make another one by `penstock index --tokens SPEC`, or delete it, and create the "
         "pipeline "
         "anew";
}

absl::Status DocumentCounts::Stale(const std::string& path, const std::string& why) const {
  return absl::FailedPreconditionError(
      absl::StrCat("the index of tokens that the pipeline was made "
                   "with does not hold any more: ",
                   why, "; ", RemedyOfCounts(), " (", path, ")"));
}

absl::Status DocumentCounts::Load(FileTable& files) {
  {
    std::lock_guard<std::mutex> lock(loading_);
    if (loaded_) return absl::OkStatus();
  }
  FolderIndexStore store(system_, CacheFolder("index"));
  std::vector<std::shared_ptr<const TokenCounts>> counts;
  for (uint32_t i = 0; i < files_.count; ++i) {
    const uint32_t file = files_.first + i;
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> data = files.Open(file);
    if (!data.ok()) return data.status();
    absl::StatusOr<std::shared_ptr<const TokenCounts>> of_file =
        LoadTokenCounts(**data, key_, store);
    if (!of_file.ok()) {
      return Stale(files.manifest()[file].path, std::string(of_file.status().message()));
    }
    counts.push_back(*std::move(of_file));
  }
  std::lock_guard<std::mutex> lock(loading_);
  // Another stream of the plan may have been first, and uses its own already.
  if (!loaded_) counts_ = std::move(counts);
  loaded_ = true;
  return absl::OkStatus();
}

bool DocumentCounts::Open(FileTable& files, Errands* errands, int stage, absl::Status* status) {
  uint32_t first = 0;
  {
    std::lock_guard<std::mutex> lock(loading_);
    first = static_cast<uint32_t>(indices_.size());
  }
  // Those behind the first one that is still coming are asked for with it, so that they come together.
  uint32_t end = files_.count;
  bool waits = false;
  for (uint32_t i = first; i < end; ++i) {
    const uint32_t file = files_.first + i;
    // It may read, so that nobody else waits for it.
    std::optional<FileTable::IndexOrError> index = files.AskIndex(file, on_damage_, errands, stage);
    if (!index && !waits) end = std::min(end, i + kAskedTogether);
    waits = waits || !index;
    if (waits) continue;
    if (!index->ok()) {
      *status = index->status();
      return false;
    }
    if ((**index)->size() != counts_[i]->size()) {
      *status = Stale(files.manifest()[file].path,
                      absl::StrCat("it is of ", counts_[i]->size(), " records, and the file has ",
                                   (**index)->size()));
      return false;
    }
    std::lock_guard<std::mutex> lock(loading_);
    // Another stream of the plan may have been first, and uses its own already.
    if (indices_.size() == i) indices_.push_back(**std::move(index));
  }
  return !waits;
}

absl::StatusOr<uint32_t> DocumentCounts::Find(uint32_t file, uint64_t offset,
                                              const FileTable& files, Hint* hint) const {
  const uint32_t i = file - files_.first;
  const RecordIndex& index = *indices_[i];
  uint64_t ordinal = hint->file == file ? hint->next : 0;
  if (ordinal >= index.size() || index.offset(ordinal) != offset)
    ordinal = index.offsets().FirstFrom(offset);
  if (ordinal >= index.size() || index.offset(ordinal) != offset) {
    return Stale(files.manifest()[file].path,
                 absl::StrCat("the file has a record at offset ", offset, " that is in no index"));
  }
  *hint = {file, ordinal + 1};
  return (*counts_[i])[ordinal];
}

}  // namespace penstock
