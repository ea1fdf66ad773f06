#include "server/service/state/high_water_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "base/pending_call.h"
#include "io/file/crc32c.h"

namespace penstock {
namespace {

constexpr char kMagic[] = "PNHIGH01";
constexpr size_t kMagicBytes = 8;
constexpr size_t kCheckedBytes = kMagicBytes + 2 * sizeof(uint64_t);
constexpr size_t kRecordBytes = kCheckedBytes + sizeof(uint32_t);
// Of one record: less than this is never written in part.
constexpr size_t kSectorBytes = 512;
constexpr size_t kFileBytes = 2 * kSectorBytes;

struct Record {
  uint64_t sequence = 0;
  uint64_t step = 0;
};

void Put(const Record& record, char* bytes) {
  std::memcpy(bytes, kMagic, kMagicBytes);
  std::memcpy(bytes + kMagicBytes, &record.sequence, sizeof record.sequence);
  std::memcpy(bytes + kMagicBytes + sizeof record.sequence, &record.step, sizeof record.step);
  const uint32_t crc = Crc32c(reinterpret_cast<const uint8_t*>(bytes), kCheckedBytes);
  std::memcpy(bytes + kCheckedBytes, &crc, sizeof crc);
}

std::optional<Record> Get(const char* bytes) {
  uint32_t crc = 0;
  std::memcpy(&crc, bytes + kCheckedBytes, sizeof crc);
  if (std::memcmp(bytes, kMagic, kMagicBytes) != 0 ||
      crc != Crc32c(reinterpret_cast<const uint8_t*>(bytes), kCheckedBytes))
    return std::nullopt;
  Record record;
  std::memcpy(&record.sequence, bytes + kMagicBytes, sizeof record.sequence);
  std::memcpy(&record.step, bytes + kMagicBytes + sizeof record.sequence, sizeof record.step);
  return record;
}

absl::Status ErrorOf(const char* what, const std::string& path) {
  return FileError(errno, absl::StrCat(what, " ", path));
}

absl::Status WriteAll(int file, const char* bytes, size_t size, off_t offset,
                      const std::string& path) {
  while (size > 0) {
    const ssize_t count = pwrite(file, bytes, size, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrorOf("cannot write", path);
    bytes += count;
    offset += count;
    size -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HighWaterFile>> HighWaterFile::Create(const StateFolder& folder,
                                                                     const std::string& name,
                                                                     uint64_t step) {
  const std::string path = folder.PathOf(name);
  const PendingCall call("writing", path, 0, CallKind::kWrite);
  // One of before may be open for another pipeline of that name, which is just ending.
  unlink(path.c_str());
  ring::Descriptor file(
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!file) return ErrorOf("cannot make", path);
  const char zeros[kFileBytes] = {};
  absl::Status status = WriteAll(file.get(), zeros, kFileBytes, 0, path);
  std::unique_ptr<HighWaterFile> made(new HighWaterFile(path, std::move(file)));
  if (status.ok()) status = made->Write(step);
  if (status.ok()) status = folder.Sync();
  if (status.ok()) return made;
  unlink(path.c_str());
  return status;
}

absl::StatusOr<std::unique_ptr<HighWaterFile>> HighWaterFile::Open(const StateFolder& folder,
                                                                   const std::string& name) {
  const std::string path = folder.PathOf(name);
  ring::Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return ErrorOf("cannot open", path);
  char bytes[kFileBytes] = {};
  struct stat info = {};
  const bool is_file = fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  std::optional<Record> newest;
  if (is_file && pread(file.get(), bytes, kFileBytes, 0) >= 0) {
    for (const size_t at : {size_t{0}, kSectorBytes}) {
      const std::optional<Record> record = Get(bytes + at);
      if (record && (!newest || record->sequence > newest->sequence)) newest = record;
    }
  }
  if (!newest) return absl::DataLossError(absl::StrCat("the file is not whole (", path, ")"));
  std::unique_ptr<HighWaterFile> opened(new HighWaterFile(path, std::move(file)));
  opened->sequence_ = newest->sequence;
  opened->step_ = newest->step;
  return opened;
}

uint64_t HighWaterFile::step() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return step_;
}

absl::Status HighWaterFile::Write(uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex_);
  const PendingCall call("writing", path_, 0, CallKind::kWrite);
  static_assert(kRecordBytes <= kSectorBytes);
  char bytes[kRecordBytes];
  Put({sequence_ + 1, step}, bytes);
  absl::Status status = WriteAll(file_.get(), bytes, kRecordBytes,
                                 static_cast<off_t>((sequence_ + 1) % 2 * kSectorBytes), path_);
  if (status.ok() && fdatasync(file_.get()) != 0)
    status = ErrorOf("cannot write to the disk", path_);
  // One that failed may be there or not: the next one takes its place.
  if (!status.ok()) return status;
  ++sequence_;
  step_ = step;
  return absl::OkStatus();
}

}  // namespace penstock
