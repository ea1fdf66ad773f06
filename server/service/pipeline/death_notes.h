// What the daemon before this one died of, and under which pipeline: so that one which ends every
// daemon is set aside, and the others run.
//
// A page of the state folder is mapped for as long as a daemon lives, and outlives it however it
// ends:
//
//   running   each pipeline's name and what it has taken of memory; whose work a fatal signal met;
//             how often the kernel had ended processes for want of memory; whether the daemon has
//             ended by itself
//
// The next daemon reads it. A death by a fatal signal (a fault, an abort) is that of the pipeline
// for which the thread worked. One by SIGKILL, which is how the kernel ends a process for want of
// memory, is that of the pipeline that had taken most, where the kernel has done so since; whoever
// is killed by a person is nobody's death. Deaths are written down under the pipeline's name
// (NAME.deaths).
//
// Threads:  Enter() and Leave() from any; the rest at the start and at the end.
// Owns:     the page's map. It must outlive the pipelines.
// Limits:   kMaxEntries pipelines; what has no entry is charged with nothing.
// Cost:     what a pipeline has taken is a store beside the counting; a signal's handler writes one
//           number.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/memory_account.h"
#include "server/service/state/state_folder.h"

namespace penstock {

class DeathNotes {
 public:
  static constexpr size_t kMaxEntries = 512;
  // A pipeline under which so many daemons have died within kWithinMs is not brought back by
  // itself.
  static constexpr size_t kDeathsMax = 3;
  static constexpr int64_t kWithinMs = 10 * 60 * 1000;

  struct Death {
    int64_t unix_ms = 0;
    std::string cause;  // "signal 11 (Segmentation fault)"
  };

  // How often the kernel has ended a process for want of memory; absent where it does not say. Of
  // the machine.
  static std::optional<uint64_t> OutOfMemoryKills(const std::string& root = "");

  // Reads what the daemon before this one has left, writes its death down, and begins a page of its
  // own. `folder` must outlive it. `now_unix_ms`, and how often the kernel has ended processes:
  // given, for tests.
  static absl::StatusOr<std::unique_ptr<DeathNotes>> Open(
      const StateFolder& folder, int64_t now_unix_ms,
      std::optional<uint64_t> out_of_memory_kills = OutOfMemoryKills());
  // The daemon ends by itself.
  ~DeathNotes();

  // Under which pipeline the daemon before this one died, and of what; nothing where that is
  // nobody's.
  const std::optional<std::pair<std::string, Death>>& last() const { return last_; }

  // Why the pipeline is not to be brought back by itself; nothing where it may be.
  std::optional<std::string> SetAside(const std::string& pipeline) const;
  // What there was is forgotten: it is tried again, or gone.
  void Forget(const std::string& pipeline);

  // Where what the pipeline has taken is to be shown; null when there is no entry left. Its entry
  // ends with the last reference.
  std::shared_ptr<MemoryAccount::Shown> Enter(const std::string& pipeline);

  // Has fatal signals noted, in whatever thread they come, before they end the process.
  void NoteSignals();

  struct Page;

 private:
  DeathNotes(const StateFolder& folder, int64_t now_unix_ms, Page* page);
  void WriteDown(const std::string& pipeline, const Death& death);
  std::vector<Death> DeathsOf(const std::string& pipeline) const;

  const StateFolder& folder_;
  const int64_t now_unix_ms_;
  const std::shared_ptr<Page> page_;
  std::optional<std::pair<std::string, Death>> last_;
  std::mutex mutex_;  // of taking entries
};

}  // namespace penstock
