#include "server/engine/keep/file_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file_error.h"
#include "base/on_behalf.h"
#include "base/pending_call.h"
#include "base/random.h"
#include "base/release.h"
#include "base/shown_url.h"
#include "io/file/crc32c.h"
#include "io/record/index_file.h"
#include "server/engine/spec/constant_file.h"
#include "server/engine/spec/descriptor_path.h"
#include "server/engine/spec/deterministic_bytes.h"
#include "server/engine/spec/python_functions.h"

namespace penstock {
namespace {

// Two hashes of the same values, in which their order counts.
class KeyHash {
 public:
  void Add(std::string_view bytes) {
    for (uint64_t& half : halves_) half = MixKey(half + bytes.size(), bytes);
  }
  void Add(uint64_t number) {
    Add(std::string_view(reinterpret_cast<const char*>(&number), sizeof(number)));
  }
  ElementKey value() const {
    ElementKey key;
    std::memcpy(key.data(), halves_, sizeof(halves_));
    return key;
  }

 private:
  uint64_t halves_[2] = {0x70656e73746f636b, 0x656c656d656e7473};
};

// All that the file of a descriptor holds, since nothing else tells it from another one.
absl::Status AddContent(RandomAccessFile& file, KeyHash* hash) {
  std::vector<uint8_t> piece(64 << 10);
  for (uint64_t offset = 0; offset < file.size(); offset += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), file.size() - offset));
    const absl::StatusOr<size_t> read = file.ReadAt(offset, absl::MakeSpan(piece));
    if (!read.ok()) return read.status();
    hash->Add(Crc32c(piece.data(), *read));
  }
  return absl::OkStatus();
}

absl::Status AddEnds(RandomAccessFile& file, KeyHash* hash) {
  const absl::StatusOr<IndexStamp> stamp = StampOf(file);
  if (!stamp.ok()) return stamp.status();
  hash->Add(stamp->first_crc);
  hash->Add(stamp->last_crc);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FileCache>> FileCache::Create(const std::string& folder,
                                                                   const std::string& name,
                                                                   uint64_t bytes_max,
                                                                   bool compressed, bool sharded,
                                                                   PlanBuilder& plan) {
  const bool is_far = IsAddress(folder);
  if (is_far && name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a folder of this machine, found an address: a cache goes on where it was, which "
        "an object cannot; `save` writes to addresses, and remote { cache_folder } keeps what was "
        "fetched (",
        ShownUrl(folder), ")"));
  }
  Disk* const disk = plan.files().disk();
  if (disk == nullptr) {
    return absl::PermissionDeniedError(
        absl::StrCat("the daemon may keep nothing in files: its configuration has data_roots but "
                     "no cache { roots }; found ",
                     folder));
  }
  std::shared_ptr<FileCache> cache(new FileCache(*disk, plan.files()));
  cache->folder_ = folder;
  while (absl::EndsWith(cache->folder_, "/") && cache->folder_.size() > 1)
    cache->folder_.pop_back();
  if (absl::Status status = disk->CheckFolder(cache->folder_); !status.ok()) return status;
  cache->name_ = name;
  cache->is_far_ = is_far;
  cache->bytes_max_ = bytes_max;
  PlanBuilder::Upstream before = plan.upstream();
  cache->first_file_ = before.first_file;
  cache->manifest_ = std::move(before.files);
  for (const v1::Stage* stage : before.stages) {
    v1::Stage content = *stage;
    StripConstantFiles(&content);
    StripDescriptorPaths(&content);
    const std::string bytes = DeterministicBytes(content);
    absl::StrAppend(&cache->stages_, bytes.size(), ":", bytes);
  }
  cache->stages_.append(before.meanings);
  // What another user's function gives is his word alone, the function's hash too: only he goes on
  // from it.
  PythonFunctions functions;
  for (const v1::Stage* stage : before.stages) AddPythonFunctions(*stage, &functions);
  const std::optional<uid_t> user = OnBehalf::User();
  if (!functions.empty() && user && *user != geteuid())
    absl::StrAppend(&cache->stages_, "functions of user ", *user, ";");
  // Elements that fail are in none that is made in front of an ignore_errors.
  if (plan.ignored()) cache->stages_.append("ignored");
  cache->schema_ = {plan.signature(), plan.structure(), compressed, sharded};
  return cache;
}

absl::StatusOr<FileCache::Keys> FileCache::KeysOf() const {
  // Shown for those who wait for another one's reads.
  const PendingCall call("opening", folder_);
  once_.Call([this] { keys_ = MakeKeys(); });
  return keys_;
}

absl::StatusOr<FileCache::Keys> FileCache::MakeKeys() const {
  KeyHash hash, versions;
  hash.Add(std::string_view(kRelease));
  hash.Add(kElementFileVersion);
  hash.Add(stages_);
  hash.Add(SchemaToText(schema_));
  hash.Add(bytes_max_);
  // Random functions know elements by the numbers of their files.
  hash.Add(first_file_);
  for (const FileEntry& entry : manifest_) {
    const bool is_descriptor = IsDescriptorPath(entry.path);
    // Paths may be values of elements.
    hash.Add(is_descriptor ? std::string_view("") : entry.path);
    if (entry.path.empty()) continue;
    hash.Add(entry.size_bytes);
    if (!is_descriptor) {
      const FileVersion& version = entry.version;
      hash.Add(static_cast<uint64_t>(version.modified_ns));
      for (const uint64_t part :
           {version.object, version.holder, static_cast<uint64_t>(version.changed_ns)})
        versions.Add(part);
    }
    const absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files_.Open(entry.path);
    if (!file.ok()) return file.status();
    const absl::Status added = is_descriptor ? AddContent(**file, &hash) : AddEnds(**file, &hash);
    if (!added.ok()) return added;
  }
  versions.Add(std::string_view(reinterpret_cast<const char*>(hash.value().data()), 16));
  return Keys{hash.value(), versions.value()};
}

absl::StatusOr<std::string> FileCache::Stem() const {
  if (!name_.empty()) return name_;
  const absl::StatusOr<Keys> keys = KeysOf();
  if (!keys.ok()) return keys.status();
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(keys->name.data()), keys->name.size()));
}

absl::StatusOr<std::string> FileCache::Path(uint64_t first) const {
  const absl::StatusOr<std::string> stem = Stem();
  if (!stem.ok()) return stem.status();
  if (first == 0) return absl::StrCat(folder_, "/", *stem, kElementFileSuffix);
  return absl::StrCat(folder_, "/", *stem, "-", first, kElementFileSuffix);
}

absl::StatusOr<std::shared_ptr<const ElementFile>> FileCache::Open(uint64_t first) const {
  const absl::StatusOr<std::string> path = Path(first);
  if (!path.ok()) return path.status();
  absl::StatusOr<std::shared_ptr<const ElementFile>> file = ElementFile::Map(*path);
  if (!file.ok() && !absl::IsDataLoss(file.status())) return file;
  const absl::StatusOr<Keys> keys = KeysOf();
  if (!keys.ok()) return keys.status();
  // Without an element and an end it says nothing, and what goes on behind it would be itself.
  const bool is_current = file.ok() && (*file)->key() == keys->content;
  bool fits = is_current && (*file)->first() == first &&
              ((*file)->size() > 0 || (*file)->whole()) &&
              (*file)->schema().signature == schema_.signature &&
              (*file)->schema().structure == schema_.structure;
  // The files that elements came from are looked up by these numbers.
  for (uint64_t i = 0; fits && !schema_.sharded && i < (*file)->size(); ++i)
    fits = (*file)->element(i).file < manifest_.size();
  if (fits) return file;
  // No writer leaves such a file under this name: whatever has happened to it, it is of no use.
  disk_.Remove(*path).IgnoreError();
  if (!file.ok()) return file.status();
  if (!is_current) {
    return absl::FailedPreconditionError(
        absl::StrCat("what was kept is removed and computed anew: a file before the stage has "
                     "other contents, or was copied, moved, linked or given "
                     "other permissions since (its inode, ctime or file system differs): ",
                     *path));
  }
  return absl::DataLossError(absl::StrCat("the file of elements is another one's: ", *path));
}

absl::StatusOr<std::unique_ptr<ElementFileWriter>> FileCache::Write(uint64_t first,
                                                                    uint64_t earlier_bytes) const {
  const absl::StatusOr<std::string> path = Path(first);
  if (!path.ok()) return path.status();
  const absl::StatusOr<Keys> keys = KeysOf();
  if (!keys.ok()) return keys.status();
  if (absl::Status status = disk_.MakeFolder(folder_); !status.ok()) return status;
  if (Room(earlier_bytes, 0) == 0) return absl::ResourceExhaustedError("there is no room for it");
  return ElementFileWriter::Create(disk_, *path, keys->content, schema_, first);
}

void FileCache::RemoveBehind(uint64_t first) const {
  const absl::StatusOr<std::string> stem = Stem();
  const auto entries = disk_.List(folder_);
  if (!stem.ok() || !entries.ok()) return;
  for (const FolderEntry& entry : *entries) {
    absl::string_view name = entry.name;
    uint64_t other = 0;
    if (absl::ConsumePrefix(&name, *stem) && absl::ConsumePrefix(&name, "-") &&
        absl::ConsumeSuffix(&name, kElementFileSuffix) && absl::SimpleAtoi(name, &other) &&
        other > first)
      disk_.Remove(absl::StrCat(folder_, "/", entry.name)).IgnoreError();
  }
}

void FileCache::Remove(const ElementFile& file) const {
  const absl::StatusOr<std::string> path = Path(file.first());
  if (!path.ok()) return;
  const absl::StatusOr<std::unique_ptr<MappedFile>> now = MappedFile::Map(*path);
  if (now.ok() && (*now)->version().object == file.version().object)
    disk_.Remove(*path).IgnoreError();
}

uint64_t FileCache::Room(uint64_t earlier_bytes, uint64_t own_bytes) const {
  uint64_t room = bytes_max_ - std::min(bytes_max_, earlier_bytes);
  if (earlier_bytes > 0) {
    const uint64_t free_bytes = disk_.FreeBytes(folder_);
    room = std::min(room, free_bytes + std::min(own_bytes, UINT64_MAX - free_bytes));
  }
  const uint64_t folder_max = disk_.folder_bytes_max();
  if (folder_max == UINT64_MAX) return room;
  uint64_t others = 0;
  if (const auto entries = disk_.List(folder_); entries.ok()) {
    for (const FolderEntry& entry : *entries) others += entry.bytes;
  }
  others -= std::min(others, own_bytes);
  return std::min(room, folder_max - std::min(folder_max, others));
}

}  // namespace penstock
