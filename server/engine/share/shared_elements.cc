#include "server/engine/share/shared_elements.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/row_identity.h"

namespace penstock {

struct SharedElement {
  SharedElements::Key key;
  bool ready = false;
  uint8_t* cell = nullptr;
  uint32_t length = 0;
  uint32_t pins = 0;    // callers that look at it
  uint64_t taken = 0;   // by which members
  uint64_t put_at = 0;  // made_bytes_ then
  std::list<SharedElement*>::iterator place = {};

  uint64_t bytes() const { return CellRegion::Rounded(length) + SharedElements::kElementOverhead; }
};

namespace {

// Elements beyond this part of the window are not kept.
constexpr uint64_t kLargestPart = 4;
// All elements are gone through at most once in this part of a window.
constexpr uint64_t kSweepPart = 8;

uint64_t BitOf(int member) { return uint64_t{1} << member; }

// Whether there is nobody to keep an element for.
template <typename Groups>
bool NobodyShares(const Groups& groups) {
  return std::none_of(groups.begin(), groups.end(),
                      [](const auto& group) { return std::popcount(group.second.all) > 1; });
}

}  // namespace

size_t SharedElements::HashOfKey::operator()(const Key& key) const {
  return MixPath(MixPath(key.group, key.file), key.offset);
}

SharedElements::SharedElements(uint64_t bytes_max) : bytes_max_(bytes_max), region_(bytes_max) {}
SharedElements::~SharedElements() = default;

SharedElements::Group SharedElements::AddGroup() {
  std::lock_guard<std::mutex> lock(mutex_);
  groups_[next_group_];
  return next_group_++;
}

std::optional<int> SharedElements::Join(Group group, absl::Span<const uint32_t> files) {
  std::lock_guard<std::mutex> lock(mutex_);
  Members& members = groups_.at(group);
  const int member = std::countr_one(members.all);
  if (member == kMaxMembers) return std::nullopt;
  members.all |= BitOf(member);
  members.looked_at[member] = made_bytes_;
  for (const uint32_t file : files) {
    if (members.of_file.size() <= file) members.of_file.resize(file + 1);
    members.of_file[file] |= BitOf(member);
  }
  return member;
}

void SharedElements::Leave(Group group, int member) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Members& members = groups_.at(group);
    members.all &= ~BitOf(member);
    for (uint64_t& mask : members.of_file) mask &= ~BitOf(member);
    // What waited for it alone goes; what it has taken is another one's who gets its number.
    RemoveAll([&](SharedElement& element) {
      if (element.key.group != group) return false;
      element.taken &= ~BitOf(member);
      const uint64_t needed = NeededBy(members, element.key.file);
      return std::popcount(needed) < 2 || (needed & ~element.taken) == 0;
    });
    if (NobodyShares(groups_) && region_.used() == 0) region_.GiveBack();
  }
  changed_.notify_all();
}

void SharedElements::RemoveGroup(Group group) {
  std::lock_guard<std::mutex> lock(mutex_);
  RemoveAll([group](const SharedElement& element) { return element.key.group == group; });
  groups_.erase(group);
}

uint64_t SharedElements::NeededBy(const Members& members, uint32_t file) const {
  return file < members.of_file.size() ? members.of_file[file] : 0;
}

uint64_t SharedElements::Awake(const Members& members) const {
  uint64_t awake = 0;
  for (uint64_t left = members.all; left != 0; left &= left - 1) {
    const int member = std::countr_zero(left);
    if (made_bytes_ - members.looked_at[member] <= bytes_max_) awake |= BitOf(member);
  }
  return awake;
}

bool SharedElements::IsStale(const SharedElement& element) const {
  return made_bytes_ - element.put_at > kStaleWindows * bytes_max_;
}

void SharedElements::Free(SharedElement* element) {
  region_.Release(element->cell, element->length);
  full_ = false;
}

// A pinned one's memory goes with its last pin.
void SharedElements::Remove(SharedElement* element) {
  const auto found = elements_.find(element->key);
  std::unique_ptr<SharedElement> owned = std::move(found->second);
  elements_.erase(found);
  if (element->ready) {
    ready_.erase(element->place);
    if (const auto group = groups_.find(element->key.group); group != groups_.end()) {
      --group->second.held.elements;
      group->second.held.bytes -= element->bytes();
    }
  }
  if (element->cell == nullptr) return;
  if (element->pins == 0) return Free(element);
  gone_.emplace(element, std::move(owned));
}

template <typename Gone>
void SharedElements::RemoveAll(const Gone& gone) {
  for (auto place = ready_.begin(); place != ready_.end();) {
    SharedElement* const element = *place++;
    if (gone(*element)) Remove(element);
  }
}

void SharedElements::MakeRoom() {
  while (!ready_.empty() && IsStale(*ready_.front())) Remove(ready_.front());
  if (made_bytes_ - swept_at_ < bytes_max_ / kSweepPart) return;
  swept_at_ = made_bytes_;
  std::unordered_map<Group, uint64_t> awake;
  for (const auto& [group, members] : groups_) awake[group] = Awake(members);
  RemoveAll([&](SharedElement& element) {
    const uint64_t mask = awake[element.key.group];
    const uint64_t needed = NeededBy(groups_.at(element.key.group), element.key.file) & mask;
    return std::popcount(needed) >= 2 && (needed & ~element.taken) == 0;
  });
}

void SharedElements::Find(Group group, int member, absl::Span<Row> rows, size_t mine_max) {
  std::lock_guard<std::mutex> lock(mutex_);
  Members& members = groups_.at(group);
  members.looked_at[member] = made_bytes_;
  if (full_) MakeRoom();
  for (Row& row : rows) {
    if (row.found != Found::kOpen) continue;
    const uint64_t needed = NeededBy(members, row.file);
    if ((needed & ~BitOf(member)) == 0) {
      row.found = Found::kAlone;
      continue;
    }
    const Key key{group, row.file, row.offset};
    const auto found = elements_.find(key);
    if (found == elements_.end()) {
      if (full_) {
        // Nobody needs to wait for what will find no room.
        row.found = Found::kAlone;
        if (members.made_elements > 0) made_bytes_ += members.made_bytes / members.made_elements;
        continue;
      }
      if (mine_max == 0) continue;
      --mine_max;
      auto element = std::make_unique<SharedElement>();
      element->key = key;
      row.found = Found::kMine;
      row.element = element.get();
      elements_.emplace(key, std::move(element));
      continue;
    }
    SharedElement& element = *found->second;
    if (!element.ready) continue;
    row.found = Found::kHit;
    row.element = &element;
    row.data = element.cell;
    row.length = element.length;
    ++element.pins;
    element.taken |= BitOf(member);
    if ((needed & ~element.taken) == 0) Remove(&element);
  }
}

bool SharedElements::Wait(Group group, absl::Span<const Row> rows, absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [&] {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
      if (row.found != Found::kOpen) return false;
      const auto found = elements_.find({group, row.file, row.offset});
      return found == elements_.end() || found->second->ready;
    });
  });
}

uint8_t* SharedElements::Room(Group group, Row* row) {
  SharedElement* const element = row->element;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    element->length = row->length;
    Members& members = groups_.at(group);
    ++members.made_elements;
    members.made_bytes += element->bytes();
    made_bytes_ += element->bytes();
    const auto take = [&]() -> uint8_t* {
      uint64_t held = gone_.size() * kElementOverhead + region_.used();
      held += elements_.size() * kElementOverhead;
      if (held + CellRegion::Rounded(row->length) > bytes_max_) return nullptr;
      return region_.Take(row->length);
    };
    if (element->bytes() <= bytes_max_ / kLargestPart) {
      element->cell = take();
      if (element->cell == nullptr) {
        MakeRoom();
        element->cell = take();
      }
      full_ = element->cell == nullptr;
    }
    if (element->cell != nullptr) return element->cell;
    row->found = Found::kAlone;
    row->element = nullptr;
    Remove(element);
  }
  changed_.notify_all();
  return nullptr;
}

void SharedElements::Put(Group group, int member, absl::Span<Row> rows) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Members& members = groups_.at(group);
    for (Row& row : rows) {
      if (row.found != Found::kMine) continue;
      SharedElement& element = *row.element;
      element.ready = true;
      element.pins = 1;
      element.taken = BitOf(member);
      element.put_at = made_bytes_;
      element.place = ready_.insert(ready_.end(), &element);
      ++members.held.elements;
      members.held.bytes += element.bytes();
      row.found = Found::kHit;
      row.data = element.cell;
      // The others may have left meanwhile.
      if ((NeededBy(members, row.file) & ~element.taken) == 0) Remove(&element);
    }
  }
  changed_.notify_all();
}

void SharedElements::Drop(absl::Span<Row> rows) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Row& row : rows) {
      if (row.found != Found::kMine) continue;
      Remove(row.element);
      row.found = Found::kAlone;
      row.element = nullptr;
    }
  }
  changed_.notify_all();
}

void SharedElements::Release(absl::Span<SharedElement* const> elements) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (SharedElement* element : elements) {
    if (--element->pins > 0) continue;
    const auto gone = gone_.find(element);
    if (gone == gone_.end()) continue;
    Free(element);
    gone_.erase(gone);
  }
  if (NobodyShares(groups_) && region_.used() == 0) region_.GiveBack();
}

SharedElements::Held SharedElements::HeldBy(Group group) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return groups_.at(group).held;
}

}  // namespace penstock
