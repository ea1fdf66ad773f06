#include "server/engine/read/far_ends.h"

#include <algorithm>
#include <utility>

#include "base/far_file.h"
#include "base/file_error.h"
#include "base/pending_call.h"
#include "base/stop_flag.h"
#include "io/record/index_file.h"

namespace penstock {
namespace {

constexpr size_t kFilesAtATime = 256;

}  // namespace

std::unique_ptr<FarEnds::Window> FarEnds::Ask(size_t begin) {
  if (begin >= manifest_.size()) return nullptr;
  auto window = std::make_unique<Window>();
  window->begin = begin;
  const size_t end = std::min(manifest_.size(), begin + kFilesAtATime);
  for (size_t i = begin; i < end; ++i) {
    const FileEntry& entry = manifest_[i];
    if (!IsAddress(entry.path)) {
      window->open.push_back(absl::InternalError("no address"));
      continue;
    }
    window->open.push_back(files_.OpenListed({entry.path, entry.size_bytes, entry.version}));
    FarFile* const far =
        window->open.back().ok() ? dynamic_cast<FarFile*>(window->open.back()->get()) : nullptr;
    if (far == nullptr) continue;
    const uint64_t bytes = std::min<uint64_t>(kStampEndBytes, far->size());
    far->FetchAlone(0, bytes, window->ends.One());
    far->FetchAlone(far->size() - bytes, bytes, window->ends.One());
  }
  return window;
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> FarEnds::Open(size_t file) {
  if (present_ == nullptr || file >= present_->begin + present_->open.size()) {
    const bool is_next =
        next_ != nullptr && file >= next_->begin && file < next_->begin + next_->open.size();
    present_ = is_next ? std::move(next_) : Ask(file);
    next_ = Ask(present_->begin + present_->open.size());
  }
  if (!std::exchange(present_->has_ended, true)) {
    const PendingCall call("fetching", manifest_[file].path);
    // What went wrong with one is told by who reads it.
    (void)present_->ends.Wait();
    CheckStop();
  }
  return present_->open[file - present_->begin];
}

}  // namespace penstock
