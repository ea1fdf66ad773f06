// A file system whose reads misbehave on demand, below what goes on with short reads and retries.
//
// Threads:  one thread at a time.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/read_fully.h"

namespace penstock::test {

// What one system call of a read does, instead of filling its buffer.
struct ReadFault {
  int error = 0;                  // errno; 0: none
  size_t bytes_max = ~size_t{0};  // at most so many are read
  bool truncate = false;          // the file is cut to half of its bytes before
};

// The fault of the n-th call (from 0) of all files.
using ReadFaults = std::function<ReadFault(uint64_t call)>;

// Files in memory, by path.
class FaultyFiles final : public FileSystem {
 public:
  FaultyFiles(std::map<std::string, std::string> files, ReadFaults faults)
      : state_(std::make_shared<State>(State{std::move(files), std::move(faults), 0, {}})) {}

  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    if (state_->files.count(path) == 0) return absl::NotFoundError("no such file: " + path);
    return std::make_shared<File>(state_, path);
  }

  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    if (state_->files.count(pattern) == 0) return absl::NotFoundError("no such file: " + pattern);
    return std::vector<ListedFile>{{pattern, state_->files[pattern].size(), {}}};
  }

  uint64_t calls() const { return state_->calls; }
  // The pauses that were asked for; none is waited for.
  const std::vector<int64_t>& pauses_ns() const { return state_->pauses_ns; }
  // What a path holds from now on, also for who has it open already.
  void Replace(const std::string& path, std::string bytes) {
    state_->files[path] = std::move(bytes);
  }

 private:
  struct State {
    std::map<std::string, std::string> files;
    ReadFaults faults;
    uint64_t calls;
    std::vector<int64_t> pauses_ns;
  };

  class File final : public RandomAccessFile {
   public:
    File(std::shared_ptr<State> state, std::string path)
        : state_(std::move(state)), path_(std::move(path)), size_(state_->files[path_].size()) {}
    const std::string& path() const override { return path_; }
    uint64_t size() const override { return size_; }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
      return ReadFully(
          path_, offset, out,
          [this](uint8_t* to, size_t bytes, uint64_t from) { return Read(to, bytes, from); },
          [this](int64_t pause_ns) { state_->pauses_ns.push_back(pause_ns); });
    }

   private:
    ssize_t Read(uint8_t* to, size_t bytes, uint64_t from) {
      const ReadFault fault = state_->faults(state_->calls++);
      std::string& content = state_->files[path_];
      if (fault.truncate) content.resize(content.size() / 2);
      if (fault.error != 0) {
        errno = fault.error;
        return -1;
      }
      if (from >= content.size()) return 0;
      const size_t count = std::min({bytes, fault.bytes_max, content.size() - size_t{from}});
      std::memcpy(to, content.data() + from, count);
      return count;
    }

    const std::shared_ptr<State> state_;
    const std::string path_;
    const uint64_t size_;
  };

  const std::shared_ptr<State> state_;
};

}  // namespace penstock::test
