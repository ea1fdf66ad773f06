#include "server/engine/read/far_ends.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "base/far_file.h"
#include "base/file_error.h"
#include "base/pending_call.h"
#include "io/record/index_file.h"

namespace penstock {
namespace {

constexpr size_t kFilesAtATime = 256;

// Waits for all that it gave completions for. What went wrong is told by who reads.
class AllOfThem final : public Completion::Sink {
 public:
  Completion One() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++left_;
    return Completion(this);
  }
  void End(absl::Status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--left_ == 0) ended_.notify_all();
  }
  void OnCancel(std::function<void()>) override {}
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t left_ = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<RandomAccessFile>> FarEnds::Open(size_t file) {
  if (file < begin_ + open_.size()) return open_[file - begin_];
  begin_ = file;
  open_.clear();
  AllOfThem all;
  const size_t end = std::min(manifest_.size(), file + kFilesAtATime);
  for (size_t i = begin_; i < end; ++i) {
    const FileEntry& entry = manifest_[i];
    if (!IsAddress(entry.path)) {
      open_.push_back(absl::InternalError("no address"));
      continue;
    }
    open_.push_back(files_.OpenListed({entry.path, entry.size_bytes, entry.version}));
    FarFile* const far = open_.back().ok() ? dynamic_cast<FarFile*>(open_.back()->get()) : nullptr;
    if (far == nullptr) continue;
    const uint64_t bytes = std::min<uint64_t>(kStampEndBytes, far->size());
    far->FetchAlone(0, bytes, all.One());
    far->FetchAlone(far->size() - bytes, bytes, all.One());
  }
  const PendingCall call("fetching", manifest_[file].path);
  all.Wait();
  return open_[file - begin_];
}

}  // namespace penstock
