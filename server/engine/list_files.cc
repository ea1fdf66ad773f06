#include "server/engine/list_files.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace penstock {

absl::StatusOr<FileEntry> DescribeFile(const std::string& path, FileSystem& files) {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(path);
  if (!file.ok()) return file.status();
  FileEntry entry;
  entry.path = path;
  entry.size_bytes = (*file)->size();
  entry.identity = (*file)->identity();
  return entry;
}

absl::StatusOr<Manifest> ListFiles(
    const google::protobuf::RepeatedPtrField<std::string>& patterns, FileSystem& files) {
  if (patterns.empty())
    return absl::InvalidArgumentError("files: expected at least one path or glob, found none");
  Manifest manifest;
  for (const std::string& pattern : patterns) {
    absl::StatusOr<std::vector<std::string>> paths = files.Glob(pattern);
    if (!paths.ok()) return paths.status();
    for (const std::string& path : *paths) {
      absl::StatusOr<FileEntry> entry = DescribeFile(path, files);
      if (!entry.ok()) return entry.status();
      manifest.push_back(*std::move(entry));
    }
  }
  std::sort(manifest.begin(), manifest.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
  return manifest;
}

}  // namespace penstock
