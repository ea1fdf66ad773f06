#include "io/remote/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "io/file/crc32c.h"

namespace penstock {
namespace {

constexpr char kMagic[8] = {'P', 'E', 'N', 'S', 'T', 'K', 'R', 'C'};
constexpr char kSuffix[] = ".remote";
constexpr char kPartSuffix[] = ".part";
constexpr uint32_t kFormat = 1;
constexpr uint64_t kPage = DiskCache::kPageBytes;
constexpr size_t kPieceBytes = size_t{256} << 10;
constexpr size_t kNameBytesMax = 16 << 10;
// When it was used last is written down this often.
constexpr int64_t kUsedS = 60;
constexpr int64_t kLookAgainS = 60;

struct Header {
  char magic[8];
  uint32_t format;
  uint32_t page_bytes;
  uint64_t size;
  uint32_t name_bytes;
  uint32_t crc;  // of what stands above, and of the name
};

uint64_t Pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage; }
uint64_t SumsAt(const std::string& name) { return Pages(sizeof(Header) + name.size()) * kPage; }
uint64_t BytesAt(const std::string& name, uint64_t size) {
  return SumsAt(name) + Pages(Pages(size) * sizeof(uint32_t)) * kPage;
}

std::string HeaderOf(const std::string& name, uint64_t size) {
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.format = kFormat;
  header.page_bytes = kPage;
  header.size = size;
  header.name_bytes = static_cast<uint32_t>(name.size());
  std::string text(reinterpret_cast<const char*>(&header), sizeof(header));
  text += name;
  header.crc = Crc32c(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  std::memcpy(text.data(), &header, sizeof(header));
  return text;
}

uint32_t SumOf(const uint8_t* page, size_t bytes) {
  const uint32_t crc = Crc32c(page, bytes);
  return crc == 0 ? 1 : crc;
}

bool ReadAll(int fd, void* to, size_t bytes, uint64_t offset) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(fd, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool WriteAll(int fd, const void* from, size_t bytes, uint64_t offset) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = pwrite(fd, at, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    offset += static_cast<uint64_t>(put);
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

CacheNeeds::Key KeyOf(const std::string& name) {
  // FNV-1a (Fowler, Noll, Vo). Two objects that share one take turns: the name stands in the file.
  CacheNeeds::Key hash = 0xcbf29ce484222325u;
  for (const char byte : name) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  return hash;
}
// Of a file of the folder, which has it as its name.
CacheNeeds::Key KeyIn(const std::string& path) {
  return strtoull(path.c_str() + path.rfind('/') + 1, nullptr, 16);
}

uint64_t TakenBy(const struct stat& status) {
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

absl::Status CheckFolder(const std::string& folder) {
  struct stat status;
  if (stat(folder.c_str(), &status) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot use the cache folder ", folder));
  if (!S_ISDIR(status.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("the cache folder is no folder: ", folder));
  // What lies there is given out as the objects' own bytes.
  if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("the cache folder must be the daemon's user's, and nobody else may write "
                     "there (chown, chmod go-w): ",
                     folder));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write in the cache folder ", folder));
  return absl::OkStatus();
}

}  // namespace

struct DiskCache::File {
  int fd = -1;
  uint64_t sums_at = 0;
  uint64_t bytes_at = 0;

  ~File() {
    if (fd >= 0) close(fd);
  }
  void Touch(int64_t now_s) const {
    const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(now_s), 0}};
    futimens(fd, times);
  }
  std::vector<uint32_t> Sums(uint64_t offset, uint64_t bytes) const {
    std::vector<uint32_t> sums(Pages(bytes));
    const uint64_t at = sums_at + offset / kPage * sizeof(uint32_t);
    if (!ReadAll(fd, sums.data(), sums.size() * sizeof(uint32_t), at)) sums.clear();
    return sums;
  }
};

absl::StatusOr<std::unique_ptr<DiskCache>> DiskCache::Open(const std::string& folder,
                                                           uint64_t bytes_max, Clock clock) {
  std::error_code failed;
  const bool is_new = std::filesystem::create_directories(folder, failed);
  if (failed) {
    return absl::ErrnoToStatus(failed.value(),
                               absl::StrCat("cannot make the cache folder ", folder));
  }
  if (is_new) chmod(folder.c_str(), S_IRWXU);
  if (absl::Status status = CheckFolder(folder); !status.ok()) return status;
  if (!clock) clock = [] { return absl::ToUnixSeconds(absl::Now()); };
  // With what it has already, so that it does not shrink with each start.
  std::unique_ptr<DiskCache> cache(new DiskCache(folder, UINT64_MAX, clock));
  cache->MakeRoom(0, /*is_ahead=*/false);
  if (bytes_max == 0) {
    struct statvfs disk;
    if (statvfs(folder.c_str(), &disk) != 0)
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot measure the disk of ", folder));
    bytes_max = (uint64_t{disk.f_bavail} * disk.f_frsize + cache->bytes()) / 2;
  }
  std::unique_ptr<DiskCache> made(new DiskCache(folder, bytes_max, std::move(clock)));
  made->bytes_ = cache->bytes();
  return made;
}

std::string DiskCache::PathOf(CacheNeeds::Key key) const {
  return absl::StrCat(folder_, "/", absl::StrFormat("%016x", key), kSuffix);
}
std::string DiskCache::PathOf(const std::string& name) const { return PathOf(KeyOf(name)); }

void DiskCache::Mark(const std::vector<CacheNeeds::Key>& keys, int64_t used_s) const {
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(used_s), 0}};
  // What is not here needs no mark.
  for (const CacheNeeds::Key key : keys)
    utimensat(AT_FDCWD, PathOf(key).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

std::shared_ptr<void> DiskCache::Need(std::shared_ptr<const void> reader,
                                      const std::vector<std::string>& names) {
  std::vector<CacheNeeds::Key> keys;
  keys.reserve(names.size());
  for (const std::string& name : names) keys.push_back(KeyOf(name));
  needs_.Need(reader.get(), keys, clock_());
  const auto end = [this, reader, keys = std::move(keys)](void*) {
    Mark(needs_.NoMore(reader.get(), keys), clock_() - kRestS);
    for (std::atomic<int64_t>& full_until_s : full_until_s_) full_until_s = 0;
  };
  return {static_cast<void*>(this), end};
}

void DiskCache::Passed(const std::string& name, const void* reader) {
  needs_.Passed(reader, KeyOf(name));
}

std::unique_ptr<DiskCache::File> DiskCache::OpenFile(const std::string& name, uint64_t size,
                                                     bool* is_other) const {
  auto file = std::make_unique<File>();
  file->fd = open(PathOf(name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file->fd < 0) return nullptr;
  const std::string expected = HeaderOf(name, size);
  std::string found(expected.size(), '\0');
  if (!ReadAll(file->fd, found.data(), found.size(), 0) || found != expected) {
    if (is_other != nullptr) *is_other = true;
    return nullptr;
  }
  file->sums_at = SumsAt(name);
  file->bytes_at = BytesAt(name, size);
  struct stat status;
  if (fstat(file->fd, &status) == 0 && clock_() - status.st_mtim.tv_sec >= kUsedS)
    file->Touch(clock_());
  return file;
}

bool DiskCache::MakeFile(const std::string& name, uint64_t size) const {
  static std::atomic<uint64_t> number{0};
  const std::string path = PathOf(name);
  const std::string part = absl::StrCat(path, ".", getpid(), ".", number.fetch_add(1), kPartSuffix);
  const int fd = open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return false;
  const std::string header = HeaderOf(name, size);
  bool made = WriteAll(fd, header.data(), header.size(), 0) &&
              ftruncate(fd, static_cast<off_t>(BytesAt(name, size) + size)) == 0;
  close(fd);
  // Whoever was first has made the same.
  made = made && (link(part.c_str(), path.c_str()) == 0 || errno == EEXIST);
  unlink(part.c_str());
  return made;
}

bool DiskCache::Read(const std::string& name, uint64_t size, uint64_t offset,
                     absl::Span<uint8_t> out, const void* reader) {
  if (name.size() > kNameBytesMax || out.empty()) return false;
  const int64_t now_s = clock_();
  Mark(needs_.Used(reader, KeyOf(name), now_s), now_s);
  const std::unique_ptr<File> file = OpenFile(name, size);
  if (file == nullptr) return false;
  const std::vector<uint32_t> sums = file->Sums(offset, out.size());
  if (sums.empty() || std::find(sums.begin(), sums.end(), 0u) != sums.end()) return false;
  // The sums of a piece are made while it is in the processor's cache.
  for (size_t at = 0; at < out.size(); at += kPieceBytes) {
    const absl::Span<uint8_t> piece = out.subspan(at, kPieceBytes);
    if (!ReadAll(file->fd, piece.data(), piece.size(), file->bytes_at + offset + at)) return false;
    for (size_t begin = 0; begin < piece.size(); begin += kPage) {
      const size_t bytes = std::min<size_t>(kPage, piece.size() - begin);
      if (SumOf(piece.data() + begin, bytes) != sums[(at + begin) / kPage]) return false;
    }
  }
  return true;
}

namespace {

// Gives back the room of who has written, which is counted then.
struct Leaving {
  std::atomic<uint64_t>& under_way;
  const uint64_t room;
  ~Leaving() { under_way.fetch_sub(room); }
};

}  // namespace

void DiskCache::Write(const std::string& name, uint64_t size, uint64_t offset,
                      absl::Span<const uint8_t> bytes, const void* reader) {
  if (name.size() > kNameBytesMax || bytes.empty()) return;
  const uint64_t room = bytes.size() + 2 * kPage;
  const bool is_ahead = needs_.IsAheadOfOthers(reader, KeyOf(name), clock_());
  {
    // Those who write at the same time have room for all of them.
    std::lock_guard<std::mutex> lock(entering_);
    if (!MakeRoom(room, is_ahead)) return;
    under_way_.fetch_add(room);
  }
  const Leaving leaving{under_way_, room};
  bool is_other = false;
  std::unique_ptr<File> file = OpenFile(name, size, &is_other);
  // A disk has lost its beginning.
  if (is_other) unlink(PathOf(name).c_str());
  if (file == nullptr && MakeFile(name, size)) file = OpenFile(name, size);
  if (file == nullptr) return;
  std::vector<uint32_t> sums = file->Sums(offset, bytes.size());
  if (sums.empty()) return;
  const auto missing = static_cast<uint64_t>(std::count(sums.begin(), sums.end(), 0u));
  for (size_t page = 0; page < sums.size(); ++page) {
    const size_t at = page * kPage;
    sums[page] = SumOf(bytes.data() + at, std::min<size_t>(kPage, bytes.size() - at));
  }
  if (!WriteAll(file->fd, bytes.data(), bytes.size(), file->bytes_at + offset)) return;
  // Behind the bytes: they are there, or the sum does not fit.
  if (!WriteAll(file->fd, sums.data(), sums.size() * sizeof(uint32_t),
                file->sums_at + offset / kPage * sizeof(uint32_t))) {
    return;
  }
  file->Touch(clock_());
  bytes_.fetch_add(missing * kPage, std::memory_order_relaxed);
  written_.fetch_add(missing * kPage, std::memory_order_relaxed);
}

uint64_t DiskCache::KeptBytes(const std::string& name, uint64_t size) const {
  if (size == 0 || name.size() > kNameBytesMax) return 0;
  const std::unique_ptr<File> file = OpenFile(name, size);
  if (file == nullptr) return 0;
  const std::vector<uint32_t> sums = file->Sums(0, size);
  uint64_t kept = 0;
  for (size_t page = 0; page < sums.size(); ++page)
    if (sums[page] != 0) kept += std::min(kPage, size - page * kPage);
  return kept;
}

bool DiskCache::MakeRoom(uint64_t bytes, bool is_ahead) {
  const auto fits = [&] { return bytes_.load() + under_way_.load() + bytes <= bytes_max_; };
  const auto is_known = [&] { return bytes > 0 && fits() && written_.load() < bytes_max_ / 16; };
  if (is_known()) return true;
  std::atomic<int64_t>& full_until_s = full_until_s_[is_ahead ? 1 : 0];
  if (bytes > 0 && clock_() < full_until_s.load()) return false;
  struct Kept {
    bool is_needed;
    int64_t used_s;
    uint64_t passed_at;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Kept> kept;
  uint64_t taken = 0;
  const int64_t now_s = clock_();
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string path = entry->path().string();
    struct stat status;
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const bool is_old = now_s - status.st_mtim.tv_sec >= kRestS;
    // Of who was killed while it made one.
    if (absl::EndsWith(path, kPartSuffix) && is_old) unlink(path.c_str());
    if (!absl::EndsWith(path, kSuffix)) continue;
    taken += TakenBy(status);
    const CacheNeeds::Standing standing = needs_.Of(KeyIn(path), now_s);
    const bool is_needed = standing.use != CacheNeeds::Use::kNobody;
    const bool may_go = is_needed ? is_ahead && standing.use == CacheNeeds::Use::kLater : is_old;
    if (may_go)
      kept.push_back({is_needed, status.st_mtim.tv_sec, standing.passed_at, TakenBy(status), path});
  }
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
    if (a.is_needed != b.is_needed) return b.is_needed;
    return a.is_needed ? a.passed_at > b.passed_at : a.used_s < b.used_s;
  });
  const uint64_t wanted = bytes == 0 ? 0 : bytes + under_way_.load();
  for (const Kept& one : kept) {
    // With some to spare, so that the folder is not looked through for each block; but nothing that
    // is needed goes for that.
    const uint64_t spare = one.is_needed ? 0 : bytes_max_ / 16;
    if (wanted == 0 || taken + wanted + spare <= bytes_max_) break;
    if (unlink(one.path.c_str()) == 0) taken -= std::min(taken, one.bytes);
  }
  bytes_ = taken;
  written_ = 0;
  // What others are writing has its place soon.
  if (bytes_.load() + bytes > bytes_max_) full_until_s = now_s + kLookAgainS;
  return fits();
}

}  // namespace penstock
