// A read-only map of a file whose truncation by somebody else is an error and no death.
//
// A page of a map that the file no longer has, or that the disk cannot give, raises SIGBUS. One
// handler for the process, installed with the first map, looks the address up among the maps, puts
// pages of zeros there and marks the map as torn. Faults elsewhere go on to the handler that was
// there before, or to the default.
//
// Threads:  all methods from any thread; Map too.
// Owns:     the address range. Bytes are copied out and checked after the copy, since whoever can
//           write the file may change them at any time.
// Limits:   kMaxMappedFiles at a time; the size is that at Map, what a file grows by is not seen. A
//           program that installs its own SIGBUS handler afterwards must pass on what is not its
//           own.
// Cost:     a copy and, for records, both checksums. The first touch of each page is a fault.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/file.h"

namespace penstock {

inline constexpr size_t kMaxMappedFiles = 4096;

// Has a small record, or the beginning of a longer one, brought nearer: of what is read from front
// to back a processor fetches the rest by itself.
inline void PrefetchRecord(const uint8_t* begin, uint64_t bytes) {
  constexpr uint64_t kLine = 64, kMaxBytes = 512;
  for (uint64_t at = 0; at < std::min(bytes, kMaxBytes); at += kLine)
    __builtin_prefetch(begin + at);
}

class MappedFile {
 public:
  // ResourceExhausted when there are kMaxMappedFiles already: read the file instead.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path);
  // The same of a file that is open: as many bytes as it had then. REQUIRES: it has a descriptor.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Map(const RandomAccessFile& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // When it was mapped.
  const FileVersion& version() const { return version_; }
  // For those who look at many places: what they copied holds if torn() is false afterwards, and
  // only the copy may be checked.
  const uint8_t* bytes() const { return memory_; }

  // Fills `out` from `offset` on. OutOfRange beyond the file's size; DataLoss when the file lost
  // bytes. Bytes behind the end of a file that was cut within a page are zeros, without an error.
  absl::Status Copy(uint64_t offset, absl::Span<uint8_t> out) const;

  // Has the record at `offset` brought nearer.
  void Prefetch(uint64_t offset, uint64_t data_bytes) const {
    if (offset < size_) PrefetchRecord(memory_ + offset, std::min(size_ - offset, data_bytes + 16));
  }

  // How far pages are in memory from `offset` on, so that looking at them waits for no disk: at
  // most `end`; `offset` where the first is not, or where either lies beyond the file. The kernel
  // does not tell everybody: see page_cache.h.
  uint64_t InMemoryUntil(uint64_t offset, uint64_t end) const;

  // Whether a page was found to be gone. Every copy fails from then on.
  bool torn() const;

 private:
  // As many bytes of `fd`, which may be closed afterwards.
  static absl::StatusOr<std::unique_ptr<MappedFile>> MapOpen(const std::string& path, int fd,
                                                             uint64_t size,
                                                             const FileVersion& version);
  MappedFile(std::string path, const FileVersion& version, const uint8_t* memory, uint64_t size,
             size_t slot);

  absl::Status CheckRange(uint64_t offset, uint64_t bytes) const;
  // Whether what was just copied from `offset` on is what the file holds.
  absl::Status CheckWhole(uint64_t offset) const;

  const std::string path_;
  const FileVersion version_;
  const uint8_t* const memory_;  // null for a file of no bytes
  const uint64_t size_;
  const size_t slot_;  // in the handler's table
};

}  // namespace penstock
