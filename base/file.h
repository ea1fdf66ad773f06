// Files as the rest of the server sees them, so that a test can put faults and memory in their
// place.
//
// Threads:  as each class says; functions are safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/completion.h"

namespace penstock {

// One state of a file, as whoever holds it tells it from other states. Zeros where there is no such
// thing.
//
//                 modified_ns      object                        holder                  changed_ns
//   local file    mtime            inode                         identity of its file    ctime
//                                                                system (statfs)
//   object store  last-modified    hash of ETag or generation    0                       0
//
// Equal versions: nobody has written to the file in between. The reverse does not hold: chmod,
// links and another mount may change a version, and the bytes are the same.
struct FileVersion {
  int64_t modified_ns = 0;
  uint64_t object = 0;
  uint64_t holder = 0;
  int64_t changed_ns = 0;

  // The same file, not written to in between as far as its times tell. What is running already
  // holds its files to this, so that a chmod or a link ends no stream.
  bool HasContentOf(const FileVersion& other) const {
    return modified_ns == other.modified_ns && object == other.object;
  }
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

// A file as it was listed.
struct ListedFile {
  std::string path;
  uint64_t size_bytes = 0;
  FileVersion version;
};

// How the files end that hold an index of a data file (io/record/index_store.h).
inline constexpr char kIndexSuffix[] = ".penstock-index";

// Threads: safe from any thread.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  virtual const std::string& path() const = 0;
  // The size when it was opened.
  virtual uint64_t size() const = 0;
  // When it was opened, too.
  virtual FileVersion version() const { return {}; }
  // What it has grown to, or was cut to, since; the same as size() where that cannot be told.
  virtual uint64_t SizeNow() const { return size(); }
  // Its version now; the same as version() where that cannot be told.
  virtual FileVersion VersionNow() const { return version(); }
  // Reads up to out.size() bytes at `offset`; fewer only at the end of the file. Interrupted and
  // short reads are gone on with, errors that may pass are retried (base/read_fully.h).
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) = 0;
  // The bytes from `offset` on, `bytes` of them or all that there are, where they lie in memory and
  // looking at them waits for no disk; else empty. Valid as long as this object is. Whoever can
  // write the file may change them at any time, and what it loses becomes zeros: where what was
  // made of them is not sound, ask CheckNear().
  virtual absl::Span<const uint8_t> Near(uint64_t offset, size_t bytes) { return {}; }
  // An error where what Near() gave may not have been the file's.
  virtual absl::Status CheckNear() const { return absl::OkStatus(); }
  // Whether ReadAt() of these bytes waits for no answer of another machine, or process. Where it
  // would, who has something else to do asks for them by Fetch(), and reads when they have arrived.
  virtual bool HasFetched(uint64_t offset, uint64_t bytes) const { return true; }
  // Asks for the bytes from `offset` on, `bytes` of them or all that there are. `arrived` is told,
  // here or later and from any thread, when ReadAt() gives them at once, or why they cannot be had.
  // They stay until they have been read, or the object goes, which must not be before.
  virtual void Fetch(uint64_t offset, uint64_t bytes, Completion arrived) { arrived.End(); }
  // Hints that the range will be read soon.
  virtual void WillNeed(uint64_t offset, uint64_t bytes) {}
  // Open as long as this object is, for who maps the file instead; -1 where ReadAt is the only way.
  virtual int descriptor() const { return -1; }
};

class Disk;

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Where pipelines over these files may keep what they have computed; null: nowhere.
  virtual Disk* disk() { return nullptr; }
  // Opens a regular file for reading; anything else is refused before it could block.
  virtual absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) = 0;
  // The same file again: FailedPrecondition when it is no longer the one that was listed. Who asks
  // for versions as it reads opens what was listed without asking first.
  virtual absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenListed(const ListedFile& file);
  // The files that a path or glob stands for, in the byte order of their paths. A path that is
  // there stands for itself, whatever characters it has (base/literal_glob.h). Indices that lie
  // beside the data are left out, unless the pattern ends as they do. NotFound when nothing
  // matches; an error, too, where Open() would be one.
  virtual absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) = 0;
};

// The machine's own.
FileSystem& LocalFileSystem();

}  // namespace penstock
