#include "server/engine/list_files.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/base/local_file.h"

namespace penstock {

FileEntry EntryOf(const RandomAccessFile& file) {
  FileEntry entry;
  entry.path = file.path();
  entry.size_bytes = file.size();
  entry.identity = file.identity();
  return entry;
}

namespace {

// Adds the entries of files to a manifest, by the shortest way there is.
class EntryReader {
 public:
  explicit EntryReader(FileSystem& files) : files_(files), is_local_(IsLocalFileSystem(files)) {}

  absl::Status Add(std::string path, Manifest* manifest) {
    if (is_local_) {
      absl::StatusOr<LocalFileLook::Facts> facts = look_.At(path);
      if (!facts.ok()) return facts.status();
      FileEntry entry;
      entry.path = std::move(path);
      entry.size_bytes = facts->size_bytes;
      entry.identity = facts->identity;
      manifest->push_back(std::move(entry));
      return absl::OkStatus();
    }
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files_.Open(path);
    if (!file.ok()) return file.status();
    manifest->push_back(EntryOf(**file));
    return absl::OkStatus();
  }

 private:
  FileSystem& files_;
  const bool is_local_;
  LocalFileLook look_;
};

absl::Status CheckNamesAny(const google::protobuf::RepeatedPtrField<std::string>& paths) {
  if (!paths.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("files: expected at least one path or glob, found none");
}

}  // namespace

absl::StatusOr<Manifest> ListFiles(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                                   FileSystem& files) {
  if (absl::Status status = CheckNamesAny(patterns); !status.ok()) return status;
  Manifest manifest;
  EntryReader reader(files);
  for (const std::string& pattern : patterns) {
    absl::StatusOr<std::vector<std::string>> paths = files.Glob(pattern);
    if (!paths.ok()) return paths.status();
    for (std::string& path : *paths) {
      if (absl::Status status = reader.Add(std::move(path), &manifest); !status.ok()) return status;
    }
  }
  const auto less = [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; };
  if (!std::is_sorted(manifest.begin(), manifest.end(), less))
    std::sort(manifest.begin(), manifest.end(), less);
  return manifest;
}

}  // namespace penstock
