// The machine's files, whose reads end in another order than they began in: delays of scheduling
// and of disks, drawn from a seed.
//
// Threads:  safe from any thread; one of its own lets the waiting reads go on, one at a time.
// Owns:     that thread, until destruction. Every plan and file that came of it must be gone
//           before.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/tick_clock.h"

namespace penstock::test {

class ShuffledReads final : public FileSystem {
 public:
  explicit ShuffledReads(uint64_t seed) : dice_(seed), usher_([this] { LetGoOn(); }) {}
  ~ShuffledReads() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    arrived_.notify_all();
    usher_.join();
  }

  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = LocalFileSystem().Open(path);
    if (!file.ok()) return file.status();
    return std::make_shared<File>(*this, *std::move(file));
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return LocalFileSystem().List(pattern);
  }
  Disk* disk() override { return LocalFileSystem().disk(); }

 private:
  class File final : public RandomAccessFile {
   public:
    File(ShuffledReads& reads, std::shared_ptr<RandomAccessFile> file)
        : reads_(reads), file_(std::move(file)) {}
    const std::string& path() const override { return file_->path(); }
    uint64_t size() const override { return file_->size(); }
    FileVersion version() const override { return file_->version(); }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
      reads_.Wait();
      return file_->ReadAt(offset, out);
    }

   private:
    ShuffledReads& reads_;
    const std::shared_ptr<RandomAccessFile> file_;
  };

  static constexpr uint64_t kYieldNanos = 1'000'000;

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t ticket = next_ticket_++;
    waiting_.push_back(ticket);
    arrived_.notify_all();
    let_go_.wait(lock, [&] {
      for (const uint64_t other : waiting_) {
        if (other == ticket) return false;
      }
      return true;
    });
  }

  void LetGoOn() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      arrived_.wait(lock, [this] { return over_ || !waiting_.empty(); });
      if (over_) return;
      const uint64_t yields = dice_() % 40;
      lock.unlock();
      // Others may arrive. Where the machine is busy, to yield once may take long.
      const uint64_t until = MonotonicNanos() + kYieldNanos;
      for (uint64_t i = 0; i < yields && MonotonicNanos() < until; ++i) std::this_thread::yield();
      lock.lock();
      waiting_.erase(waiting_.begin() + dice_() % waiting_.size());
      let_go_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable let_go_;
  std::mt19937_64 dice_;           // under mutex_
  std::vector<uint64_t> waiting_;  // under mutex_
  uint64_t next_ticket_ = 0;       // under mutex_
  bool over_ = false;              // under mutex_
  std::thread usher_;
};

}  // namespace penstock::test
