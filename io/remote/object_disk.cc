#include "io/remote/object_disk.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file_error.h"
#include "base/new_thread.h"
#include "base/pending_call.h"
#include "base/shown_url.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// How long an end waits for parts that are thrown away. A rule of the bucket removes what is left.
constexpr std::chrono::seconds kLastWait(5);

bool IsBelow(absl::string_view folder, absl::string_view root) {
  while (absl::ConsumeSuffix(&root, "/")) continue;
  return absl::ConsumePrefix(&folder, root) && (folder.empty() || folder[0] == '/');
}

}  // namespace

// One object. It goes on from any thread; each byte in its turn.
class ObjectDisk::File final : public WrittenFile {
 public:
  File(ObjectDisk& disk, std::string path, Unwanted object)
      : disk_(disk), path_(std::move(path)), object_(std::move(object)) {}
  ~File() override { disk_.GiveUp(path_, this).IgnoreError(); }

  absl::Status WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) override {
    const PendingCall call("writing", path_, offset, CallKind::kWrite);
    const absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return status_;
    if (offset < next_) return status_ = absl::InternalError("a byte was written twice");
    if (offset > next_) {
      early_.emplace(offset, text);
      return absl::OkStatus();
    }
    HandOn(text);
    while (status_.ok() && !early_.empty() && early_.begin()->first <= next_) {
      if (early_.begin()->first < next_) status_ = absl::InternalError("a byte was written twice");
      if (status_.ok()) HandOn(early_.begin()->second);
      early_.erase(early_.begin());
    }
    return status_;
  }

  absl::Status Truncate(uint64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes == next_ && early_.empty()) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat("an object is not cut (", ShownUrl(path_), ")"));
  }

  // It is durable when it is there.
  absl::Status Sync() override {
    std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

  absl::Status Close() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return status_;
    if (!early_.empty())
      return status_ = absl::InternalError("bytes in front of others are missing");
    const PendingCall call("naming", path_, next_, CallKind::kSync);
    status_ = Lasting(object_.object->Close());
    return status_;
  }

  Unwanted Take() {
    // Whoever waits in it ends soon.
    object_.stop->store(true);
    std::lock_guard<std::mutex> lock(mutex_);
    status_.Update(absl::CancelledError("the object was given up"));
    early_.clear();
    return std::move(object_);
  }

 private:
  void HandOn(absl::string_view bytes) {
    status_ = Lasting(object_.object->Write(bytes));
    next_ += bytes.size();
  }

  // A full disk may have room for less: an object has none of that.
  static absl::Status Lasting(const absl::Status& status) {
    if (!absl::IsResourceExhausted(status)) return status;
    return absl::FailedPreconditionError(status.message());
  }

  ObjectDisk& disk_;
  const std::string path_;
  std::mutex mutex_;
  Unwanted object_;                        // under mutex_, as all below
  uint64_t next_ = 0;                      // handed on so far
  std::map<uint64_t, std::string> early_;  // by their places
  absl::Status status_;
};

ObjectDisk::ObjectDisk(RemoteClient& client, Disk& local, WriteRights rights)
    : client_(client), local_(local), rights_(std::move(rights)) {}

ObjectDisk::~ObjectDisk() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
    if (thread_.joinable())
      changed_.wait_for(lock, kLastWait, [this] { return unwanted_.empty() && !is_throwing_; });
  }
  is_late_.store(true);
  if (thread_.joinable()) thread_.join();
}

absl::Status ObjectDisk::CheckFolder(const std::string& folder) {
  if (!IsAddress(folder)) return local_.CheckFolder(folder);
  const absl::StatusOr<RemoteUrl> url = ParseRemoteUrl(absl::StrCat(folder, "/object"));
  if (!url.ok()) return url.status();
  if (url->is_http()) {
    return absl::UnimplementedError(absl::StrCat(
        "nothing is written by HTTP: expected s3:// or gs:// (", ShownUrl(folder), ")"));
  }
  if (rights_.all) return absl::OkStatus();
  for (const std::string& root : rights_.folders)
    if (IsBelow(folder, root)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the daemon may write nothing there: its configuration names no folder around "
                   "it in cache { roots } (",
                   ShownUrl(folder), ")"));
}

absl::Status ObjectDisk::MakeFolder(const std::string& folder) {
  // Object stores have none.
  return IsAddress(folder) ? CheckFolder(folder) : local_.MakeFolder(folder);
}

absl::StatusOr<std::unique_ptr<WrittenFile>> ObjectDisk::Create(const std::string& path) {
  if (!IsAddress(path)) return local_.Create(path);
  absl::string_view name = path;
  if (!absl::ConsumeSuffix(&name, kPartialSuffix)) {
    return absl::InternalError(
        absl::StrCat("an object is written under another name first (", ShownUrl(path), ")"));
  }
  absl::Status status = CheckFolder(path.substr(0, path.rfind('/')));
  if (!status.ok()) return status;
  Unwanted object;
  object.stop = std::make_unique<std::atomic<bool>>(false);
  {
    // Its threads live on when this one's work is over.
    const StopFlag::Scope scope(object.stop.get());
    absl::StatusOr<std::unique_ptr<ObjectWriter>> writer =
        ObjectWriter::Create(client_, std::string(name));
    if (!writer.ok()) return writer.status();
    object.object = *std::move(writer);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (open_.contains(path)) {
    return absl::UnavailableError(
        absl::StrCat("another writer has it: ", ShownUrl(std::string(name))));
  }
  auto file = std::make_unique<File>(*this, path, std::move(object));
  open_[path] = file.get();
  return file;
}

absl::Status ObjectDisk::Publish(const std::string& path, const std::string& name) {
  if (!IsAddress(path)) return local_.Publish(path, name);
  File* file = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = open_.find(path);
    if (found != open_.end()) file = found->second;
  }
  // The caller has the file, so that it stays.
  if (file == nullptr || absl::StrCat(name, kPartialSuffix) != path) {
    return absl::InternalError(
        absl::StrCat("no object is being written under this name (", ShownUrl(name), ")"));
  }
  return file->Close();
}

absl::Status ObjectDisk::Remove(const std::string& path) {
  return IsAddress(path) ? GiveUp(path, nullptr) : local_.Remove(path);
}

absl::Status ObjectDisk::GiveUp(const std::string& path, const File* only) {
  Unwanted unwanted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = open_.find(path);
    // What has been an object before stays one.
    if (found == open_.end() || (only != nullptr && found->second != only))
      return absl::NotFoundError("it is not being written");
    File* const file = found->second;
    open_.erase(found);
    unwanted = file->Take();
  }
  Throw(std::move(unwanted));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FolderEntry>> ObjectDisk::List(const std::string& folder) {
  if (!IsAddress(folder)) return local_.List(folder);
  // Who asks counts what is kept on a disk.
  return std::vector<FolderEntry>();
}

uint64_t ObjectDisk::FreeBytes(const std::string& folder) {
  return IsAddress(folder) ? UINT64_MAX : local_.FreeBytes(folder);
}

void ObjectDisk::Throw(Unwanted unwanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  unwanted_.push_back(std::move(unwanted));
  changed_.notify_all();
  if (thread_.joinable()) return;
  absl::StatusOr<std::thread> thread = NewThread("unwanted parts", [this] { ThrowAway(); });
  if (thread.ok()) thread_ = *std::move(thread);
}

void ObjectDisk::ThrowAway() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !unwanted_.empty(); });
    if (unwanted_.empty()) return;
    Unwanted one = std::move(unwanted_.front());
    unwanted_.pop_front();
    is_throwing_ = true;
    lock.unlock();
    one.object->GiveUp(&is_late_);
    one.object.reset();
    lock.lock();
    is_throwing_ = false;
    changed_.notify_all();
  }
}

}  // namespace penstock
