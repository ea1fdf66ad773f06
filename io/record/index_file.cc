#include "io/record/index_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/pending_call.h"
#include "io/file/crc32c.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

constexpr char kMagic[8] = {'P', 'E', 'N', 'S', 'T', 'I', 'X', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kVerifiedFlag = 1;
constexpr size_t kEndBytes = 4096;
constexpr size_t kHeadBytes = 64;
constexpr size_t kDamageBytes = 24;
constexpr size_t kCrcBytes = 4;

absl::Status Reject(const char* why) { return absl::DataLossError(why); }

// Writes to a descriptor and sums up what it wrote.
class Writer {
 public:
  explicit Writer(int fd) : fd_(fd) {}

  absl::Status Write(const void* bytes, size_t size) {
    const auto* from = static_cast<const uint8_t*>(bytes);
    crc_ = ExtendCrc32c(crc_, from, size);
    while (size > 0) {
      const ssize_t count = write(fd_, from, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return absl::ErrnoToStatus(errno, "cannot write the index");
      from += count;
      size -= count;
    }
    return absl::OkStatus();
  }

  uint32_t crc() const { return crc_; }

 private:
  const int fd_;
  uint32_t crc_ = 0;
};

absl::Status WriteAll(int fd, const RecordIndex& index, const IndexStamp& stamp) {
  uint8_t head[kHeadBytes];
  const auto store = [&head](size_t at, const auto& value) {
    std::memcpy(head + at, &value, sizeof(value));
  };
  store(0, kMagic);
  store(8, kVersion);
  store(12, index.verified() ? kVerifiedFlag : uint32_t{0});
  store(16, stamp.data_bytes);
  store(24, stamp.identity.mtime_ns);
  store(32, stamp.identity.inode);
  store(40, stamp.first_crc);
  store(44, stamp.last_crc);
  store(48, index.size());
  store(56, uint64_t{index.damage().size()});
  Writer writer(fd);
  absl::Status status = writer.Write(head, sizeof(head));
  for (const Damage& damage : index.damage()) {
    const uint64_t numbers[] = {damage.offset, damage.length, static_cast<uint64_t>(damage.reason)};
    if (status.ok()) status = writer.Write(numbers, sizeof(numbers));
  }
  if (status.ok()) status = writer.Write(index.offsets().data(), index.size() * sizeof(uint64_t));
  const uint32_t crc = writer.crc();
  if (status.ok()) status = writer.Write(&crc, sizeof(crc));
  if (status.ok() && fsync(fd) != 0) status = absl::ErrnoToStatus(errno, "cannot sync the index");
  return status;
}

}  // namespace

absl::StatusOr<IndexStamp> StampOf(RandomAccessFile& file) {
  IndexStamp stamp{file.size(), file.identity(), 0, 0};
  uint8_t end[kEndBytes];
  const size_t bytes = std::min<uint64_t>(kEndBytes, file.size());
  for (const bool first : {true, false}) {
    absl::StatusOr<size_t> count =
        file.ReadAt(first ? 0 : file.size() - bytes, absl::MakeSpan(end, bytes));
    if (!count.ok()) return count.status();
    (first ? stamp.first_crc : stamp.last_crc) = Crc32c(end, *count);
  }
  return stamp;
}

absl::Status WriteIndex(const std::string& path, const RecordIndex& index,
                        const IndexStamp& stamp) {
  const PendingCall call("writing", path, 0, CallKind::kWrite);
  const std::filesystem::path target(path);
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  // Hidden, so that no glob of data files finds it while it is written.
  std::string temporary = absl::StrCat(folder, "/.", target.filename().string(), ".XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", temporary));
  absl::Status status = WriteAll(fd, index, stamp);
  // mkostemp makes it private; whoever may read the data may read its index.
  if (status.ok() && fchmod(fd, 0644) != 0) status = absl::ErrnoToStatus(errno, "cannot chmod");
  close(fd);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = absl::ErrnoToStatus(errno, "cannot rename the index");
  if (!status.ok()) {
    unlink(temporary.c_str());
    return absl::Status(status.code(), absl::StrCat(status.message(), " (", path, ")"));
  }
  const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    fsync(folder_fd);
    close(folder_fd);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const RecordIndex>> ParseIndex(MemoryBlock file, size_t size,
                                                              const IndexStamp& stamp,
                                                              bool* moved) {
  if (size < kHeadBytes + kCrcBytes) return Reject("it is cut");
  const uint8_t* const head = file.get();
  if (std::memcmp(head, kMagic, sizeof(kMagic)) != 0) return Reject("it is no index");
  if (LoadU32(head + 8) != kVersion) return Reject("it is of another version");
  const uint64_t num_records = LoadU64(head + 48);
  const uint64_t num_damages = LoadU64(head + 56);
  // Both counts are bounded before they are multiplied.
  const uint64_t body_bytes = size - kHeadBytes - kCrcBytes;
  if (num_records > body_bytes / 8 || num_damages > body_bytes / kDamageBytes ||
      num_records * 8 + num_damages * kDamageBytes != body_bytes) {
    return Reject("its size does not fit its counts");
  }
  if (Crc32c(head, size - kCrcBytes) != LoadU32(head + size - kCrcBytes))
    return Reject("its checksum does not hold");
  if (LoadU64(head + 16) != stamp.data_bytes || LoadU32(head + 40) != stamp.first_crc ||
      LoadU32(head + 44) != stamp.last_crc) {
    return Reject("it belongs to other data");
  }
  *moved = LoadU64(head + 24) != static_cast<uint64_t>(stamp.identity.mtime_ns) ||
           LoadU64(head + 32) != stamp.identity.inode;

  std::vector<Damage> damage;
  damage.reserve(num_damages);
  const uint8_t* at = head + kHeadBytes;
  uint64_t end = 0;
  for (uint64_t i = 0; i < num_damages; ++i, at += kDamageBytes) {
    const Damage entry = {LoadU64(at), LoadU64(at + 8), static_cast<DamageReason>(at[16])};
    if (entry.offset < end || entry.offset > stamp.data_bytes || entry.length == 0 ||
        entry.length > stamp.data_bytes - entry.offset) {
      return Reject("its damages are out of order or range");
    }
    end = entry.offset + entry.length;
    damage.push_back(entry);
  }
  // All that stands before them has a size that is a multiple of eight.
  const absl::Span<const uint64_t> offsets(reinterpret_cast<const uint64_t*>(at), num_records);
  // Sound records and damages follow each other without overlap, up to the data's end.
  end = 0;
  size_t next_damage = 0;
  for (uint64_t i = 0; i < num_records; ++i) {
    const uint64_t offset = offsets[i];
    while (next_damage < damage.size() && damage[next_damage].offset < offset) {
      end = std::max(end, damage[next_damage].offset + damage[next_damage].length);
      ++next_damage;
    }
    if (offset < end || offset > stamp.data_bytes || stamp.data_bytes - offset < kFrameBytes ||
        (next_damage < damage.size() && damage[next_damage].offset - offset < kFrameBytes)) {
      return Reject("its offsets are out of order or range");
    }
    end = offset + kFrameBytes;
    // The record ends there; where that is in front of it, this is the last one that is looked at.
    uint64_t next = i + 1 < num_records ? offsets[i + 1] : stamp.data_bytes;
    if (next_damage < damage.size()) next = std::min(next, damage[next_damage].offset);
    if (next > end && next - end > kMaxRecordBytes)
      return Reject("it has a record above the limit");
  }
  const bool verified = !*moved && (LoadU32(head + 12) & kVerifiedFlag) != 0;
  return std::make_shared<const RecordIndex>(std::move(file), offsets, std::move(damage),
                                             stamp.data_bytes, verified);
}

}  // namespace penstock
