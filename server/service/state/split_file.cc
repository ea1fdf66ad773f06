#include "server/service/state/split_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ring/attach.h"
#include "ring/layout.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr uint64_t kMagic = 0x31544c5053534e50;  // "PNSSPLT1"
constexpr size_t kMaxGroupBytes = 64;
static_assert(kMaxGroupBytes == ring::kMaxGroupBytes, "the file has room for any group");

// Bits of Image::flags.
constexpr uint32_t kAtMostOnce = 1;
constexpr uint32_t kOfGuest = 2;

struct Cursor {
  uint32_t bytes;
  uint8_t text[ring::kMaxCursorBytes];

  void Put(std::string_view cursor) {
    bytes = static_cast<uint32_t>(std::min<size_t>(cursor.size(), sizeof text));
    if (bytes > 0) std::memcpy(text, cursor.data(), bytes);
  }
  std::string Get() const {
    return std::string(reinterpret_cast<const char*>(text), std::min<size_t>(bytes, sizeof text));
  }
};

std::string FileName(const std::string& pipeline, int number) {
  return absl::StrCat(pipeline, ".split-", number);
}

}  // namespace

// What is written last of each part tells whether the rest of it counts, so that a kill between any
// two stores leaves the state before or after.
struct SplitFiles::Image {
  struct Entry {
    std::atomic<uint64_t> step_plus_1;  // 0: free
    std::atomic<uint64_t> identity;
    std::atomic<uint32_t> redelivered;
    Cursor cursor;
  };
  struct Next {
    uint64_t step;
    Cursor cursor;
  };

  std::atomic<uint64_t> magic;  // 0 while the file is being made
  uint32_t flags;
  uint32_t group_bytes;
  char group[kMaxGroupBytes];
  std::atomic<uint32_t> which_next;  // of next[]
  uint32_t uid_plus_1;               // 0: not known, as in files of earlier releases
  Next next[2];
  Entry entries[ring::kMaxSlots];

  Entry* Find(uint64_t step_plus_1) {
    for (Entry& entry : entries) {
      if (entry.step_plus_1.load(std::memory_order_relaxed) == step_plus_1) return &entry;
    }
    return nullptr;
  }
  void SetNext(uint64_t step, std::string_view cursor) {
    const uint32_t other = 1 - which_next.load(std::memory_order_relaxed) % 2;
    next[other].step = step;
    next[other].cursor.Put(cursor);
    which_next.store(other, std::memory_order_release);
  }
};

SplitFiles::~SplitFiles() {
  for (const auto& [group, kept] : kept_) munmap(kept.image, sizeof(Image));
}

SplitFiles::Image* SplitFiles::Map(int number, bool create) {
  const std::string path = folder_.PathOf(FileName(pipeline_, number));
  const ring::Descriptor file(
      open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_TRUNC : 0), 0640));
  if (!file) return nullptr;
  // Room on the disk beforehand: a store into a mapped page without any would end the process.
  if (create && posix_fallocate(file.get(), 0, sizeof(Image)) != 0) return nullptr;
  struct stat info = {};
  if (fstat(file.get(), &info) != 0 || info.st_size != static_cast<off_t>(sizeof(Image))) {
    return nullptr;
  }
  void* memory = mmap(nullptr, sizeof(Image), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Image*>(memory);
}

std::map<std::string, ring::SplitState> SplitFiles::Load() {
  std::map<std::string, ring::SplitState> states;
  std::lock_guard<std::mutex> lock(retire_mutex_);
  if (retired_) return states;
  for (int number = 0; number < kMaxGroups; ++number) {
    Image* image = Map(number, /*create=*/false);
    if (image == nullptr) continue;
    if (image->magic.load() != kMagic || image->group_bytes > kMaxGroupBytes) {
      munmap(image, sizeof(Image));
      (void)folder_.Remove(FileName(pipeline_, number));
      continue;
    }
    const std::string group(image->group, image->group_bytes);
    ring::SplitState& state = states[group];
    state.at_most_once = (image->flags & kAtMostOnce) != 0;
    state.user.uid = image->uid_plus_1 - 1;
    state.user.is_guest = (image->flags & kOfGuest) != 0;
    const Image::Next& next = image->next[image->which_next.load() % 2];
    state.next = next.step;
    state.next_cursor = next.cursor.Get();
    for (const Image::Entry& entry : image->entries) {
      const uint64_t step_plus_1 = entry.step_plus_1.load();
      if (step_plus_1 == 0) continue;
      state.entries.push_back({step_plus_1 - 1, entry.identity.load(),
                               entry.redelivered.load() != 0, entry.cursor.Get()});
    }
    kept_[group] = {number, image};
  }
  return states;
}

void SplitFiles::Remove(const StateFolder& folder, const std::string& pipeline) {
  for (int number = 0; number < kMaxGroups; ++number) {
    unlink(folder.PathOf(FileName(pipeline, number)).c_str());
  }
}

SplitFiles::Image* SplitFiles::Find(std::string_view group) {
  const auto found = kept_.find(group);
  return found == kept_.end() ? nullptr : found->second.image;
}

int SplitFiles::FreeNumber() const {
  int number = 0;
  const auto is_taken = [this](int wanted) {
    return std::any_of(kept_.begin(), kept_.end(),
                       [wanted](const auto& one) { return one.second.number == wanted; });
  };
  while (number < kMaxGroups && is_taken(number)) ++number;
  return number;
}

void SplitFiles::Begin(std::string_view group, bool at_most_once, const ring::SplitUser& user,
                       uint64_t next, std::string_view cursor) {
  if (group.size() > kMaxGroupBytes) return;
  std::lock_guard<std::mutex> lock(retire_mutex_);
  if (retired_) return;
  Image* image = Find(group);
  if (image == nullptr) {
    const int number = FreeNumber();
    if (number == kMaxGroups) {
      spdlog::warn("pipeline {}: group {} is not remembered: {} are already", pipeline_,
                   std::string(group), kMaxGroups);
      return;
    }
    image = Map(number, /*create=*/true);
    if (image == nullptr) {
      spdlog::warn("pipeline {}: group {} is not remembered: no room in {}", pipeline_,
                   std::string(group), folder_.path());
      return;
    }
    kept_[std::string(group)] = {number, image};
  }
  image->magic.store(0);
  for (Image::Entry& entry : image->entries) entry.step_plus_1.store(0);
  image->flags = (at_most_once ? kAtMostOnce : 0) | (user.is_guest ? kOfGuest : 0);
  image->uid_plus_1 = user.uid + 1;
  image->group_bytes = static_cast<uint32_t>(group.size());
  std::memcpy(image->group, group.data(), group.size());
  image->SetNext(next, cursor);
  image->magic.store(kMagic);
}

void SplitFiles::Set(std::string_view group, const ring::SplitEntry& entry) {
  Image* image = Find(group);
  if (image == nullptr) return;
  Image::Entry* place = image->Find(entry.step + 1);
  const bool is_new = place == nullptr;
  if (is_new) place = image->Find(0);
  if (place == nullptr) return;
  if (is_new) place->cursor.Put(entry.cursor);
  place->redelivered.store(entry.redelivered);
  place->identity.store(entry.identity);
  if (is_new) place->step_plus_1.store(entry.step + 1, std::memory_order_release);
}

void SplitFiles::Clear(std::string_view group, uint64_t step) {
  Image* image = Find(group);
  if (image == nullptr) return;
  if (Image::Entry* place = image->Find(step + 1)) place->step_plus_1.store(0);
}

void SplitFiles::SetNext(std::string_view group, uint64_t next, std::string_view cursor) {
  if (Image* image = Find(group)) image->SetNext(next, cursor);
}

void SplitFiles::End(std::string_view group) {
  const auto found = kept_.find(group);
  if (found == kept_.end()) return;
  Image* const image = found->second.image;
  // The file stays, since its removal would wait for the disk: a new daemon goes by this and
  // removes it, and the next group may have it.
  image->magic.store(0);
  munmap(image, sizeof(Image));
  kept_.erase(found);
}

void SplitFiles::Retire(bool retired) {
  std::lock_guard<std::mutex> lock(retire_mutex_);
  retired_ = retired;
}

void SplitFiles::EndAll() {
  while (!kept_.empty()) End(std::string(kept_.begin()->first));
}

}  // namespace penstock
