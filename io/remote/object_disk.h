// What is kept at addresses: files that are written in pieces, as objects (object_writer.h).
//
//     Create("s3://b/x.partial") ─► WriteAt(…), in any order ─► Publish(): s3://b/x is there, whole
//                                       │ an error, Remove(), or the file goes
//                                       └──► there never was one; a thread throws its parts away
//
// An object has its name from the beginning on: that of the file without kPartialSuffix. Until
// Publish() what has the name stays, and nobody sees anything else. Each byte is written once. What
// comes early waits in memory for what is in front of it.
//
// Threads:  safe from any thread. WriteAt() and Publish() wait for the network, and end with
//           Cancelled soon where the thread's StopFlag says so. Nothing else waits.
// Owns:     a thread, once an object was given up; `client` and `local` must outlive it, and it its
//           files.
// Limits:   what may be written: WriteRights. Nothing is removed, and nothing goes on behind what
//           is there. Other machines' writers are not seen: the last one's object stays.
// Cost:     that of ObjectWriter, and what comes early.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/disk.h"
#include "io/remote/object_writer.h"
#include "io/remote/remote_client.h"
#include "io/remote/remote_options.h"

namespace penstock {

class ObjectDisk final : public Disk {
 public:
  static constexpr char kPartialSuffix[] = ".partial";

  // `local` has all that is not at an address.
  ObjectDisk(RemoteClient& client, Disk& local, WriteRights rights);
  // Waits some seconds at most for parts that are thrown away.
  ~ObjectDisk() override;

  absl::Status CheckFolder(const std::string& folder) override;
  absl::Status MakeFolder(const std::string& folder) override;
  absl::StatusOr<std::unique_ptr<WrittenFile>> Create(const std::string& path) override;
  absl::Status Publish(const std::string& path, const std::string& name) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& folder) override;
  uint64_t FreeBytes(const std::string& folder) override;
  uint64_t folder_bytes_max() const override { return local_.folder_bytes_max(); }

 private:
  class File;
  // What nobody wants any more, and the flag that its threads look at.
  struct Unwanted {
    std::unique_ptr<std::atomic<bool>> stop;
    std::unique_ptr<ObjectWriter> object;
  };

  // What was begun by this path, unless that is another file than `only`; null: whichever it is.
  absl::Status GiveUp(const std::string& path, const File* only);
  void Throw(Unwanted unwanted);
  void ThrowAway();

  RemoteClient& client_;
  Disk& local_;
  const WriteRights rights_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, File*> open_;  // under mutex_, as all below; by the path they were made by
  std::deque<Unwanted> unwanted_;
  bool is_throwing_ = false;
  bool is_over_ = false;
  std::thread thread_;
  std::atomic<bool> is_late_{false};  // what is left is not waited for
};

}  // namespace penstock
