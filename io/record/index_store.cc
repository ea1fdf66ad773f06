#include "io/record/index_store.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file_error.h"

namespace penstock {
namespace {

constexpr char kPartSuffix[] = ".part";

std::string AbsolutePath(const std::string& path) {
  if (IsAddress(path)) return path;
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal().string();
}

size_t BeginOfName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? 0 : slash + 1;
}

}  // namespace

std::string IndexPathBeside(const std::string& data_path) {
  const size_t name = BeginOfName(data_path);
  return absl::StrCat(data_path.substr(0, name), ".", data_path.substr(name), kIndexSuffix);
}

std::string IndexPathOfOldBeside(const std::string& data_path) {
  return absl::StrCat(data_path, kIndexSuffix);
}

std::string IndexPathIn(const std::string& own_folder, const std::string& data_path) {
  // FNV-1a (Fowler, Noll, Vo): the name must stay the same from run to run. Two files that share
  // one take turns in rebuilding, no more.
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : AbsolutePath(data_path))
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  return absl::StrCat(own_folder, "/", absl::StrFormat("%016x", hash), kIndexSuffix);
}

FolderIndexStore::FolderIndexStore(FileSystem& files, std::string own_folder)
    : files_(files), own_folder_(std::move(own_folder)) {}

std::vector<std::string> FolderIndexStore::PlacesToRead(const std::string& data_path) const {
  std::vector<std::string> places = {IndexPathBeside(data_path)};
  // What is not there costs a request.
  if (!IsAddress(data_path)) places.push_back(IndexPathOfOldBeside(data_path));
  if (!own_folder_.empty()) places.push_back(IndexPathIn(own_folder_, data_path));
  return places;
}

std::vector<std::string> FolderIndexStore::PlacesToWrite(const std::string& data_path) const {
  std::vector<std::string> places;
  // Nothing is written to object stores.
  if (!IsAddress(data_path)) places.push_back(IndexPathBeside(data_path));
  if (!own_folder_.empty()) places.push_back(IndexPathIn(own_folder_, data_path));
  return places;
}

bool FolderIndexStore::IsOwn(const std::string& place) const {
  return !own_folder_.empty() && BeginOfName(place) == own_folder_.size() + 1 &&
         absl::StartsWith(place, own_folder_);
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> FolderIndexStore::Open(const std::string& place) {
  return (IsOwn(place) ? LocalFileSystem() : files_).Open(place);
}

absl::Status FolderIndexStore::Write(const std::string& place, Writing write) {
  Disk* const disk = IsOwn(place) ? &LocalDisk() : files_.disk();
  if (disk == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat(
        "nothing is written beside the data: the daemon has data_roots but no cache { roots } (",
        place, ")"));
  }
  const std::string path = AbsolutePath(place);
  const std::string folder = path.substr(0, BeginOfName(path) - 1);
  absl::Status status =
      IsOwn(place) ? disk->MakeFolder(folder) : disk->CheckFolder(folder.empty() ? "/" : folder);
  if (!status.ok()) return status;
  const std::string part = absl::StrCat(path, kPartSuffix);
  absl::StatusOr<std::unique_ptr<WrittenFile>> file = disk->Create(part);
  if (!file.ok()) return file.status();
  status = write(**file);
  if (status.ok()) status = (*file)->Sync();
  // While its lock is held nobody else gets to the file of this name.
  if (status.ok()) status = disk->Publish(part, path);
  if (!status.ok()) disk->Remove(part).IgnoreError();
  return status;
}

}  // namespace penstock
