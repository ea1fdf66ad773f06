#include "io/record/index_file.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "io/file/crc32c.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

constexpr char kMagic[8] = {'P', 'E', 'N', 'S', 'T', 'I', 'X', '\n'};
constexpr uint32_t kVersion = 2;
constexpr uint32_t kOldVersion = 1;
constexpr uint32_t kVerifiedFlag = 1;
constexpr size_t kEndBytes = 4096;
constexpr size_t kHeadBytes = 88;
constexpr size_t kOldHeadBytes = 64;
constexpr size_t kDamageBytes = 24;
constexpr size_t kCrcBytes = 4;

absl::Status Reject(const char* why) { return absl::DataLossError(why); }

// Writes piece behind piece and sums up what it wrote.
class Writer {
 public:
  explicit Writer(WrittenFile& file) : file_(file) {}

  absl::Status Write(const void* bytes, size_t size) {
    const auto* from = static_cast<const uint8_t*>(bytes);
    crc_ = ExtendCrc32c(crc_, from, size);
    const absl::Status status = file_.WriteAt(offset_, {from, size});
    offset_ += size;
    return status;
  }

  uint32_t crc() const { return crc_; }

 private:
  WrittenFile& file_;
  uint64_t offset_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace

absl::StatusOr<IndexStamp> StampOf(RandomAccessFile& file) {
  IndexStamp stamp{file.size(), file.version(), 0, 0};
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

absl::Status WriteIndex(WrittenFile& file, const RecordIndex& index, const IndexStamp& stamp) {
  uint8_t head[kHeadBytes];
  const auto store = [&head](size_t at, const auto& value) {
    std::memcpy(head + at, &value, sizeof(value));
  };
  store(0, kMagic);
  store(8, kVersion);
  store(12, index.verified() ? kVerifiedFlag : uint32_t{0});
  store(16, stamp.data_bytes);
  store(24, stamp.version.modified_ns);
  store(32, stamp.version.object);
  store(40, stamp.first_crc);
  store(44, stamp.last_crc);
  store(48, index.size());
  store(56, uint64_t{index.damage().size()});
  store(64, stamp.version.holder);
  store(72, stamp.version.changed_ns);
  store(80, file.object());
  Writer writer(file);
  absl::Status status = writer.Write(head, sizeof(head));
  for (const Damage& damage : index.damage()) {
    const uint64_t numbers[] = {damage.offset, damage.length, static_cast<uint64_t>(damage.reason)};
    if (status.ok()) status = writer.Write(numbers, sizeof(numbers));
  }
  if (status.ok()) status = writer.Write(index.offsets().data(), index.size() * sizeof(uint64_t));
  const uint32_t crc = writer.crc();
  if (status.ok()) status = writer.Write(&crc, sizeof(crc));
  return status;
}

absl::StatusOr<std::shared_ptr<const RecordIndex>> ParseIndex(MemoryBlock file, size_t size,
                                                              const IndexStamp& stamp,
                                                              uint64_t own_object, bool* copied) {
  if (size < kOldHeadBytes + kCrcBytes) return Reject("it is cut");
  const uint8_t* const head = file.get();
  if (std::memcmp(head, kMagic, sizeof(kMagic)) != 0) return Reject("it is no index");
  const uint32_t version = LoadU32(head + 8);
  if (version != kVersion && version != kOldVersion) return Reject("it is of another version");
  const size_t head_bytes = version == kOldVersion ? kOldHeadBytes : kHeadBytes;
  if (size < head_bytes + kCrcBytes) return Reject("it is cut");
  const uint64_t num_records = LoadU64(head + 48);
  const uint64_t num_damages = LoadU64(head + 56);
  // Both counts are bounded before they are multiplied.
  const uint64_t body_bytes = size - head_bytes - kCrcBytes;
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
  FileVersion made{static_cast<int64_t>(LoadU64(head + 24)), LoadU64(head + 32), 0, 0};
  uint64_t written_as = 0;
  if (version == kVersion) {
    made.holder = LoadU64(head + 64);
    made.changed_ns = static_cast<int64_t>(LoadU64(head + 72));
    written_as = LoadU64(head + 80);
  }
  *copied = version == kOldVersion || made != stamp.version;
  const bool in_its_place = written_as != 0 && written_as == own_object;
  if (in_its_place &&
      (!made.HasContentOf(stamp.version) || made.changed_ns != stamp.version.changed_ns)) {
    return Reject("the data changed since it was made");
  }

  std::vector<Damage> damage;
  damage.reserve(num_damages);
  const uint8_t* at = head + head_bytes;
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
  const bool verified = !*copied && (LoadU32(head + 12) & kVerifiedFlag) != 0;
  return std::make_shared<const RecordIndex>(std::move(file), offsets, std::move(damage),
                                             RecordIndex::Data{stamp.data_bytes, made, verified});
}

}  // namespace penstock
