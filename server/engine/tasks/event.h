// An event count: sleeping without a lock and without a lost wake-up, and no system call when
// nobody sleeps.
//
// A sleeper takes a ticket, looks once more whether there is anything to do, and waits with the
// ticket; a notification after the ticket was taken makes the wait return at once.
//
// Threads:  safe from any thread of one process.
// Cost:     Notify: one atomic operation when nobody prepares or sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

class Event {
 public:
  using Ticket = uint32_t;

  Ticket Prepare() {
    waiters_.fetch_add(1, std::memory_order_seq_cst);  // SYNC event-waiters
    return count_.load(std::memory_order_seq_cst);
  }
  void Cancel() { waiters_.fetch_sub(1, std::memory_order_relaxed); }
  void Wait(Ticket ticket) {
    count_.wait(ticket, std::memory_order_seq_cst);
    Cancel();
  }

  // Whether Wait() would return at once.
  bool IsOver(Ticket ticket) const { return count_.load(std::memory_order_seq_cst) != ticket; }

  // Call after the change that sleepers wait for.
  void NotifyAll() {
    // A read-modify-write, so that the change before it cannot pass it.
    if (waiters_.fetch_add(0, std::memory_order_seq_cst) == 0) return;  // SYNC event-waiters
    count_.fetch_add(1, std::memory_order_seq_cst);
    count_.notify_all();
  }

 private:
  std::atomic<uint32_t> count_{0};
  std::atomic<int> waiters_{0};
};

}  // namespace penstock
