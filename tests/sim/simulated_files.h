// Files in memory whose reads meet what disks do: interruptions and short reads that nobody may
// notice, and faults that end a stream.
//
// Threads:  one thread.
// Owns:     the bytes. It must outlive every file that it opened.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/disk.h"
#include "base/file.h"
#include "tests/sim/dice.h"

namespace penstock::test {

// What happens to one file of a run, or to all of its reads.
enum class DiskFault {
  kNone,
  kPassing,     // EINTR, short reads, and EIO and EAGAIN that go by at another try
  kUnreadable,  // from some read on, EIO for ever
  kCut,         // from some read on, the file is shorter
  kFlipped,     // one read gives a wrong bit
  kReplaced,    // from some read on, who opens the file finds another one
};

class SimulatedFiles final : public FileSystem {
 public:
  void Add(const std::string& path, std::shared_ptr<const std::string> bytes) {
    files_[path] = std::move(bytes);
  }
  const std::map<std::string, std::shared_ptr<const std::string>>& files() const { return files_; }

  // From here on reads meet the fault, drawn by `dice`; what breaks something does so at one of the
  // next reads. The disk is whole again at the next call.
  void SetFault(DiskFault fault, Dice* dice);

  // Whether a fault that breaks something has been met.
  bool broken() const { return broken_; }
  // System calls so far.
  uint64_t reads() const { return reads_; }

  // What pipelines keep is on the machine's own disk, which is whole.
  Disk* disk() override { return &LocalDisk(); }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override;
  // A "*" stands for anything; there may be one.
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override;

 private:
  class File;
  ssize_t Read(const std::string& path, uint8_t* out, size_t bytes, uint64_t offset, int* failures);
  bool Strikes(const std::string& path);

  std::map<std::string, std::shared_ptr<const std::string>> files_;
  Dice* dice_ = nullptr;
  DiskFault fault_ = DiskFault::kNone;
  std::string victim_;
  uint64_t strikes_at_ = 0;  // the number of the first read that is struck
  bool broken_ = false;
  uint64_t reads_ = 0;
};

}  // namespace penstock::test
