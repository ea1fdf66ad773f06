// A disk that can be full or broken, and that remembers what was done to it, so that a test can
// find the machine as a crash at any moment would have left it.
//
// Threads:  safe from any thread.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/disk.h"

namespace penstock::test {

class RecordedDisk final : public Disk {
 public:
  // What was done, in its order.
  struct Change {
    enum class Kind { kCreate, kWrite, kTruncate, kSync, kPublish, kRemove };
    Kind kind;
    std::string path;
    std::string name = {};   // kPublish
    uint64_t offset = 0;     // kWrite; kTruncate: the size
    std::string bytes = {};  // kWrite
  };

  // From call number `call` on (from 0), every call gives this error.
  void FailFrom(uint64_t call, absl::Status error) {
    fail_from_ = call;
    error_ = std::move(error);
  }
  // A file may have so many bytes.
  void SetRoom(uint64_t bytes) { room_ = bytes; }
  // All files that are made from now on may have so many bytes together, and so many more each time
  // that somebody asks how many are free.
  void SetDiskBytes(uint64_t bytes, uint64_t more = 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    disk_bytes_ = bytes;
    more_bytes_ = more;
  }
  void SetFolderBytesMax(uint64_t bytes) { folder_bytes_max_ = bytes; }

  // Called before a file is made, with its path: what another process does at that moment.
  void OnCreate(std::function<void(const std::string&)> call) { on_create_ = std::move(call); }

  uint64_t calls() const { return calls_; }
  const std::vector<Change>& changes() const { return changes_; }

  absl::Status CheckFolder(const std::string& folder) override {
    return LocalDisk().CheckFolder(folder);
  }
  absl::Status MakeFolder(const std::string& folder) override {
    return LocalDisk().MakeFolder(folder);
  }
  absl::StatusOr<std::unique_ptr<WrittenFile>> Create(const std::string& path) override {
    if (absl::Status status = Note({Change::Kind::kCreate, path}); !status.ok()) return status;
    if (on_create_) on_create_(path);
    auto file = LocalDisk().Create(path);
    if (!file.ok()) return file.status();
    return std::make_unique<File>(*this, path, *std::move(file));
  }
  absl::Status Publish(const std::string& path, const std::string& name) override {
    absl::Status status = Note({Change::Kind::kPublish, path, name});
    if (!status.ok()) return status;
    std::lock_guard<std::mutex> lock(mutex_);
    sizes_[name] = sizes_[path];
    sizes_.erase(path);
    return LocalDisk().Publish(path, name);
  }
  absl::Status Remove(const std::string& path) override {
    absl::Status status = Note({Change::Kind::kRemove, path});
    if (!status.ok()) return status;
    std::lock_guard<std::mutex> lock(mutex_);
    sizes_.erase(path);
    return LocalDisk().Remove(path);
  }
  uint64_t FreeBytes(const std::string&) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (disk_bytes_ == UINT64_MAX) return UINT64_MAX;
    disk_bytes_ += more_bytes_;
    return disk_bytes_ - std::min(disk_bytes_, UsedBytes());
  }
  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& folder) override {
    return LocalDisk().List(folder);
  }
  uint64_t folder_bytes_max() const override { return folder_bytes_max_; }

 private:
  class File final : public WrittenFile {
   public:
    File(RecordedDisk& disk, std::string path, std::unique_ptr<WrittenFile> file)
        : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}
    absl::Status WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) override {
      if (offset + bytes.size() > disk_.room_ ||
          !disk_.Resize(path_, offset + bytes.size(), false)) {
        return absl::ResourceExhaustedError("the disk is full");
      }
      absl::Status status =
          disk_.Note({Change::Kind::kWrite,
                      path_,
                      "",
                      offset,
                      {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
      return status.ok() ? file_->WriteAt(offset, bytes) : status;
    }
    absl::Status Truncate(uint64_t bytes) override {
      absl::Status status = disk_.Note({Change::Kind::kTruncate, path_, "", bytes});
      if (status.ok()) disk_.Resize(path_, bytes, true);
      return status.ok() ? file_->Truncate(bytes) : status;
    }
    absl::Status Sync() override {
      absl::Status status = disk_.Note({Change::Kind::kSync, path_});
      return status.ok() ? file_->Sync() : status;
    }

   private:
    RecordedDisk& disk_;
    const std::string path_;
    const std::unique_ptr<WrittenFile> file_;
  };

  // Under mutex_.
  uint64_t UsedBytes() const {
    uint64_t sum = 0;
    for (const auto& [path, bytes] : sizes_) sum += bytes;
    return sum;
  }
  // A file gets this size, or at least this; false where the disk has no room for that.
  bool Resize(const std::string& path, uint64_t bytes, bool shrinks) {
    std::lock_guard<std::mutex> lock(mutex_);
    uint64_t& size = sizes_[path];
    const uint64_t before = std::exchange(size, shrinks ? bytes : std::max(size, bytes));
    if (size <= before || UsedBytes() <= disk_bytes_) return true;
    size = before;
    return false;
  }

  absl::Status Note(Change change) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (calls_++ >= fail_from_) return error_;
    changes_.push_back(std::move(change));
    return absl::OkStatus();
  }

  std::mutex mutex_;
  std::function<void(const std::string&)> on_create_;
  uint64_t fail_from_ = UINT64_MAX;
  absl::Status error_;
  uint64_t room_ = UINT64_MAX;
  uint64_t disk_bytes_ = UINT64_MAX;       // under mutex_
  uint64_t more_bytes_ = 0;                // under mutex_
  std::map<std::string, uint64_t> sizes_;  // of the files; under mutex_
  uint64_t folder_bytes_max_ = UINT64_MAX;
  uint64_t calls_ = 0;           // under mutex_
  std::vector<Change> changes_;  // under mutex_
};

// What is left of a written byte when the power fails before the file is durable.
enum class Loss {
  kNothing,     // all of it: the process alone died
  kLastWrite,   // the first half of the last write
  kUnsynced,    // nothing that was written behind the last Sync() of its file
  kEveryOther,  // every other such write
};

// Puts the folder of `changes` as they stood behind the first `count` of them into `folder`.
inline void Replay(const std::vector<RecordedDisk::Change>& changes, size_t count, Loss loss,
                   const std::string& folder) {
  using Kind = RecordedDisk::Change::Kind;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto moved = [&](const std::string& path) { return folder + path.substr(path.rfind('/')); };
  for (size_t i = 0; i < count; ++i) {
    const RecordedDisk::Change& change = changes[i];
    const std::string path = moved(change.path);
    bool durable = false;
    for (size_t j = i; j < count; ++j)
      durable = durable || (changes[j].kind == Kind::kSync && changes[j].path == change.path);
    switch (change.kind) {
      case Kind::kCreate:
        std::ofstream(path, std::ios::trunc);
        break;
      case Kind::kWrite: {
        size_t size = change.bytes.size();
        if (loss == Loss::kLastWrite && i + 1 == count) size /= 2;
        if (!durable && (loss == Loss::kUnsynced || (loss == Loss::kEveryOther && i % 2 == 0)))
          size = 0;
        std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
        out.seekp(static_cast<std::streamoff>(change.offset));
        out.write(change.bytes.data(), static_cast<std::streamsize>(size));
        break;
      }
      case Kind::kTruncate:
        std::filesystem::resize_file(path, change.offset);
        break;
      case Kind::kSync:
        break;
      case Kind::kPublish:
        std::filesystem::rename(path, moved(change.name));
        break;
      case Kind::kRemove:
        std::filesystem::remove(path);
        break;
    }
  }
}

}  // namespace penstock::test
