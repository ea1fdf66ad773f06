// A folder of small files that survive a crash at any moment: each is read back as it was written
// last, or as it was before, or not at all.
//
//   file:  "PNSTATE1" │ bytes (u64) │ CRC-32C of what follows (u32) │ the text
//
// Threads:  safe from any thread for different names.
// Owns:     a lock on the folder for as long as it lives: one daemon has it. A copy of each text,
//           for a folder that somebody removes.
// Limits:   kMaxBytes a file.
// Cost:     Write() waits for the disk, twice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ring/descriptor.h"

namespace penstock {

class StateFolder {
 public:
  static constexpr uint64_t kMaxBytes = 64 << 20;

  enum class Durability {
    kPowerLoss,  // it is on the disk when Write() returns
    kCrash,      // it survives this process, not the machine
  };

  // Makes the folder (mode 0750) if it is missing. FailedPrecondition when another process has it.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Open(const std::string& path);

  // ResourceExhausted for what Read() would not read.
  absl::Status Write(const std::string& name, std::string_view text, Durability durability) const;
  // NotFound; DataLoss for a file that is not whole.
  absl::StatusOr<std::string> Read(const std::string& name) const;
  bool Has(const std::string& name) const;
  // An error where it is still there.
  absl::Status Remove(const std::string& name) const;
  // What was made or removed in it is on the disk when this returns.
  absl::Status Sync() const;
  // The names that end with `suffix`, in their order.
  std::vector<std::string> List(std::string_view suffix) const;
  // Puts a file that is of no use aside, under another name.
  void SetAside(const std::string& name) const;

  // Whether the folder and its lock are still where they were.
  bool IsInPlace() const;
  // Makes the folder again with its lock and all files that were read or written here.
  // FailedPrecondition when another process has taken its place. What others keep in it by its
  // path, as split groups do, is gone.
  absl::Status PutBack() const;

  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  StateFolder(std::string path, ring::Descriptor folder, ring::Descriptor lock)
      : path_(std::move(path)), folder_(std::move(folder)), lock_(std::move(lock)) {}

  void Remember(const std::string& name, std::string_view text) const;

  const std::string path_;
  // Their numbers stay; PutBack() puts others in their place.
  const ring::Descriptor folder_;
  const ring::Descriptor lock_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> texts_;  // under mutex_
};

// Where a daemon that serves `socket` keeps its state if nobody says: below $PENSTOCK_STATE_DIR,
// $STATE_DIRECTORY (systemd), $XDG_STATE_HOME/penstock or ~/.local/state/penstock, in a folder that
// is named by the socket. "" where none of them is set.
std::string DefaultStateFolder(const std::string& socket);

}  // namespace penstock
