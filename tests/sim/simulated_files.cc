#include "tests/sim/simulated_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/read_fully.h"

namespace penstock::test {

class SimulatedFiles::File final : public RandomAccessFile {
 public:
  File(SimulatedFiles& files, std::string path, uint64_t size, FileVersion version)
      : files_(files), path_(std::move(path)), size_(size), version_(version) {}
  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }
  FileVersion version() const override { return version_; }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
    int failures = 0;
    return ReadFully(
        path_, offset, out,
        [&](uint8_t* to, size_t bytes, uint64_t from) {
          return files_.Read(path_, to, bytes, from, &failures);
        },
        [](int64_t) {});
  }

 private:
  SimulatedFiles& files_;
  const std::string path_;
  const uint64_t size_;
  const FileVersion version_;
};

void SimulatedFiles::SetFault(DiskFault fault, Dice* dice) {
  dice_ = dice;
  fault_ = files_.empty() ? DiskFault::kNone : fault;
  broken_ = false;
  if (fault_ == DiskFault::kNone || fault_ == DiskFault::kPassing) return;
  victim_ = std::next(files_.begin(), dice->Below(files_.size()))->first;
  strikes_at_ = reads_ + dice->Below(dice->OneIn(2) ? 4 : 40);
}

// Whether the fault is met by this read or opening of this file.
bool SimulatedFiles::Strikes(const std::string& path) {
  if (reads_ < strikes_at_ || path != victim_) return false;
  if (fault_ == DiskFault::kFlipped && broken_) return false;
  broken_ = true;
  return true;
}

ssize_t SimulatedFiles::Read(const std::string& path, uint8_t* out, size_t bytes, uint64_t offset,
                             int* failures) {
  ++reads_;
  const std::string& content = *files_[path];
  uint64_t end = content.size();
  if (fault_ == DiskFault::kPassing) {
    const uint64_t what = dice_->Below(12);
    if (what == 0) {
      errno = EINTR;
      return -1;
    }
    if (what <= 2 && *failures + 1 < kReadTries) {
      ++*failures;
      errno = what == 1 ? EIO : EAGAIN;
      return -1;
    }
    if (what <= 5) bytes = 1 + dice_->Below(bytes);
    *failures = 0;
  }
  if (fault_ == DiskFault::kUnreadable && Strikes(path)) {
    errno = EIO;
    return -1;
  }
  if (fault_ == DiskFault::kCut && Strikes(path)) end /= 2;
  if (offset >= end) return 0;
  const size_t count = std::min<uint64_t>(bytes, end - offset);
  std::memcpy(out, content.data() + offset, count);
  if (fault_ == DiskFault::kFlipped && Strikes(path))
    out[dice_->Below(count)] ^= 1 << dice_->Below(8);
  return count;
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> SimulatedFiles::Open(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return absl::NotFoundError(absl::StrCat("no such file: ", path));
  FileVersion version{1, 1, 0, 0};
  if (fault_ == DiskFault::kReplaced && Strikes(path)) version.object = 2;
  return std::make_shared<File>(*this, path, found->second->size(), version);
}

absl::StatusOr<std::vector<ListedFile>> SimulatedFiles::List(const std::string& pattern) {
  const size_t star = pattern.find('*');
  std::vector<ListedFile> found;
  for (const auto& [path, bytes] : files_) {
    if (star == std::string::npos ? path == pattern
                                  : absl::StartsWith(path, pattern.substr(0, star)) &&
                                        absl::EndsWith(path, pattern.substr(star + 1)))
      found.push_back({path, bytes->size(), {1, 1, 0, 0}});
  }
  if (found.empty()) return absl::NotFoundError(absl::StrCat("no file matches ", pattern));
  return found;
}

}  // namespace penstock::test
