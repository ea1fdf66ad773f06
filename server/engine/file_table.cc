#include "server/engine/file_table.h"

#include "absl/strings/str_cat.h"

namespace penstock {

FileTable::FileTable(FileSystem& files, const Manifest& manifest)
    : files_(files), manifest_(manifest), open_(manifest.size()) {}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> FileTable::Open(uint32_t file) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (open_[file]) return open_[file];
  }
  const FileEntry& entry = manifest_[file];
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> handle = files_.Open(entry.path);
  if (!handle.ok()) return handle.status();
  if ((*handle)->size() != entry.size_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the file changed since the pipeline was created: ", entry.size_bytes,
                     " bytes then, ", (*handle)->size(), " now (", entry.path, ")"));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (!open_[file] && num_open_ < kMaxOpenFiles) {
    open_[file] = *handle;
    ++num_open_;
  }
  return *std::move(handle);
}

}  // namespace penstock
