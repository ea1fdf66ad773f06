// A file whose bytes come from another machine: who has something else to do asks for them, and
// reads what has arrived.
//
// Threads:  as RandomAccessFile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/completion.h"
#include "base/fetch_numbers.h"
#include "base/file.h"

namespace penstock {

class FarFile : public RandomAccessFile {
 public:
  // Fetch() for bytes behind which nobody reads on: of single records.
  virtual void FetchAlone(uint64_t offset, uint64_t bytes, Completion arrived) = 0;
  // ReadAt() of what has arrived; absent where it would wait.
  virtual std::optional<absl::StatusOr<size_t>> ReadFetched(uint64_t offset,
                                                            absl::Span<uint8_t> out) = 0;
  // Behind what was read last, for who reads on from there.
  virtual uint64_t read_to() const = 0;
  // ReadFetched() without a copy: `bytes` bytes that stay as they are as long as what is returned
  // lives, with kLentPadding more behind them that may be loaded. Null where they do not lie
  // together, are not here, or too many are lent already: then they are read.
  static constexpr size_t kLentPadding = 64;
  virtual std::shared_ptr<const uint8_t> LendFetched(uint64_t offset, uint64_t bytes) {
    return nullptr;
  }
};

// Files of this machine, and far ones besides.
class JoinedFileSystem : public FileSystem {
 public:
  virtual FileSystem& local() const = 0;
  // The same files for a pipeline of that name, counted from zero on. They live as long as this
  // does.
  virtual FileSystem& CountedFor(const std::string& pipeline) { return *this; }
  // List() of each pattern, several at a time, as each may wait for another machine. Behind the
  // first that fails the others are Cancelled, or what was found.
  virtual std::vector<absl::StatusOr<std::vector<ListedFile>>> ListEach(
      const std::vector<std::string>& patterns) = 0;
  // A plan reads these files in each of its passes: as long as what is returned lives, what a disk
  // keeps of them goes for no others that are needed later. Null where nothing is kept. These files
  // must outlive it.
  virtual std::shared_ptr<void> Need(const std::vector<ListedFile>& files) { return nullptr; }
  // What tells the content of a file from others though nobody looks at it, if those who run this
  // trust the server with that; else absent.
  virtual std::optional<uint64_t> TrustedTag(const ListedFile& file) { return std::nullopt; }
  // What was counted; absent where nothing has been asked for.
  virtual std::optional<FetchNumbers> numbers() const { return std::nullopt; }
};

}  // namespace penstock
