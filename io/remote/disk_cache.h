// Bytes of objects on a disk, so that they are fetched once: a sparse file for each state of an
// object.
//
//     0     "PENSTKRC", format 1 (u32), bytes of a page (u32), size of the object (u64), bytes of
//           its name (u32), CRC-32C of all that with the name (u32); then the name: address, tag
//           and size
//     H     for each page of the object its CRC-32C (u32, a zero as 1); 0: the page is not here. H:
//           the next multiple of 4096
//     D     the object's bytes, with holes. D: likewise
//
// A page's bytes are written in front of its sum, and nothing is taken whose sum does not fit. So a
// process that is killed at any time, a machine that loses its power, a disk that is full and a
// file that somebody else has changed cost a request and never give a wrong byte.
//
// What a pipeline will read again stays (io/remote/cache_needs.h), however long its pass takes. So
// of data larger than the folder a part is there in every pass, which a cache that throws out the
// oldest would lose each time. Room for what comes is made of these, in this order:
//
//     1. files that no pipeline of this process needs, and that nobody has marked as used for an
//        hour: the one that was used least lately first
//     2. if another pipeline still reads in its pass what comes: files that all pipelines have
//        passed in theirs, the one that comes again last first
//
// Where that is not enough, what comes is not kept. Other processes see what is needed by the
// file's time: a pipeline that reads marks all that it needs every ten minutes, and the end of the
// last one that needs a file marks it as free at once. (So, for ten minutes, a third process may
// take the place of a file that another one needs, which costs a request.)
//
// Threads:  safe from any thread, and beside other processes that use the same folder. They wait
//           for the disk.
// Owns:     the files in its folder whose names end in ".remote".
// Limits:   bytes_max of all processes together, but for a sixteenth of it for each of the others.
// Cost:     a file is opened for each call, and the sum of each page is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/remote/cache_needs.h"

namespace penstock {

class DiskCache {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr int64_t kRestS = CacheNeeds::kRestS;
  // Unix time in seconds.
  using Clock = std::function<int64_t()>;

  // Makes the folder where it is missing; one that is another user's, or that others may write, is
  // refused. `bytes_max`: 0 is half of what the disk has free.
  static absl::StatusOr<std::unique_ptr<DiskCache>> Open(const std::string& folder,
                                                         uint64_t bytes_max, Clock clock = {});

  // Whether all of these bytes are there; then they are in `out`. REQUIRES: `offset` is a page's,
  // and they end with one or with the object. `name`: of the object's state, `size`: its bytes.
  // `reader`: the pipeline that asks; may be null.
  bool Read(const std::string& name, uint64_t size, uint64_t offset, absl::Span<uint8_t> out,
            const void* reader = nullptr);
  // Keeps them, if there is room. REQUIRES: likewise.
  void Write(const std::string& name, uint64_t size, uint64_t offset,
             absl::Span<const uint8_t> bytes, const void* reader = nullptr);

  // As long as what is returned lives, which must end before this does, a plan of the pipeline
  // `reader` needs the objects of these names.
  std::shared_ptr<void> Need(std::shared_ptr<const void> reader,
                             const std::vector<std::string>& names);
  // The pipeline has read the object from its beginning to its end.
  void Passed(const std::string& name, const void* reader);

  // How many of an object's bytes have been written here, whether or not they still hold.
  uint64_t KeptBytes(const std::string& name, uint64_t size) const;

  // What its files take on the disk, as far as this process knows.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  struct File;

  DiskCache(std::string folder, uint64_t bytes_max, Clock clock)
      : folder_(std::move(folder)), bytes_max_(bytes_max), clock_(std::move(clock)) {}

  std::string PathOf(const std::string& name) const;
  // Null where there is none, or `is_other`: what has its name is another object's, or damaged.
  std::unique_ptr<File> OpenFile(const std::string& name, uint64_t size,
                                 bool* is_other = nullptr) const;
  bool MakeFile(const std::string& name, uint64_t size) const;
  std::string PathOf(CacheNeeds::Key key) const;
  // The time when these were used last, for all processes.
  void Mark(const std::vector<CacheNeeds::Key>& keys, int64_t used_s) const;
  // `is_ahead`: another pipeline still reads it in its pass.
  bool MakeRoom(uint64_t bytes, bool is_ahead);

  const std::string folder_;
  const uint64_t bytes_max_;
  const Clock clock_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> written_{0};    // since the folder was looked through
  std::atomic<uint64_t> under_way_{0};  // that those who write have room for
  std::mutex entering_;  // of who begins to write, and looks the folder through for that
  // So long nobody looks for room; [1]: for what is ahead of another pipeline.
  std::atomic<int64_t> full_until_s_[2] = {};
  CacheNeeds needs_;
};

}  // namespace penstock
