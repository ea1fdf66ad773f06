#include "server/engine/read/list_files.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/local_file.h"

namespace penstock {

FileEntry EntryOf(const RandomAccessFile& file) {
  FileEntry entry;
  entry.path = file.path();
  entry.size_bytes = file.size();
  entry.identity = file.identity();
  return entry;
}

absl::StatusOr<Manifest> ListFiles(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                                   FileSystem& files) {
  if (patterns.empty())
    return absl::InvalidArgumentError("files: expected at least one path or glob, found none");
  Manifest manifest;
  const bool is_local = IsLocalFileSystem(files);
  LocalFileLook look;
  for (const std::string& pattern : patterns) {
    // The system would take what stands before it for the path.
    if (const size_t zero = pattern.find('\0'); zero != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "files: expected a path or glob, found a zero byte at ", zero, " of ", pattern.size()));
    }
    absl::StatusOr<std::vector<std::string>> paths = files.Glob(pattern);
    if (!paths.ok()) return paths.status();
    for (std::string& path : *paths) {
      if (is_local) {
        absl::StatusOr<LocalFileLook::Facts> facts = look.At(path);
        if (!facts.ok()) return facts.status();
        FileEntry entry;
        entry.path = std::move(path);
        entry.size_bytes = facts->size_bytes;
        entry.identity = facts->identity;
        manifest.push_back(std::move(entry));
        continue;
      }
      absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(path);
      if (!file.ok()) return file.status();
      manifest.push_back(EntryOf(**file));
    }
  }
  const auto less = [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; };
  if (!std::is_sorted(manifest.begin(), manifest.end(), less))
    std::sort(manifest.begin(), manifest.end(), less);
  return manifest;
}

}  // namespace penstock
