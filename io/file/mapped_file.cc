#include "io/file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "base/local_file.h"
#include "base/pending_call.h"
#include "io/file/bus_guard.h"

namespace penstock {
namespace {

constexpr size_t kNoSlot = ~size_t{0};

size_t WholePages(uint64_t bytes) {
  const uint64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Map(const std::string& path) {
  const PendingCall call("opening", path);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FileError(errno, absl::StrCat("cannot open ", path));
  struct stat status;
  const int failed = fstat(fd, &status) != 0 ? errno : 0;
  if (failed != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    if (failed != 0) return FileError(failed, absl::StrCat("cannot stat ", path));
    return absl::PermissionDeniedError(absl::StrCat("not a regular file: ", path));
  }
  const uint64_t size = status.st_size;
  absl::StatusOr<std::unique_ptr<MappedFile>> map = MapOpen(path, fd, size, VersionOf(fd, status));
  close(fd);
  return map;
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Map(const RandomAccessFile& file) {
  // Some file systems ask their server.
  const PendingCall call("mapping", file.path());
  return MapOpen(file.path(), file.descriptor(), file.size(), file.version());
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::MapOpen(const std::string& path, int fd,
                                                                uint64_t size,
                                                                const FileVersion& version) {
  void* memory = nullptr;
  if (size > 0) memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return FileError(errno, absl::StrCat("cannot map ", path));
  size_t slot = kNoSlot;
  if (size > 0) {
    const std::optional<size_t> guarded = GuardRange(memory, WholePages(size));
    if (!guarded) {
      munmap(memory, size);
      return absl::ResourceExhaustedError(absl::StrCat("cannot map another file: ", kMaxMappedFiles,
                                                       " are mapped already (", path, ")"));
    }
    slot = *guarded;
  }
  return std::unique_ptr<MappedFile>(
      new MappedFile(path, version, static_cast<const uint8_t*>(memory), size, slot));
}

MappedFile::MappedFile(std::string path, const FileVersion& version, const uint8_t* memory,
                       uint64_t size, size_t slot)
    : path_(std::move(path)), version_(version), memory_(memory), size_(size), slot_(slot) {}

MappedFile::~MappedFile() {
  if (memory_ == nullptr) return;
  ReleaseRange(slot_);
  munmap(const_cast<uint8_t*>(memory_), size_);
}

uint64_t MappedFile::InMemoryUntil(uint64_t offset, uint64_t end) const {
  if (offset >= end || end > size_) return offset;
  static const uint64_t page = sysconf(_SC_PAGESIZE);
  // Where little is in memory, little more than that is looked at.
  constexpr uint64_t kAtOnce = 64;
  for (uint64_t at = offset / page * page; at < end; at += kAtOnce * page) {
    const uint64_t bytes = std::min(end - at, kAtOnce * page);
    const uint64_t num_pages = (bytes + page - 1) / page;
    unsigned char pages[kAtOnce];
    if (mincore(const_cast<uint8_t*>(memory_) + at, bytes, pages) != 0) return std::max(at, offset);
    for (uint64_t i = 0; i < num_pages; ++i) {
      if ((pages[i] & 1) == 0) return std::max(at + i * page, offset);
    }
  }
  return end;
}

bool MappedFile::torn() const { return memory_ != nullptr && RangeTorn(slot_); }

absl::Status MappedFile::CheckRange(uint64_t offset, uint64_t bytes) const {
  if (offset <= size_ && bytes <= size_ - offset) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("beyond the end of the file: ", bytes, " bytes of ",
                                            size_, " (", path_, ", offset ", offset, ")"));
}

absl::Status MappedFile::CheckWhole(uint64_t offset) const {
  // The handler ran in this thread, within the copy, or in another one before it.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (!torn()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the file became shorter than its ", size_,
                                          " bytes, or cannot be read, while it was mapped (", path_,
                                          ", offset ", offset, ")"));
}

absl::Status MappedFile::Copy(uint64_t offset, absl::Span<uint8_t> out) const {
  if (absl::Status status = CheckRange(offset, out.size()); !status.ok()) return status;
  if (out.empty()) return absl::OkStatus();
  std::memcpy(out.data(), memory_ + offset, out.size());
  return CheckWhole(offset);
}

}  // namespace penstock
