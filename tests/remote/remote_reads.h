// Objects, settings and reads for tests of files at addresses.
//
// Threads:  Awaited: any.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>

#include "base/completion.h"
#include "base/file.h"
#include "io/remote/remote_file_system.h"
#include "tests/support/scratch_folder.h"

namespace penstock::test {

inline std::string Bytes(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

inline Environment NoEnvironment() {
  Environment environment;
  environment.variable = [](const std::string&) { return ""; };
  environment.read_file = [](const std::string& path) -> absl::StatusOr<std::string> {
    if (path == "secret") return std::string("VERYSECRETKEY\n");
    return absl::NotFoundError("no files");
  };
  return environment;
}

inline RemoteOptions Options(const std::string& endpoint = "", bool has_keys = false) {
  RemoteOptions options;
  options.reach = Reach::kLoopback;
  options.memory_bytes = 64 << 20;
  if (endpoint.empty()) return options;
  RemotePrefix prefix;
  prefix.prefix = "s3://";
  prefix.endpoint = endpoint;
  if (has_keys) {
    prefix.access_key_id = "AKID";
    prefix.secret_access_key_file = "secret";
  }
  options.prefixes = {prefix};
  return options;
}

// With a cache folder, and little memory, so that what is read again of an object of 40 MiB is not near.
inline RemoteOptions Cached(const ScratchFolder& folder) {
  RemoteOptions options = Options();
  options.memory_bytes = 16 << 20;
  options.cache_folder = folder / "cache";
  return options;
}

inline absl::StatusOr<std::string> ReadWhole(RandomAccessFile& file, size_t piece) {
  std::string whole(file.size(), '\0');
  for (size_t at = 0; at < whole.size(); at += piece) {
    const size_t bytes = std::min(piece, whole.size() - at);
    absl::StatusOr<size_t> read =
        file.ReadAt(at, {reinterpret_cast<uint8_t*>(whole.data()) + at, bytes});
    if (!read.ok()) return read.status();
    if (*read != bytes) return absl::DataLossError("short");
  }
  return whole;
}

// Waits for what it gave its completion to.
class Awaited final : public Completion::Sink {
 public:
  explicit Awaited(bool is_stopped = false) : is_stopped_(is_stopped) {}
  void End(absl::Status status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    has_ended_ = true;
    ended_.notify_all();
  }
  void OnCancel(std::function<void()> cancel) override {
    if (is_stopped_) return cancel();
    cancel_ = std::move(cancel);
  }
  absl::Status Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [this] { return has_ended_; });
    return status_;
  }
  void Cancel() { cancel_(); }

 private:
  const bool is_stopped_;  // and cancels at once
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  absl::Status status_;
  std::function<void()> cancel_;
};

}  // namespace penstock::test
