// What something that grows has taken of its pipeline's memory: lists, strings and maps that are no
// blocks (base/memory_block.h).
//
// Threads:  Add() and Remove() from any thread; MakeRoom() from the one that has the list.
// Owns:     what it has taken, until it goes.
// Cost:     as MemoryAccount::Take(), only when a list grows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/memory_account.h"

namespace penstock {

// Room for `more` further elements of a vector or string, all of whose memory is of `charge`.
template <typename List, typename Charge>
void ChargeRoom(List& list, uint64_t more, Charge& charge) {
  if (more <= list.capacity() - list.size()) return;
  const uint64_t capacity = std::max<uint64_t>(list.size() + more, 2 * list.capacity());
  charge.Add((capacity - list.capacity()) * sizeof(list[0]));
  list.reserve(capacity);
}

class MemoryCharge {
 public:
  // To the account of the thread that makes it.
  MemoryCharge() {
    if (MemoryAccount* const account = MemoryAccount::OfThisThread())
      account_ = account->shared_from_this();
  }
  ~MemoryCharge() { Clear(); }
  MemoryCharge(const MemoryCharge&) = delete;
  MemoryCharge& operator=(const MemoryCharge&) = delete;

  // Throws MemoryLimitError, with nothing taken.
  void Add(uint64_t bytes) {
    if (account_ == nullptr) return;
    account_->Take(bytes);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void Remove(uint64_t bytes) {
    if (account_ == nullptr) return;
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    account_->GiveBack(bytes);
  }
  void Clear() {
    const uint64_t bytes = bytes_.exchange(0, std::memory_order_relaxed);
    if (account_ != nullptr && bytes > 0) account_->GiveBack(bytes);
  }

  // As ChargeRoom().
  template <typename List>
  void MakeRoom(List& list, uint64_t more) {
    ChargeRoom(list, more, *this);
  }

 private:
  std::shared_ptr<MemoryAccount> account_;  // may be null
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace penstock
