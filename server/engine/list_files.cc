#include "server/engine/list_files.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

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
  for (const std::string& pattern : patterns) {
    absl::StatusOr<std::vector<std::string>> paths = files.Glob(pattern);
    if (!paths.ok()) return paths.status();
    for (const std::string& path : *paths) {
      absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(path);
      if (!file.ok()) return file.status();
      manifest.push_back(EntryOf(**file));
    }
  }
  std::sort(manifest.begin(), manifest.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
  return manifest;
}

}  // namespace penstock
