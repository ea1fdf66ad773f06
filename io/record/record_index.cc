#include "io/record/record_index.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/file/damage.h"
#include "io/record/index_file.h"
#include "io/record/record_stream.h"
#include "io/record/tfrecord_frame.h"
#include "io/record/tfrecord_reader.h"

namespace penstock {
namespace {

constexpr size_t kWalkBytes = 256 << 10;
// Enough of a long record to hold its header, and what follows where it was shorter after all.
constexpr size_t kPeekBytes = 4 << 10;
// Progress is told about this often.
constexpr uint64_t kProgressBytes = 4 << 20;
constexpr uint64_t kSampledHeaders = 16;

class Progress {
 public:
  explicit Progress(const IndexOptions& options) : options_(options) {}
  // An error where nobody wants the index any more.
  absl::Status At(uint64_t bytes) {
    if (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed))
      return absl::CancelledError("the index is not wanted any more");
    if (!options_.progress || bytes < next_) return absl::OkStatus();
    options_.progress(bytes);
    next_ = bytes + kProgressBytes;
    return absl::OkStatus();
  }

 private:
  const IndexOptions& options_;
  uint64_t next_ = 0;
};

// Appends an offset of a file of `size` bytes. Memory for all is asked for once their mean distance
// is known, since a vector that grows by itself needs three times its bytes at its worst.
void Append(uint64_t offset, uint64_t size, std::vector<uint64_t>& offsets) {
  constexpr size_t kKnown = 4096;
  offsets.push_back(offset);
  if (offsets.size() == kKnown && offset > 0) {
    const double expected = static_cast<double>(size) / offset * kKnown;
    offsets.reserve(static_cast<size_t>(expected * 1.05) + kKnown);
  }
}

using Built = absl::StatusOr<std::shared_ptr<const RecordIndex>>;

// With all checksums.
Built BuildVerified(const std::shared_ptr<RandomAccessFile>& file, const IndexOptions& options) {
  auto stream = RecordStream::Open(file, Compression::kNone, {.on_damage = options.on_damage});
  if (!stream.ok()) return stream.status();
  std::vector<uint64_t> offsets;
  std::vector<Damage> damage;
  Progress progress(options);
  RecordChunk chunk;
  do {
    (*stream)->Next(&chunk);
    if (!chunk.error.ok()) return chunk.error;
    for (const RecordChunk::Record& record : chunk.records)
      Append(record.offset, file->size(), offsets);
    damage.insert(damage.end(), chunk.damage.begin(), chunk.damage.end());
    if (absl::Status status = progress.At(chunk.next_offset); !status.ok()) return status;
  } while (!chunk.end_of_file);
  return std::make_shared<const RecordIndex>(
      offsets, std::move(damage), RecordIndex::Data{file->size(), file->version(), true});
}

// With the checksums of the headers, which are all that is looked at.
Built BuildFromHeaders(RandomAccessFile& file, const IndexOptions& options) {
  const uint64_t size = file.size();
  std::vector<uint64_t> offsets;
  std::vector<uint8_t> piece(kWalkBytes);
  uint64_t piece_offset = 0;
  size_t piece_bytes = 0;
  size_t want = kWalkBytes;
  Progress progress(options);
  uint64_t offset = 0;
  while (offset < size) {
    const uint64_t need = std::min(kRecordHeaderBytes, size - offset);
    if (offset + need > piece_offset + piece_bytes) {
      absl::StatusOr<size_t> count = file.ReadAt(
          offset, absl::MakeSpan(piece.data(), std::min<uint64_t>(want, size - offset)));
      if (!count.ok()) return count.status();
      piece_offset = offset;
      piece_bytes = *count;
      if (piece_bytes < need) {
        return FileShrunkError(absl::StrCat("the file became shorter than its ", size,
                                            " bytes while it was read (", file.path(), ")"));
      }
      if (absl::Status status = progress.At(offset); !status.ok()) return status;
    }
    const uint8_t* const header = piece.data() + (offset - piece_offset);
    const std::optional<DamageReason> reason =
        need < kRecordHeaderBytes ? DamageReason::kCutHeader : CheckHeader(header, size - offset);
    if (reason) {
      return WithAddress(DescribeDamage(*reason, header, size - offset, offset == 0), file, offset);
    }
    const uint64_t length = LoadU64(header);
    Append(offset, size, offsets);
    offset += length + kFrameBytes;
    want = length > kWalkBytes / 4 ? kPeekBytes : kWalkBytes;
  }
  return std::make_shared<const RecordIndex>(offsets, std::vector<Damage>(),
                                             RecordIndex::Data{size, file.version(), false});
}

MemoryBlock CopyOf(absl::Span<const uint64_t> offsets) {
  const size_t bytes = offsets.size() * sizeof(uint64_t);
  MemoryBlock memory = RecordIndex::Allocate(bytes);
  if (bytes > 0) std::memcpy(memory.get(), offsets.data(), bytes);
  return memory;
}

// Whether headers spread over the file are where the index says, and of the lengths it says.
bool SampleHolds(RandomAccessFile& file, const RecordIndex& index) {
  const uint64_t count = std::min(index.size(), kSampledHeaders);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t ordinal = count == 1 ? 0 : i * (index.size() - 1) / (count - 1);
    uint8_t header[kRecordHeaderBytes];
    absl::StatusOr<size_t> read = file.ReadAt(index.offset(ordinal), absl::MakeSpan(header));
    if (!read.ok() || *read < kRecordHeaderBytes || !HeaderHolds(header) ||
        LoadU64(header) != index.length(ordinal)) {
      return false;
    }
  }
  return true;
}

Built Load(RandomAccessFile& file, IndexStore& store, const std::string& place,
           const IndexStamp& stamp, const IndexOptions& options) {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> side_car = store.Open(place);
  if (!side_car.ok()) return side_car.status();
  // An index has 8 bytes a record, and a record has 16 at least: no allocation by a foreign size.
  if ((*side_car)->size() > 2 * stamp.data_bytes + 4096)
    return absl::DataLossError("it is longer than an index of the data can be");
  const uint64_t size = (*side_car)->size();
  MemoryBlock bytes = RecordIndex::Allocate(size);
  absl::StatusOr<size_t> count = (*side_car)->ReadAt(0, absl::MakeSpan(bytes.get(), size));
  if (!count.ok()) return count.status();
  const FileVersion own = (*side_car)->version();
  bool copied = false;
  Built index = ParseIndex(std::move(bytes), *count, stamp, own.object, &copied);
  if (!index.ok()) return index;
  // By the file's own time, as a copied one has it too.
  if (copied && stamp.version.modified_ns > own.modified_ns)
    return absl::DataLossError("it is older than the data");
  if (copied && !SampleHolds(file, **index))
    return absl::DataLossError("it belongs to other data: records are not where it says");
  if ((options.verify || options.on_damage == OnDamage::kSkipRecord) && !(*index)->verified())
    return absl::FailedPreconditionError("it was built without verifying the data");
  if (options.on_damage == OnDamage::kFail && !(*index)->damage().empty())
    return absl::FailedPreconditionError("it leaves out damage, which is an error now");
  return index;
}

}  // namespace

RecordIndex::RecordIndex(absl::Span<const uint64_t> offsets, std::vector<Damage> damage,
                         const Data& data)
    : memory_(CopyOf(offsets)),
      offsets_(reinterpret_cast<const uint64_t*>(memory_.get())),
      size_(offsets.size()),
      damage_(std::move(damage)),
      data_(data) {}

RecordIndex::RecordIndex(MemoryBlock memory, absl::Span<const uint64_t> offsets,
                         std::vector<Damage> damage, const Data& data)
    : memory_(std::move(memory)),
      offsets_(offsets.data()),
      size_(offsets.size()),
      damage_(std::move(damage)),
      data_(data) {}

MemoryBlock RecordIndex::Allocate(size_t bytes) {
  // An eighth more memory at most is what huge pages are worth here.
  const bool huge = bytes < kHugePageBytes && bytes >= kHugePageBytes / 8 * 7;
  return AllocateMemoryBlock(huge ? kHugePageBytes : bytes);
}

uint64_t RecordIndex::length(uint64_t ordinal) const {
  const uint64_t begin = offsets_[ordinal];
  uint64_t end = ordinal + 1 < size_ ? offsets_[ordinal + 1] : data_.bytes;
  if (!damage_.empty()) {
    const auto behind = std::upper_bound(
        damage_.begin(), damage_.end(), begin,
        [](uint64_t offset, const Damage& damage) { return offset < damage.offset; });
    if (behind != damage_.end()) end = std::min(end, behind->offset);
  }
  return end - begin - kFrameBytes;
}

Built LoadOrBuildIndex(const std::shared_ptr<RandomAccessFile>& file, IndexStore& store,
                       const IndexOptions& options, IndexReport* report) {
  IndexReport unwanted;
  IndexReport& result = report != nullptr ? *report : unwanted;
  result = {};
  const absl::StatusOr<IndexStamp> stamp = StampOf(*file);
  if (!stamp.ok()) return stamp.status();
  for (const std::string& place : store.PlacesToRead(file->path())) {
    Built index = Load(*file, store, place, *stamp, options);
    if (index.ok()) {
      result.path = place;
      return index;
    }
    if (!absl::IsNotFound(index.status()))
      result.rejected = absl::StrCat(index.status().message(), " (", place, ")");
  }
  if (!options.build)
    return absl::NotFoundError(absl::StrCat("no index that can be used (", file->path(), ")"));
  Built index = options.verify || options.on_damage == OnDamage::kSkipRecord
                    ? BuildVerified(file, options)
                    : BuildFromHeaders(*file, options);
  if (!index.ok()) return index;
  if (options.progress) options.progress(file->size());
  result.built = true;
  for (const std::string& place : store.PlacesToWrite(file->path())) {
    const absl::Status written =
        store.Write(place, [&](WrittenFile& out) { return WriteIndex(out, **index, *stamp); });
    result.left_to_another = absl::IsUnavailable(written);
    result.unwritten = std::string(written.message());
    if (written.ok()) result.path = place;
    if (written.ok() || result.left_to_another) break;
  }
  return index;
}

}  // namespace penstock
