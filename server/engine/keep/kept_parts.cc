#include "server/engine/keep/kept_parts.h"

#include <algorithm>
#include <utility>

namespace penstock {

bool KeptParts::Take(FoundParts found) {
  if (!found.notice.empty()) notice_ = std::move(found.notice);
  const uint64_t before = parts_.size();
  for (std::shared_ptr<const ElementFile>& file : found.files) {
    if (file->first() != size_ || parts_left() == 0) break;
    Add(std::move(file), /*trusted=*/false);
  }
  return parts_.size() > before;
}

void KeptParts::Take(std::shared_ptr<const ElementFile> file) {
  if (file->first() == size_ && parts_left() > 0) Add(std::move(file), /*trusted=*/true);
}

void KeptParts::Add(std::shared_ptr<const ElementFile> file, bool trusted) {
  size_ += file->size();
  bytes_ += file->file_bytes();
  Part part;
  part.trusted = trusted;
  if (!trusted) part.verified.assign(file->size(), false);
  part.file = std::move(file);
  parts_.push_back(std::move(part));
}

KeptParts::Part& KeptParts::PartOf(uint64_t ordinal) {
  if (ordinal < parts_[last_].file->first()) last_ = 0;
  while (ordinal - parts_[last_].file->first() >= parts_[last_].file->size()) ++last_;
  return parts_[last_];
}

bool KeptParts::IsUnknown(uint64_t ordinal) {
  const Part& part = PartOf(ordinal);
  const uint64_t index = ordinal - part.file->first();
  return !part.trusted && !part.verified[index] && index != part.damaged;
}

KeptParts::Found KeptParts::Find(uint64_t ordinal, ElementFile::Element* element,
                                 const uint8_t** data) {
  if (IsUnknown(ordinal) && !Check(ordinal)) return Found::kWaits;
  const Part& part = PartOf(ordinal);
  const uint64_t index = ordinal - part.file->first();
  if (index == part.damaged) {
    RemoveFrom(last_);
    return Found::kGone;
  }
  *element = part.file->element(index);
  *data = part.file->data() + element->at;
  return Found::kSound;
}

bool KeptParts::Check(uint64_t ordinal) {
  if (checking_ != nullptr && !TakeChecked()) return false;
  if (IsUnknown(ordinal)) {
    StartCheck(ordinal);
    if (!TakeChecked()) return false;
  }
  if (checked_until_ < size_ && IsUnknown(checked_until_)) StartCheck(checked_until_);
  return true;
}

void KeptParts::StartCheck(uint64_t ordinal) {
  const Part& part = PartOf(ordinal);
  checking_ =
      std::make_unique<KeptCheck>(cache_, cells_, part.file, ordinal - part.file->first(), stage_);
  checking_->Start(context_.errands);
}

bool KeptParts::TakeChecked() {
  if (!checking_->done()) return false;
  const std::unique_ptr<KeptCheck> check = std::move(checking_);
  const uint64_t until = check->first + check->num_sound;
  for (Part& part : parts_) {
    // It may have been taken away meanwhile.
    if (part.file != check->file) continue;
    std::fill_n(part.verified.begin() + static_cast<ptrdiff_t>(check->first), check->num_sound,
                true);
    if (check->is_damaged) part.damaged = until;
  }
  checked_until_ = check->file->first() + until;
  return true;
}

void KeptParts::RemoveFrom(size_t part) {
  // From the end, so that there is never one that nothing leads to.
  while (parts_.size() > part) {
    std::shared_ptr<const ElementFile> file = std::move(parts_.back().file);
    parts_.pop_back();
    cache_->Remove(*file);
    size_ -= file->size();
    bytes_ -= file->file_bytes();
    removed_.push_back(std::move(file));
  }
  last_ = 0;
}

}  // namespace penstock
