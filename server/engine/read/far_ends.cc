#include "server/engine/read/far_ends.h"

#include <algorithm>

#include "base/far_file.h"
#include "base/file_error.h"
#include "base/pending_call.h"
#include "base/stop_flag.h"
#include "io/record/index_file.h"
#include "server/engine/tasks/all_ended.h"

namespace penstock {
namespace {

constexpr size_t kFilesAtATime = 256;

}  // namespace

absl::StatusOr<std::shared_ptr<RandomAccessFile>> FarEnds::Open(size_t file) {
  if (file < begin_ + open_.size()) return open_[file - begin_];
  begin_ = file;
  open_.clear();
  AllEnded all;
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
  // What went wrong with one is told by who reads it.
  (void)all.Wait();
  CheckStop();
  return open_[file - begin_];
}

}  // namespace penstock
