// How far a pipeline has been handed out: the first step that nobody can ever have had, of this
// daemon or of one before it. A change of what its batches hold begins there or later, never behind
// it.
//
//   step   0            handed out                claimed           limit
//          ├──────────────┴──────────────────────────┴────────────────┴───────────►
//          what somebody may have had                may be claimed    waits until more is reserved
//
// A step is claimed before it is made. Only those below the limit are, and the limit is on the disk
// (HighWaterFile) before it holds, so that after any death, of the machine too, the next daemon
// knows a step that nobody has had: the limit. It is raised in ranges, long before it is reached: a
// range is what is made in kLead, or in four times what writing took last if that is more, and the
// next one is asked for as soon as less than one is left. So the data path does not wait for the
// disk. Where the disk hangs, or refuses, for longer than that, no step is claimed until it is
// back: what could not be kept would be forgotten. Where less is made the limit is lowered again,
// so that a change after a death need not wait for long. A clean end writes what was handed out,
// exactly.
//
// Threads:  safe from any thread. The disk is waited for by whoever runs what `run_later` is given,
//           in WriteFirst() and in WriteLast().
// Limits:   a range has kLeastRange to kMostRange steps.
// Cost:     MayClaim() and Published() are a few operations under a lock, one each a step.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock {

struct HighWaterOptions {
  std::string pipeline;
  // Makes it durable that steps in front of that one may be handed out; null: nothing is to be
  // known later, and there is no limit.
  std::function<absl::Status(uint64_t step)> write = nullptr;
  std::string path = {};  // where that is, for who is told
  // The limit as it is written down, and whether it is an earlier daemon's, of which steps up to
  // there may have been handed out.
  uint64_t limit = 0;
  bool is_of_before = false;
  // Runs a task soon, on another thread; false: not now.
  std::function<bool(std::function<void()> task)> run_later = nullptr;
  std::function<uint64_t()> now_ns = nullptr;  // null: the system's
};

class HighWater : public std::enable_shared_from_this<HighWater> {
 public:
  // Of a new pipeline: how fast it is nobody knows, and Look() soon lowers it.
  static constexpr uint64_t kFirstLimit = 1024;
  static constexpr uint64_t kLeastRange = 16;
  static constexpr uint64_t kMostRange = uint64_t{1} << 40;
  static constexpr absl::Duration kLead = absl::Seconds(2);
  // Between two tries to write where one failed.
  static constexpr absl::Duration kRetry = absl::Milliseconds(250);

  static std::shared_ptr<HighWater> Create(HighWaterOptions options);

  // --- the data path ---
  // Whether a step may be claimed. Where it may not be, more is being reserved.
  bool MayClaim(uint64_t step);
  // Waits until MayClaim(step) may be true, Wake(), or the time is over.
  void WaitToClaim(uint64_t step, absl::Duration timeout);
  void Wake();
  // All steps in front of that one have been handed out, or are about to be.
  void Published(uint64_t step);

  // --- who changes the pipeline ---
  // The first step that nobody can have had.
  uint64_t first_free() const;
  // The part of it that an earlier daemon has left: who had what is not known up to there.
  uint64_t from_before() const;
  // Somebody has come who has had what stands in front of that step.
  void Raise(uint64_t step);

  // Lowers the limit where less is made than was reserved for, and tries again what failed. To be
  // called a few times a second.
  void Look();
  // For how long no step could be claimed since the limit is reached; nullopt where they can be.
  std::optional<uint64_t> HeldBackNs() const;
  const std::string& path() const { return options_.path; }

  // Writes the limit down as it is. Of a new pipeline, before anybody can attach.
  absl::Status WriteFirst();
  // Nothing is claimed, and nothing reserved any more.
  void Close();
  // Writes down exactly what was handed out. REQUIRES: Close(), and nothing is published any more.
  absl::Status WriteLast();

 private:
  explicit HighWater(HighWaterOptions options);

  // Has the limit raised so that `need` may be claimed. REQUIRES: mutex_.
  void Ask(uint64_t need);
  // REQUIRES: mutex_.
  void WriteLater(uint64_t target);
  void WriteNow();
  // The steps of a range at that many steps a second. REQUIRES: mutex_.
  uint64_t RangeAt(double rate) const;
  // At those of the last looks. REQUIRES: mutex_.
  void SetRange();
  double RateSince(uint64_t claims, uint64_t since_ns) const;  // REQUIRES: mutex_

  const HighWaterOptions options_;
  const uint64_t before_;  // an earlier daemon's limit, or 0

  // All steps in front of it have been handed out by this daemon, or whoever has come has had them.
  std::atomic<uint64_t> handed_{0};

  // One write after the other, and none of others behind Close(). Before mutex_.
  std::mutex write_mutex_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t limit_;              // under mutex_
  uint64_t claimed_ = 0;        // under mutex_: behind the highest step that was claimed
  uint64_t claims_ = 0;         // under mutex_: how many were
  uint64_t wakes_ = 0;          // under mutex_
  bool writing_ = false;        // under mutex_: `target_` is being written, or about to be
  uint64_t target_ = 0;         // under mutex_
  uint64_t asked_ns_ = 0;       // under mutex_: when that was asked for
  uint64_t write_ns_ = 0;       // under mutex_: how long the last one took, with what it waited for
  uint64_t retry_ns_ = 0;       // under mutex_: no write before that; 0: the last one did not fail
  uint64_t range_;              // under mutex_
  uint64_t refused_ns_ = 0;     // under mutex_: since when nothing can be claimed; 0: something can
  uint64_t refused_step_ = 0;   // under mutex_
  bool closed_ = false;         // under mutex_
  uint64_t looked_ns_;          // under mutex_: when the present look began
  uint64_t looked_claims_ = 0;  // under mutex_: the claims before it
  uint64_t mark_ns_;            // under mutex_: the later one of that and the last asking
  uint64_t mark_claims_ = 0;    // under mutex_
  std::array<double, 4> rates_ = {};  // under mutex_: of the last looks, in steps a second
  size_t look_ = 0;                   // under mutex_
};

}  // namespace penstock
