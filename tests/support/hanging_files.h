// Files of this machine whose reads and openings hang on demand, as those of a server that does not
// answer.
//
// Threads:  safe from any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/disk.h"
#include "base/file.h"
#include "base/pending_call.h"

namespace penstock::test {

class HangingFiles final : public FileSystem {
 public:
  // Reads for which `hangs` is true return after LetGo() only.
  explicit HangingFiles(std::function<bool(const std::string& path, uint64_t offset)> hangs)
      : state_(std::make_shared<State>()) {
    state_->hangs = std::move(hangs);
  }

  // From now on openings for which `hangs` is true return after LetGo() only, too. Before anything
  // is opened.
  void HangOpenings(std::function<bool(const std::string& path)> hangs) {
    state_->hangs_opening = std::move(hangs);
  }

  // Where pipelines over these files may keep what they compute; nowhere else.
  void set_disk(Disk* disk) { disk_ = disk; }

  Disk* disk() override { return disk_; }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    if (state_->hangs_opening != nullptr && state_->hangs_opening(path)) {
      const PendingCall call("opening", path);
      state_->Hang();
    }
    auto file = LocalFileSystem().Open(path);
    if (!file.ok()) return file.status();
    return std::make_shared<File>(state_, *std::move(file));
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return LocalFileSystem().List(pattern);
  }

  void LetGo() {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->lets_go = true;
    state_->changed.notify_all();
  }
  // Reads and openings that hang now.
  int hanging() const {
    std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->hanging;
  }
  // Handles that somebody has still got.
  int open() const {
    std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->open;
  }
  // Who let go of a handle last.
  std::thread::id closed_by() const {
    std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->closed_by;
  }

 private:
  struct State {
    void Hang() {
      std::unique_lock<std::mutex> lock(mutex);
      ++hanging;
      changed.wait(lock, [this] { return lets_go; });
      --hanging;
    }

    std::function<bool(const std::string&, uint64_t)> hangs;
    std::function<bool(const std::string&)> hangs_opening;
    std::mutex mutex;
    std::condition_variable changed;
    bool lets_go = false;  // under mutex, as those below
    int hanging = 0;
    int open = 0;
    std::thread::id closed_by;
  };

  class File final : public RandomAccessFile {
   public:
    File(std::shared_ptr<State> state, std::shared_ptr<RandomAccessFile> file)
        : state_(std::move(state)), file_(std::move(file)) {
      std::lock_guard<std::mutex> lock(state_->mutex);
      ++state_->open;
    }
    ~File() override {
      std::lock_guard<std::mutex> lock(state_->mutex);
      --state_->open;
      state_->closed_by = std::this_thread::get_id();
    }
    const std::string& path() const override { return file_->path(); }
    uint64_t size() const override { return file_->size(); }
    FileVersion version() const override { return file_->version(); }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
      if (state_->hangs(file_->path(), offset)) {
        const PendingCall call("reading", file_->path(), offset);
        state_->Hang();
      }
      return file_->ReadAt(offset, out);
    }

   private:
    const std::shared_ptr<State> state_;
    const std::shared_ptr<RandomAccessFile> file_;
  };

  const std::shared_ptr<State> state_;
  Disk* disk_ = nullptr;
};

}  // namespace penstock::test
