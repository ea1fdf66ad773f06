#include "ring/split_group.h"

#include <algorithm>
#include <utility>

namespace penstock::ring {

SplitGroup::SplitGroup(const ConsumerSpec& first, uint64_t start, std::string_view cursor,
                       SplitLog* log)
    : name_(first.group),
      at_most_once_(first.at_most_once),
      log_(log),
      start_(start),
      page_(new ControlPage{}),
      first_new_(start),
      next_(start) {
  waited_for_.uid = first.uid;
  waited_for_.is_guest = first.is_guest;
  if (log_ != nullptr)
    log_->Begin(name_, at_most_once_, {first.uid, first.is_guest}, start, cursor);
}

SplitGroup::SplitGroup(std::string name, const SplitState& state, SplitLog* log)
    : name_(std::move(name)),
      at_most_once_(state.at_most_once),
      log_(log),
      start_(state.first()),
      page_(new ControlPage{}),
      first_new_(state.next),
      next_(state.next),
      took_anything_(true),
      is_lost_(true) {
  // Whoever comes back first, it stays whose it was.
  waited_for_.uid = state.user.uid;
  waited_for_.is_guest = state.user.is_guest;
  for (const SplitEntry& entry : state.entries) {
    Item& item = items_[entry.step];
    item.state = entry.identity != 0 ? State::kAway : State::kAvailable;
    item.identity = entry.identity;
    item.redelivered = entry.redelivered;
    item.before = entry.cursor;
    // Killed between the entry and the number behind it.
    next_ = first_new_ = std::max(next_, entry.step + 1);
  }
}

void SplitGroup::Finish(Items::iterator item) {
  if (log_ != nullptr) log_->Clear(name_, item->first);
  if (item->second.slot >= 0) {
    page_->released[item->second.slot].store(item->first + 1, std::memory_order_seq_cst);
  }
  items_.erase(item);
}

void SplitGroup::GiveBack(Items::iterator item) {
  if (at_most_once_) {
    ++lost_;
    Finish(item);
    return;
  }
  ++redelivered_;
  item->second.state = State::kAvailable;
  item->second.redelivered = true;
  item->second.held_bit = -1;
  if (log_ != nullptr) log_->Set(name_, {item->first, 0, true, item->second.before});
}

void SplitGroup::Rejoin(const Taker& taker, const ConsumerPosition& position) {
  if (taker.identity == 0) return;
  for (auto item = items_.begin(); item != items_.end();) {
    const auto current = item++;
    Item& away = current->second;
    if (away.state != State::kAway || away.identity != taker.identity) continue;
    const auto held = std::find(position.held.begin(), position.held.end(), current->first);
    if (held != position.held.end()) {
      away.state = State::kLeased;
      away.consumer = taker.id;
      away.held_bit = static_cast<int>(held - position.held.begin());
    } else if (std::find(position.returned.begin(), position.returned.end(), current->first) !=
               position.returned.end()) {
      Finish(current);
    } else {
      // Given to it in the daemon's last moment: it has not seen it.
      away.state = State::kAvailable;
    }
  }
}

void SplitGroup::EndRestore() {
  for (auto item = items_.begin(); item != items_.end();) {
    const auto current = item++;
    if (current->second.state == State::kAway) GiveBack(current);
  }
}

void SplitGroup::Publish(uint64_t step, uint32_t slot, std::string_view before,
                         std::string_view behind) {
  if (step < start_) return;
  if (step >= first_new_) {
    Item& item = items_[step];
    item.slot = static_cast<int>(slot);
    item.before = before;
    item.behind = behind;
    return;
  }
  const auto found = items_.find(step);
  if (found == items_.end()) {
    page_->released[slot].store(step + 1, std::memory_order_seq_cst);
  } else {
    found->second.slot = static_cast<int>(slot);
  }
}

bool SplitGroup::IsReturned(uint64_t step, const Item& item, const Taker& taker) const {
  if (item.held_bit >= 0) {
    return (taker.page->returned.load(std::memory_order_seq_cst) >> item.held_bit & 1) != 0;
  }
  return item.slot >= 0 &&
         taker.page->released[item.slot].load(std::memory_order_seq_cst) == step + 1;
}

void SplitGroup::Collect(std::span<const Taker> takers) {
  for (auto item = items_.begin(); item != items_.end();) {
    const auto current = item++;
    if (current->second.state != State::kLeased) continue;
    for (const Taker& taker : takers) {
      if (taker.id != current->second.consumer) continue;
      // SYNC slot-release: acquires the consumer's last reads of the slot.
      if (IsReturned(current->first, current->second, taker)) Finish(current);
      break;
    }
  }
}

std::vector<uint32_t> SplitGroup::Grant(std::span<const Taker> takers, std::optional<Code> end) {
  std::vector<uint32_t> woken;
  const auto asks = [](const Taker& taker) {
    return taker.may_take && taker.page->asked.load(std::memory_order_seq_cst) > *taker.granted;
  };
  std::vector<const Taker*> in_line;
  for (const uint32_t id : waiting_) {
    const auto found = std::find_if(takers.begin(), takers.end(),
                                    [id](const Taker& taker) { return taker.id == id; });
    if (found != takers.end() && asks(*found)) in_line.push_back(&*found);
  }
  for (const Taker& taker : takers) {
    if (asks(taker) && std::find(in_line.begin(), in_line.end(), &taker) == in_line.end())
      in_line.push_back(&taker);
  }
  waiting_.clear();
  for (const Taker* const asking : in_line) {
    const Taker& taker = *asking;
    const auto item = std::find_if(items_.begin(), items_.end(), [](const auto& candidate) {
      return candidate.second.can_be_given();
    });
    if (item == items_.end() || Leases(taker.id) >= taker.leases_max) {
      waiting_.push_back(taker.id);
      continue;
    }
    Item& given = item->second;
    const uint64_t step = item->first;
    given.state = State::kLeased;
    given.consumer = taker.id;
    if (log_ != nullptr) {
      log_->Set(name_, {step, taker.identity, given.redelivered, given.before});
      if (step >= next_) log_->SetNext(name_, step + 1, given.behind);
    }
    next_ = std::max(next_, step + 1);
    const uint64_t granted = (*taker.granted)++;
    ++num_grants_;
    took_anything_ = true;
    given.grant = granted;
    taker.page->grants[granted % kMaxSlots] = {step | (given.redelivered ? kRedelivered : 0),
                                               static_cast<uint64_t>(given.slot)};
    // SYNC step-grant: the grant comes before.
    taker.page->granted.store(granted + 1, std::memory_order_seq_cst);
    woken.push_back(taker.id);
  }
  if (!end) return woken;
  for (const auto& [step, item] : items_) {
    if (item.can_be_given()) return woken;
    // Nobody waits for what may come back in front of a failure.
    if (*end != Code::kOk) continue;
    if (item.state != State::kLeased) return woken;
    // What an asking consumer still holds cannot come back to itself.
    for (const Taker& taker : takers) {
      if (taker.id == item.consumer && !asks(taker) && taker.may_take) return woken;
    }
  }
  for (const Taker& taker : takers) {
    if (!asks(taker)) continue;
    *taker.told_end = true;
    taker.page->grants_ended.store(1, std::memory_order_seq_cst);
    woken.push_back(taker.id);
  }
  return woken;
}

void SplitGroup::BeginLater() {
  std::erase_if(items_, [this](const auto& entry) {
    const auto& [step, item] = entry;
    if (!item.can_be_given()) return false;
    if (log_ != nullptr) log_->SetNext(name_, step + 1, item.behind);
    next_ = std::max(next_, step + 1);
    page_->released[item.slot].store(step + 1, std::memory_order_seq_cst);
    return true;
  });
}

void SplitGroup::TakeBack(uint32_t consumer, uint64_t taken) {
  for (auto& [step, item] : items_) {
    if (item.state != State::kLeased || item.consumer != consumer || item.held_bit >= 0 ||
        item.grant < taken) {
      continue;
    }
    item.state = State::kAvailable;
    if (log_ != nullptr) log_->Set(name_, {step, 0, item.redelivered, item.before});
  }
}

void SplitGroup::Forget(uint32_t consumer) {
  for (auto item = items_.begin(); item != items_.end();) {
    const auto current = item++;
    if (current->second.state == State::kLeased && current->second.consumer == consumer) {
      GiveBack(current);
    }
  }
}

uint64_t SplitGroup::available() const {
  return std::count_if(items_.begin(), items_.end(),
                       [](const auto& item) { return item.second.can_be_given(); });
}

bool SplitGroup::HasUnfinished() const {
  return std::any_of(items_.begin(), items_.end(), [](const auto& item) {
    return item.second.redelivered || item.second.state != State::kAvailable;
  });
}

uint64_t SplitGroup::LeasedSlots(uint32_t consumer, uint64_t* below) const {
  uint64_t slots = 0;
  *below = 0;
  for (const auto& [step, item] : items_) {
    if (item.state != State::kLeased || item.consumer != consumer || item.held_bit >= 0) continue;
    slots |= uint64_t{1} << item.slot;
    *below = step + 1;
  }
  return slots;
}

uint32_t SplitGroup::KeptForIt(uint32_t consumer) const {
  return static_cast<uint32_t>(
      std::count_if(items_.begin(), items_.end(), [consumer](const auto& item) {
        return item.second.state == State::kLeased && item.second.consumer == consumer &&
               item.second.held_bit >= 0;
      }));
}

uint32_t SplitGroup::Leases(uint32_t consumer) const {
  return static_cast<uint32_t>(
      std::count_if(items_.begin(), items_.end(), [consumer](const auto& item) {
        return item.second.state == State::kLeased && item.second.consumer == consumer &&
               item.second.held_bit < 0;
      }));
}

}  // namespace penstock::ring
