#include "io/record/index_file.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/random.h"
#include "io/file/crc32c.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

constexpr char kMagic[8] = {'P', 'E', 'N', 'S', 'T', 'I', 'X', '\n'};
constexpr uint32_t kVersion = 3;
// Of TFRecords alone.
constexpr uint32_t kPlainVersion = 2;
constexpr uint32_t kFirstVersion = 1;
constexpr char kPlainKey[] = "tfrecord";
constexpr uint32_t kVerifiedFlag = 1;
constexpr size_t kHeadBytes = 128;
constexpr size_t kPlainHeadBytes = 88;
constexpr size_t kFirstHeadBytes = 64;
constexpr size_t kLineBytes = sizeof(RecordOffsets::Line);
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

uint64_t HashOfKey(const RecordAccess& access) { return MixKey(0, access.IndexKey()); }

// What an index file has behind its head.
struct Body {
  uint64_t num_records = 0;
  std::vector<Damage> damage;
  RecordOffsets offsets;
  uint64_t records_end = 0;
};

absl::Status ReadDamages(const uint8_t* at, uint64_t count, uint64_t data_bytes, Body* body) {
  body->damage.reserve(count);
  uint64_t end = 0;
  for (uint64_t i = 0; i < count; ++i, at += kDamageBytes) {
    const Damage entry = {LoadU64(at), LoadU64(at + 8), static_cast<DamageReason>(at[16])};
    if (entry.offset < end || entry.offset > data_bytes || entry.length == 0 ||
        entry.length > data_bytes - entry.offset) {
      return Reject("its damages are out of order or range");
    }
    end = entry.offset + entry.length;
    body->damage.push_back(entry);
  }
  return absl::OkStatus();
}

// `size` bytes of `file` are there.
absl::Status ReadBody(MemoryBlock file, size_t size, uint64_t data_bytes, uint8_t shift,
                      Body* body) {
  const uint8_t* const head = file.get();
  const uint64_t num_damages = LoadU64(head + 56);
  const uint64_t num_wide = LoadU64(head + 104);
  body->records_end = LoadU64(head + 96);
  // All counts are bounded before they are multiplied.
  const uint64_t body_bytes = size - kHeadBytes - kCrcBytes;
  if (body->num_records > body_bytes / 2 || num_damages > body_bytes / kDamageBytes ||
      num_wide > body_bytes / 8 ||
      RecordOffsets::NumLines(body->num_records) * kLineBytes + num_wide * 8 +
              num_damages * kDamageBytes !=
          body_bytes) {
    return Reject("its size does not fit its counts");
  }
  // Records that are there end somewhere.
  if (body->records_end > data_bytes) return Reject("its offsets are out of order or range");
  const auto* const lines = reinterpret_cast<const RecordOffsets::Line*>(head + kHeadBytes);
  const uint64_t num_lines = RecordOffsets::NumLines(body->num_records);
  const auto* const wide = reinterpret_cast<const uint64_t*>(lines + num_lines);
  uint64_t next_wide = 0;
  for (uint64_t i = 0; i < num_lines; ++i) {
    if ((lines[i].base & RecordOffsets::kWide) == 0) continue;
    // In their order, so that each has its own.
    const uint64_t records =
        std::min(RecordOffsets::kPerLine, body->num_records - i * RecordOffsets::kPerLine);
    if ((lines[i].base & ~RecordOffsets::kWide) != next_wide || records > num_wide - next_wide)
      return Reject("its offsets are out of order or range");
    next_wide += records;
  }
  if (next_wide != num_wide) return Reject("its size does not fit its counts");
  const uint8_t* const damages = reinterpret_cast<const uint8_t*>(wide + num_wide);
  if (absl::Status status = ReadDamages(damages, num_damages, data_bytes, body); !status.ok())
    return status;
  body->offsets = RecordOffsets(std::move(file), lines, {wide, num_wide}, body->num_records, shift);
  return absl::OkStatus();
}

// The same of an older version.
absl::Status ReadPlainBody(MemoryBlock file, size_t size, size_t head_bytes, uint64_t data_bytes,
                           Body* body) {
  const uint8_t* const head = file.get();
  const uint64_t num_damages = LoadU64(head + 56);
  const uint64_t body_bytes = size - head_bytes - kCrcBytes;
  if (body->num_records > body_bytes / 8 || num_damages > body_bytes / kDamageBytes ||
      body->num_records * 8 + num_damages * kDamageBytes != body_bytes) {
    return Reject("its size does not fit its counts");
  }
  const uint8_t* at = head + head_bytes;
  if (absl::Status status = ReadDamages(at, num_damages, data_bytes, body); !status.ok())
    return status;
  at += num_damages * kDamageBytes;
  RecordOffsetsBuilder offsets(0, data_bytes);
  uint64_t last = 0;
  for (uint64_t i = 0; i < body->num_records; ++i, at += 8) {
    const uint64_t offset = LoadU64(at);
    if (offset < last || offset > data_bytes)
      return Reject("its offsets are out of order or range");
    last = offset;
    offsets.Add(offset);
  }
  body->offsets = offsets.Finish();
  body->records_end = data_bytes;
  return absl::OkStatus();
}

// Sound records and damages follow each other without overlap, up to the data's end.
absl::Status CheckOrder(const Body& body, const RecordShape& shape) {
  const std::vector<Damage>& damage = body.damage;
  const uint64_t least = shape.least_bytes;
  const uint64_t overhead = shape.header_bytes + shape.footer_bytes;
  uint64_t end = 0;
  size_t next_damage = 0;
  for (uint64_t i = 0; i < body.num_records; ++i) {
    const uint64_t offset = body.offsets[i];
    while (next_damage < damage.size() && damage[next_damage].offset < offset) {
      end = std::max(end, damage[next_damage].offset + damage[next_damage].length);
      ++next_damage;
    }
    if (offset < end || offset > body.records_end || body.records_end - offset < least ||
        (next_damage < damage.size() && damage[next_damage].offset - offset < least)) {
      return Reject("its offsets are out of order or range");
    }
    end = offset + least;
    // The record ends there; where that is in front of it, this is the last one that is looked at.
    uint64_t next = i + 1 < body.num_records ? body.offsets[i + 1] : body.records_end;
    if (next_damage < damage.size()) next = std::min(next, damage[next_damage].offset);
    if (!shape.has_gaps && next > end && next - offset - overhead > kMaxRecordBytes)
      return Reject("it has a record above the limit");
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t LargestIndex(const RecordShape& shape, uint64_t data_bytes) {
  // At most 10.3 bytes a record where they lie far apart, 2.3 and one more line where they do not,
  // and 24 for a damage, which has a byte at least and a record between it and the next.
  return 8 * (data_bytes / shape.least_bytes) + 2 * data_bytes + 4096;
}

absl::StatusOr<IndexStamp> StampOf(RandomAccessFile& file) {
  IndexStamp stamp{file.size(), file.version(), 0, 0};
  uint8_t end[kStampEndBytes];
  const size_t bytes = std::min<uint64_t>(kStampEndBytes, file.size());
  for (const bool first : {true, false}) {
    absl::StatusOr<size_t> count =
        file.ReadAt(first ? 0 : file.size() - bytes, absl::MakeSpan(end, bytes));
    if (!count.ok()) return count.status();
    (first ? stamp.first_crc : stamp.last_crc) = Crc32c(end, *count);
  }
  return stamp;
}

absl::Status WriteIndex(WrittenFile& file, const RecordIndex& index, const RecordAccess& access,
                        const IndexStamp& stamp) {
  const RecordOffsets& offsets = index.offsets();
  uint8_t head[kHeadBytes] = {};
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
  store(88, HashOfKey(access));
  store(96, index.records_end());
  store(104, uint64_t{offsets.wide().size()});
  Writer writer(file);
  absl::Status status = writer.Write(head, sizeof(head));
  if (status.ok())
    status = writer.Write(offsets.lines().data(), offsets.lines().size() * kLineBytes);
  if (status.ok())
    status = writer.Write(offsets.wide().data(), offsets.wide().size() * sizeof(uint64_t));
  for (const Damage& damage : index.damage()) {
    const uint64_t numbers[] = {damage.offset, damage.length, static_cast<uint64_t>(damage.reason)};
    if (status.ok()) status = writer.Write(numbers, sizeof(numbers));
  }
  const uint32_t crc = writer.crc();
  if (status.ok()) status = writer.Write(&crc, sizeof(crc));
  return status;
}

absl::StatusOr<std::shared_ptr<const RecordIndex>> ParseIndex(MemoryBlock file, size_t size,
                                                              const RecordAccess& access,
                                                              const IndexStamp& stamp,
                                                              uint64_t own_object, bool* copied) {
  if (size < kFirstHeadBytes + kCrcBytes) return Reject("it is cut");
  const uint8_t* const head = file.get();
  if (std::memcmp(head, kMagic, sizeof(kMagic)) != 0) return Reject("it is no index");
  const uint32_t version = LoadU32(head + 8);
  if (version < kFirstVersion || version > kVersion) return Reject("it is of another version");
  const size_t head_bytes = version == kFirstVersion   ? kFirstHeadBytes
                            : version == kPlainVersion ? kPlainHeadBytes
                                                       : kHeadBytes;
  if (size < head_bytes + kCrcBytes) return Reject("it is cut");
  if (Crc32c(head, size - kCrcBytes) != LoadU32(head + size - kCrcBytes))
    return Reject("its checksum does not hold");
  const bool same_format = version == kVersion ? LoadU64(head + 88) == HashOfKey(access)
                                               : access.IndexKey() == kPlainKey;
  if (!same_format) return Reject("it is of records of another format");
  if (LoadU64(head + 16) != stamp.data_bytes || LoadU32(head + 40) != stamp.first_crc ||
      LoadU32(head + 44) != stamp.last_crc) {
    return Reject("it belongs to other data");
  }
  FileVersion made{static_cast<int64_t>(LoadU64(head + 24)), LoadU64(head + 32), 0, 0};
  uint64_t written_as = 0;
  if (version != kFirstVersion) {
    made.holder = LoadU64(head + 64);
    made.changed_ns = static_cast<int64_t>(LoadU64(head + 72));
    written_as = LoadU64(head + 80);
  }
  *copied = version == kFirstVersion || made != stamp.version;
  const bool in_its_place = written_as != 0 && written_as == own_object;
  if (in_its_place &&
      (!made.HasContentOf(stamp.version) || made.changed_ns != stamp.version.changed_ns)) {
    return Reject("the data changed since it was made");
  }
  const bool verified = !*copied && (LoadU32(head + 12) & kVerifiedFlag) != 0;

  const RecordShape& shape = access.shape();
  Body body;
  body.num_records = LoadU64(head + 48);
  absl::Status status =
      version == kVersion
          ? ReadBody(std::move(file), size, stamp.data_bytes, shape.offset_shift, &body)
          : ReadPlainBody(std::move(file), size, head_bytes, stamp.data_bytes, &body);
  if (status.ok()) status = CheckOrder(body, shape);
  if (!status.ok()) return status;
  return std::make_shared<const RecordIndex>(
      std::move(body.offsets), std::move(body.damage),
      RecordIndex::Data{stamp.data_bytes, made, verified, body.records_end,
                        shape.header_bytes + shape.footer_bytes});
}

}  // namespace penstock
