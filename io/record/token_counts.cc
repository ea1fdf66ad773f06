#include "io/record/token_counts.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "io/file/crc32c.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

constexpr char kMagic[8] = {'P', 'E', 'N', 'S', 'T', 'T', 'K', '\n'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeadBytes = 128;
constexpr size_t kCrcAt = 124;
constexpr size_t kCrcBytes = 4;

absl::Status Reject(const char* why) { return absl::DataLossError(why); }

uint64_t CountsAt(uint64_t key_bytes) { return kHeadBytes + (key_bytes + 7) / 8 * 8; }

const uint8_t* BytesOf(const void* bytes) { return static_cast<const uint8_t*>(bytes); }

uint32_t CrcOfHead(const uint8_t* head, std::string_view key) {
  return ExtendCrc32c(Crc32c(head, kCrcAt), BytesOf(key.data()), key.size());
}

// An index in a place of the store, whose head is sound and belongs to the data.
struct Opened {
  std::shared_ptr<RandomAccessFile> file;
  TokenCounts::Sums sums;
  uint32_t width = 0;
  uint64_t counts_at = 0;
};

absl::Status CheckStamp(const uint8_t* head, const IndexStamp& stamp, const FileVersion& own) {
  if (LoadU64(head + 16) != stamp.data_bytes || LoadU32(head + 40) != stamp.first_crc ||
      LoadU32(head + 44) != stamp.last_crc) {
    return Reject("it belongs to other data");
  }
  const FileVersion made{static_cast<int64_t>(LoadU64(head + 24)), LoadU64(head + 32),
                         LoadU64(head + 72), static_cast<int64_t>(LoadU64(head + 80))};
  const uint64_t written_as = LoadU64(head + 88);
  const bool in_its_place = written_as != 0 && written_as == own.object;
  if (in_its_place &&
      (!made.HasContentOf(stamp.version) || made.changed_ns != stamp.version.changed_ns)) {
    return Reject("the data changed since it was made");
  }
  if (made != stamp.version && stamp.version.modified_ns > own.modified_ns)
    return Reject("it is older than the data");
  return absl::OkStatus();
}

absl::StatusOr<Opened> Open(const std::string& place, std::string_view key, const IndexStamp& stamp,
                            IndexStore& store) {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = store.Open(place);
  if (!file.ok()) return file.status();
  std::vector<uint8_t> head(kHeadBytes + key.size());
  const absl::StatusOr<size_t> count = (*file)->ReadAt(0, absl::MakeSpan(head));
  if (!count.ok()) return count.status();
  if (*count < kHeadBytes) return Reject("it is cut");
  if (std::memcmp(head.data(), kMagic, sizeof(kMagic)) != 0)
    return Reject("it is no index of tokens");
  if (LoadU32(head.data() + 8) != kVersion) return Reject("it is of another version");
  if (LoadU64(head.data() + 96) != key.size() ||
      std::memcmp(head.data() + kHeadBytes, key.data(),
                  std::min(key.size(), *count - kHeadBytes)) != 0) {
    return Reject("it is of other stages or another tokenizer");
  }
  if (*count < head.size()) return Reject("it is cut");
  if (CrcOfHead(head.data(), key) != LoadU32(head.data() + kCrcAt))
    return Reject("its checksum does not hold");
  Opened opened;
  opened.width = LoadU32(head.data() + 12);
  opened.sums = {LoadU64(head.data() + 48), LoadU64(head.data() + 56), LoadU64(head.data() + 64)};
  opened.counts_at = CountsAt(key.size());
  if (opened.width != sizeof(uint16_t) && opened.width != sizeof(uint32_t))
    return Reject("it is of another version");
  // Bounded before it is multiplied.
  const uint64_t size = (*file)->size();
  if (size < opened.counts_at + kCrcBytes ||
      opened.sums.records > (size - opened.counts_at) / opened.width ||
      opened.counts_at + opened.sums.records * opened.width + kCrcBytes != size) {
    return Reject("its size does not fit its counts");
  }
  if (absl::Status status = CheckStamp(head.data(), stamp, (*file)->version()); !status.ok())
    return status;
  opened.file = *std::move(file);
  return opened;
}

// The first sound one, and where it lies; else why the last one that is there cannot be used.
absl::StatusOr<Opened> Find(RandomAccessFile& data, std::string_view key, IndexStore& store,
                            std::string* place_of_it) {
  const absl::StatusOr<IndexStamp> stamp = StampOf(data);
  if (!stamp.ok()) return stamp.status();
  absl::Status rejected =
      absl::NotFoundError(absl::StrCat("no index of tokens (", data.path(), ")"));
  for (const std::string& place : store.PlacesToRead(TokenCountsName(data.path(), key))) {
    absl::StatusOr<Opened> opened = Open(place, key, *stamp, store);
    if (opened.ok()) {
      *place_of_it = place;
      return opened;
    }
    if (absl::IsNotFound(opened.status())) continue;
    rejected =
        absl::Status(opened.status().code(),
                     absl::StrCat("the index of tokens cannot be used: ", opened.status().message(),
                                  " (", place, ")"));
  }
  return rejected;
}

// Sets the counts from their bytes; false where the checksum or the sums do not hold.
template <typename Count>
bool Take(const std::vector<uint8_t>& bytes, uint64_t records, std::vector<Count>* counts) {
  counts->resize(records);
  const size_t size = records * sizeof(Count);
  if (Crc32c(bytes.data(), size) != LoadU32(bytes.data() + size)) return false;
  if (records > 0) std::memcpy(counts->data(), bytes.data(), size);
  return true;
}

}  // namespace

TokenCounts::TokenCounts(absl::Span<const uint32_t> counts) {
  sums_.records = counts.size();
  bool fits = true;
  for (const uint32_t count : counts) {
    if (count == kLeftOut) {
      ++sums_.left_out;
      continue;
    }
    sums_.tokens += count;
    fits = fits && count < UINT16_MAX;
  }
  if (!fits) {
    wide_.assign(counts.begin(), counts.end());
    return;
  }
  narrow_.reserve(counts.size());
  for (const uint32_t count : counts)
    narrow_.push_back(count == kLeftOut ? UINT16_MAX : static_cast<uint16_t>(count));
}

std::string TokenCountsName(const std::string& data_path, std::string_view key) {
  return absl::StrCat(data_path, absl::StrFormat(".tokens-%016x", MixKey(0, key)));
}

absl::Status WriteTokenCounts(WrittenFile& file, const TokenCounts& counts, std::string_view key,
                              const IndexStamp& stamp) {
  if (key.size() > TokenCounts::kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("key larger than limit: ", key.size(), " > ",
                                                   TokenCounts::kMaxKeyBytes, " bytes"));
  }
  const bool narrow = counts.wide().empty();
  const uint32_t width = narrow ? sizeof(uint16_t) : sizeof(uint32_t);
  std::vector<uint8_t> head(CountsAt(key.size()));
  const auto store = [&head](size_t at, const auto& value) {
    std::memcpy(head.data() + at, &value, sizeof(value));
  };
  store(0, kMagic);
  store(8, kVersion);
  store(12, width);
  store(16, stamp.data_bytes);
  store(24, stamp.version.modified_ns);
  store(32, stamp.version.object);
  store(40, stamp.first_crc);
  store(44, stamp.last_crc);
  store(48, counts.sums().records);
  store(56, counts.sums().left_out);
  store(64, counts.sums().tokens);
  store(72, stamp.version.holder);
  store(80, stamp.version.changed_ns);
  store(88, file.object());
  store(96, uint64_t{key.size()});
  store(kCrcAt, CrcOfHead(head.data(), key));
  std::memcpy(head.data() + kHeadBytes, key.data(), key.size());
  absl::Status status = file.WriteAt(0, head);
  const absl::Span<const uint8_t> bytes =
      narrow ? absl::MakeConstSpan(BytesOf(counts.narrow().data()), counts.size() * width)
             : absl::MakeConstSpan(BytesOf(counts.wide().data()), counts.size() * width);
  if (status.ok()) status = file.WriteAt(head.size(), bytes);
  const uint32_t crc = Crc32c(bytes.data(), bytes.size());
  if (status.ok())
    status =
        file.WriteAt(head.size() + bytes.size(), absl::MakeConstSpan(BytesOf(&crc), kCrcBytes));
  return status;
}

absl::StatusOr<FoundTokenCounts> LookAtTokenCounts(RandomAccessFile& data, std::string_view key,
                                                   IndexStore& store) {
  FoundTokenCounts found;
  const absl::StatusOr<Opened> opened = Find(data, key, store, &found.place);
  if (!opened.ok()) return opened.status();
  found.sums = opened->sums;
  return found;
}

absl::StatusOr<std::shared_ptr<const TokenCounts>> LoadTokenCounts(RandomAccessFile& data,
                                                                   std::string_view key,
                                                                   IndexStore& store) {
  std::string place;
  const absl::StatusOr<Opened> opened = Find(data, key, store, &place);
  if (!opened.ok()) return opened.status();
  const auto reject = [&place](const char* why) {
    return absl::DataLossError(
        absl::StrCat("the index of tokens cannot be used: ", why, " (", place, ")"));
  };
  std::vector<uint8_t> bytes(opened->sums.records * opened->width + kCrcBytes);
  const absl::StatusOr<size_t> count =
      opened->file->ReadAt(opened->counts_at, absl::MakeSpan(bytes));
  if (!count.ok()) return count.status();
  if (*count != bytes.size()) return reject("it is cut");
  std::vector<uint16_t> narrow;
  std::vector<uint32_t> wide;
  const bool holds = opened->width == sizeof(uint16_t) ? Take(bytes, opened->sums.records, &narrow)
                                                       : Take(bytes, opened->sums.records, &wide);
  if (!holds) return reject("its checksum does not hold");
  auto counts =
      std::make_shared<const TokenCounts>(std::move(narrow), std::move(wide), opened->sums);
  TokenCounts::Sums sums{counts->size(), 0, 0};
  for (uint64_t i = 0; i < counts->size(); ++i) {
    const uint32_t tokens = (*counts)[i];
    if (tokens > TokenCounts::kMost && tokens != TokenCounts::kLeftOut)
      return reject("a count is larger than limit");
    (tokens == TokenCounts::kLeftOut ? sums.left_out : sums.tokens) +=
        tokens == TokenCounts::kLeftOut ? 1 : tokens;
  }
  if (sums != opened->sums) return reject("its counts do not add up");
  return counts;
}

absl::StatusOr<std::string> KeepTokenCounts(RandomAccessFile& data, std::string_view key,
                                            const TokenCounts& counts, IndexStore& store) {
  const absl::StatusOr<IndexStamp> stamp = StampOf(data);
  if (!stamp.ok()) return stamp.status();
  absl::Status written = absl::PermissionDeniedError("there is no place for an index of tokens");
  for (const std::string& place : store.PlacesToWrite(TokenCountsName(data.path(), key))) {
    written = store.Write(
        place, [&](WrittenFile& file) { return WriteTokenCounts(file, counts, key, *stamp); });
    if (written.ok()) return place;
    if (absl::IsUnavailable(written)) break;
  }
  return written;
}

}  // namespace penstock
