// One array of an .npy or .npz file, for reading by its byte offsets.
//
// Threads:  constant after construction; Read() is safe from any thread. Whoever reads first makes
//           it ready while the others wait.
// Owns:     the map of its file or, for a deflated array, its plain bytes.
// Limits:   a deflated array of at most kMaxInflatedBytes.
// Cost:     the first Read() of an array in an .npz file goes through all of it, for its checksum;
//           the others copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/memory_block.h"
#include "base/patient_once.h"
#include "io/array/npy_header.h"
#include "io/array/zip_directory.h"
#include "io/file/mapped_file.h"
#include "server/engine/read/file_table.h"

namespace penstock {

inline constexpr uint64_t kMaxInflatedBytes = uint64_t{1} << 30;

class FileArray {
 public:
  // `file`: in the manifest. `member`: for one in an .npz file.
  FileArray(uint32_t file, const NpyHeader& header, std::optional<ZipMember> member)
      : file_(file), header_(header), member_(std::move(member)) {}

  const NpyHeader& header() const { return header_; }
  uint32_t file() const { return file_; }
  // Where in the file a byte of the array lies; of a deflated one, where it begins.
  uint64_t FileOffset(uint64_t offset) const;

  // Fills `out` with the array's bytes from `offset` on. REQUIRES: it has them.
  absl::Status Read(FileTable& files, uint64_t offset, absl::Span<uint8_t> out) const;

  // Has bytes of the array brought nearer, once it is ready.
  void Prefetch(uint64_t offset, uint64_t bytes) const;

 private:
  bool deflated() const { return member_ && member_->deflated; }
  absl::Status MakeReady(FileTable& files) const;
  // Without a look at whether it is ready; `offset` is of the file, or of the inflated bytes.
  absl::Status Copy(FileTable& files, uint64_t offset, absl::Span<uint8_t> out) const;
  absl::Status VerifyChecksum(FileTable& files) const;

  const uint32_t file_;
  const NpyHeader header_;
  const std::optional<ZipMember> member_;

  mutable PatientOnce once_;
  mutable std::atomic<bool> ready_{false};  // SYNC array-ready
  // Constant behind once_.
  mutable absl::Status status_;
  mutable std::unique_ptr<MappedFile>
      map_;  // null where the file cannot be mapped: then it is read
  mutable MemoryBlock inflated_;
};

}  // namespace penstock
