// Where the server writes what it keeps between runs, so that a test can put faults and recordings
// in the disk's place.
//
// Threads:  safe from any thread; a WrittenFile too, for places that do not overlap.
// Cost:     that of the system calls; Sync() and Publish() wait for the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {

// A file that nobody else writes: its descriptor holds a lock, which dies with its process.
class WrittenFile {
 public:
  virtual ~WrittenFile() = default;
  // Writes all of it. ResourceExhausted where the disk or a quota is full.
  virtual absl::Status WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) = 0;
  virtual absl::Status Truncate(uint64_t bytes) = 0;
  // Once it fails nobody knows what the disk has: what was written is to be given up.
  virtual absl::Status Sync() = 0;
  // FileVersion::object of what it becomes; 0 where that is not known yet.
  virtual uint64_t object() const { return 0; }
};

struct FolderEntry {
  std::string name;
  uint64_t bytes = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;
  // Whether anything may be written into a folder, which need not be there: InvalidArgument for a
  // relative path, PermissionDenied outside of what this disk may write.
  virtual absl::Status CheckFolder(const std::string& folder) = 0;
  // Makes a folder and those above it.
  virtual absl::Status MakeFolder(const std::string& folder) = 0;
  // A new file of no bytes, in the place of what a writer that died has left there. Unavailable
  // while another writer has it.
  virtual absl::StatusOr<std::unique_ptr<WrittenFile>> Create(const std::string& path) = 0;
  // Gives a file its last name, in the place of what has it; durable when it returns, if the file
  // is.
  virtual absl::Status Publish(const std::string& path, const std::string& name) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // The regular files of a folder; none where there is no such folder.
  virtual absl::StatusOr<std::vector<FolderEntry>> List(const std::string& folder) = 0;
  // Bytes that files in this folder could still get; UINT64_MAX where nobody knows. A quota may
  // allow less.
  virtual uint64_t FreeBytes(const std::string& folder) = 0;
  // Bytes that all that is kept in a folder may have together.
  virtual uint64_t folder_bytes_max() const { return UINT64_MAX; }
};

// The machine's own.
Disk& LocalDisk();

// The machine's own, below some folders only: absolute paths. Without any, all of it. A folder
// below them that is a symbolic link is followed only where it leads to a place below them.
std::unique_ptr<Disk> MakeLimitedDisk(std::vector<std::string> roots, uint64_t folder_bytes_max);

}  // namespace penstock
