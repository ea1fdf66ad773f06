// Which call to a disk a thread is in, so that somebody else sees one that hangs: a read, the
// opening of a file, a look at a map, a write.
//
//     CallSpot      where one thread shows it; somebody else looks there
//     PendingCall   stands around the call
//
// Threads:  a PendingCall and a CallSpot::OfThisThread belong to their thread; Look() from any
//           thread, at any time.
// Owns:     nothing; the path must outlive the PendingCall.
// Limits:   where calls stand within each other the innermost one is shown; the outer one begins
//           anew behind it.
// Cost:     a reading of the clock and one atomic operation, about 10 ns, for each call; nothing in
//           a thread without a spot.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/tick_clock.h"

namespace penstock {

class PendingCall;

enum class CallKind : uint8_t {
  kRead,   // of data that is wanted
  kWrite,  // of what is kept
  kSync,   // waits until that is durable: as long as it takes to write all of it
  kWork,   // neither: of rows that another process computes, or a file that is gone through
};

// What a look found.
struct CallSeen {
  CallKind kind = CallKind::kRead;
  std::string doing;  // "reading", "opening", "listing"; "writing", "syncing" and others
  std::string path;
  uint64_t offset = 0;
  uint64_t ticks = 0;  // that it has taken so far
};

class CallSpot {
 public:
  CallSpot() = default;
  CallSpot(const CallSpot&) = delete;
  CallSpot& operator=(const CallSpot&) = delete;

  // For the length of a C++ scope the calls of this thread are shown there.
  class OfThisThread {
   public:
    explicit OfThisThread(CallSpot& spot);
    ~OfThisThread();
    OfThisThread(const OfThisThread&) = delete;
    OfThisThread& operator=(const OfThisThread&) = delete;

   private:
    CallSpot* const outer_;
  };

  // The call that is under way, if it has taken at least so long.
  std::optional<CallSeen> Look(uint64_t ticks_min = 0) const;

 private:
  friend class PendingCall;

  enum State : uint32_t { kNone, kShown, kLookedAt };

  // Waits for who looks. REQUIRES: the spot's own thread, and that a call is shown.
  void Hide();

  mutable std::atomic<uint32_t> state_{kNone};  // SYNC call-shown
  PendingCall* call_ = nullptr;  // the thread's while the state is kNone; else constant
};

class PendingCall {
 public:
  // `doing`: static text.
  PendingCall(const char* doing, const std::string& path, uint64_t offset = 0,
              CallKind kind = CallKind::kRead);
  ~PendingCall();
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

 private:
  friend class CallSpot;

  const char* const doing_;
  const std::string& path_;
  const uint64_t offset_;
  const CallKind kind_;
  uint64_t since_;
  CallSpot* const spot_;  // may be null
  PendingCall* outer_ = nullptr;
};

}  // namespace penstock
