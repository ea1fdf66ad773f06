#include "server/engine/keep/kept_parts.h"

#include <utility>

namespace penstock {

bool KeptParts::TakeWhatIsThere() {
  const uint64_t before = parts_.size();
  while (!whole() && !full()) {
    absl::StatusOr<std::shared_ptr<const ElementFile>> file = cache_.Open(size_);
    if (absl::IsFailedPrecondition(file.status())) notice_ = std::string(file.status().message());
    if (!file.ok()) break;
    Add(*std::move(file), /*trusted=*/false);
  }
  return parts_.size() > before;
}

void KeptParts::Take(std::shared_ptr<const ElementFile> file) {
  if (file->first() == size_ && !whole() && !full()) Add(std::move(file), /*trusted=*/true);
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

bool KeptParts::Find(uint64_t ordinal, ElementFile::Element* element, const uint8_t** data) {
  // Elements are asked for in their order, but for the beginning of a pass.
  if (ordinal < parts_[last_].file->first()) last_ = 0;
  while (ordinal - parts_[last_].file->first() >= parts_[last_].file->size()) ++last_;
  Part& part = parts_[last_];
  const uint64_t index = ordinal - part.file->first();
  *element = part.file->element(index);
  *data = part.file->data() + element->at;
  if (part.trusted || part.verified[index]) return true;
  if (!ElementHolds(*data - kElementFrameBytes, *data, element->length) ||
      !cells_.IsCell(*data, element->length)) {
    RemoveFrom(last_);
    return false;
  }
  part.verified[index] = true;
  return true;
}

void KeptParts::RemoveFrom(size_t part) {
  // From the end, so that there is never one that nothing leads to.
  while (parts_.size() > part) {
    std::shared_ptr<const ElementFile> file = std::move(parts_.back().file);
    parts_.pop_back();
    cache_.Remove(*file);
    size_ -= file->size();
    bytes_ -= file->file_bytes();
    removed_.push_back(std::move(file));
  }
  last_ = 0;
}

}  // namespace penstock
