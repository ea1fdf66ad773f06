#include "server/engine/keep/kept_errands.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/pending_call.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// Opens the files that go on behind `first` elements, at most so many.
FoundParts FindParts(const FileCache& cache, uint64_t first, size_t parts_max) {
  FoundParts found;
  while (found.files.size() < parts_max) {
    absl::StatusOr<std::shared_ptr<const ElementFile>> file = cache.Open(first);
    if (absl::IsFailedPrecondition(file.status()))
      found.notice = std::string(file.status().message());
    if (!file.ok()) break;
    found.files.push_back(*std::move(file));
    if (found.files.back()->whole()) break;
    first += found.files.back()->size();
  }
  return found;
}

}  // namespace

absl::Status KeptLook::Do() {
  found = FindParts(*cache_, behind_.elements, behind_.parts_left);
  uint64_t bytes = behind_.bytes;
  for (const std::shared_ptr<const ElementFile>& file : found.files) bytes += file->file_bytes();
  const bool is_any_kept = behind_.elements > 0 || !found.files.empty();
  if (asks_room_ && is_any_kept) room = cache_->Room(bytes, 0);
  return absl::OkStatus();
}

absl::Status KeptCheck::Do() {
  const PendingCall call("reading", cache_->folder());
  uint64_t bytes = 0;
  while (first + num_sound < file->size() && num_sound < kElements && bytes < kBytes) {
    const ElementFile::Element element = file->element(first + num_sound);
    const uint8_t* const data = file->data() + element.at;
    is_damaged = !ElementHolds(data - kElementFrameBytes, data, element.length) ||
                 !cells_.IsCell(data, element.length);
    if (is_damaged) break;
    bytes += element.length;
    ++num_sound;
  }
  return absl::OkStatus();
}

absl::Status KeptStart::Do() {
  absl::StatusOr<std::unique_ptr<ElementFileWriter>> begun =
      cache_->Write(behind_.elements, behind_.bytes);
  if (!begun.ok()) return begun.status();
  if (cache_->reads()) {
    // Whoever had the lock before may have finished in the meantime.
    found = FindParts(*cache_, behind_.elements, behind_.parts_left);
    if (!found.files.empty()) return absl::OkStatus();
    cache_->RemoveBehind(behind_.elements);
  }
  room = cache_->Room(behind_.bytes, 0);
  writer = *std::move(begun);
  return absl::OkStatus();
}

void KeptBlock::AskRoom(std::shared_ptr<const FileCache> cache, uint64_t earlier_bytes,
                        uint64_t own_bytes) {
  cache_ = std::move(cache);
  earlier_bytes_ = earlier_bytes;
  own_bytes_ = own_bytes;
}

void KeptBlock::WaitOn(Errands* errands, const std::atomic<bool>* stop) {
  errands_ = errands;
  stop_ = stop;
}

void KeptBlock::Begin(Completion end) {
  if (errands_ == nullptr) return end.End(Write());
  errands_->Do([this, end = std::move(end)]() mutable {
    const StopFlag::Scope scope(stop_);
    // The front may let go of this errand as soon as it has ended.
    absl::Status status = Write();
    end.End(std::move(status));
  });
}

absl::Status KeptBlock::Write() {
  absl::Status status = writer_->Write(first, absl::MakeSpan(places), data, from_);
  if (cache_ != nullptr) room = cache_->Room(earlier_bytes_, own_bytes_);
  store_.Release(records);
  records.clear();
  // The last one that has the writer gives up its file, unless that was ended.
  writer_.reset();
  return status;
}

absl::Status KeptEnd::Do() {
  const StopFlag::Scope scope(stop_);
  absl::Status status = writer_->Finish(elements_, whole_);
  if (status.ok() && cache_->is_far()) {
    // An object has no room for less.
    is_whole = whole_;
    num_elements = writer_->elements();
    bytes = writer_->bytes();
  } else if (status.ok()) {
    absl::StatusOr<std::shared_ptr<const ElementFile>> mapped = ElementFile::Map(writer_->path());
    status = mapped.status();
    if (mapped.ok()) {
      file = *std::move(mapped);
      is_whole = file->whole();
      num_elements = file->size();
      bytes = file->file_bytes();
    }
  }
  writer_.reset();
  return status;
}

}  // namespace penstock
