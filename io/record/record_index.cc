#include "io/record/record_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/file/damage.h"
#include "io/record/index_file.h"
#include "io/record/record_chunk.h"

namespace penstock {
namespace {

constexpr uint64_t kSampledRecords = 16;

using Built = absl::StatusOr<std::shared_ptr<const RecordIndex>>;

// Whether records spread over the file are where the index says, and of the lengths it says.
bool SampleHolds(RandomAccessFile& file, const RecordAccess& access, const RecordIndex& index) {
  const uint64_t count = std::min(index.size(), kSampledRecords);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t ordinal = count == 1 ? 0 : i * (index.size() - 1) / (count - 1);
    if (!access.IsAt(file, index.offset(ordinal), index.length(ordinal))) return false;
  }
  return true;
}

Built Load(RandomAccessFile& file, const RecordAccess& access, RandomAccessFile& side_car,
           const IndexStamp& stamp, const IndexOptions& options) {
  // No allocation by a foreign size.
  if (side_car.size() > LargestIndex(access.shape(), stamp.data_bytes))
    return absl::DataLossError("it is longer than an index of the data can be");
  const uint64_t size = side_car.size();
  MemoryBlock bytes = RecordIndex::Allocate(size);
  absl::StatusOr<size_t> count = side_car.ReadAt(0, absl::MakeSpan(bytes.get(), size));
  if (!count.ok()) return count.status();
  const FileVersion own = side_car.version();
  bool copied = false;
  Built index = ParseIndex(std::move(bytes), *count, access, stamp, own.object, &copied);
  if (!index.ok()) return index;
  // By the file's own time, as a copied one has it too.
  if (copied && stamp.version.modified_ns > own.modified_ns)
    return absl::DataLossError("it is older than the data");
  if (copied && !SampleHolds(file, access, **index))
    return absl::DataLossError("it belongs to other data: records are not where it says");
  if ((options.verify || options.on_damage == OnDamage::kSkipRecord) && !(*index)->verified())
    return absl::FailedPreconditionError("it was built without verifying the data");
  if (options.on_damage == OnDamage::kFail && !(*index)->damage().empty())
    return absl::FailedPreconditionError("it leaves out damage, which is an error now");
  return index;
}

Built Build(const std::shared_ptr<RandomAccessFile>& file, const RecordAccess& access,
            const IndexOptions& options) {
  absl::StatusOr<FoundRecords> found = access.Scan(file, options);
  if (!found.ok()) return found.status();
  const RecordShape& shape = access.shape();
  const RecordIndex::Data data{file->size(), file->version(), found->verified, found->records_end,
                               shape.header_bytes + shape.footer_bytes};
  return std::make_shared<const RecordIndex>(std::move(found->offsets), std::move(found->damage),
                                             data);
}

}  // namespace

uint64_t RecordIndex::InFrontOfDamage(uint64_t offset, uint64_t end) const {
  const auto behind =
      std::upper_bound(damage_.begin(), damage_.end(), offset,
                       [](uint64_t place, const Damage& damage) { return place < damage.offset; });
  return behind == damage_.end() ? end : std::min(end, behind->offset);
}

Built LoadOrBuildIndex(const std::shared_ptr<RandomAccessFile>& file, const RecordAccess& access,
                       IndexStore& store, const IndexOptions& options, IndexReport* report) {
  IndexReport unwanted;
  IndexReport& result = report != nullptr ? *report : unwanted;
  result = {};
  if (!access.is_kept()) return Build(file, access, options);
  // Where there is no index to compare it with, nothing of the data is read.
  std::optional<absl::StatusOr<IndexStamp>> stamp;
  for (const std::string& place : store.PlacesToRead(file->path())) {
    const absl::StatusOr<std::shared_ptr<RandomAccessFile>> side_car = store.Open(place);
    if (side_car.ok() && !stamp) stamp = StampOf(*file);
    if (stamp && !stamp->ok()) return stamp->status();
    Built index = side_car.ok() ? Load(*file, access, **side_car, **stamp, options)
                                : Built(side_car.status());
    if (index.ok()) {
      result.path = place;
      return index;
    }
    if (!absl::IsNotFound(index.status()))
      result.rejected = absl::StrCat(index.status().message(), " (", place, ")");
  }
  if (!options.build)
    return absl::NotFoundError(absl::StrCat("no index that can be used (", file->path(), ")"));
  if (!stamp) stamp = StampOf(*file);
  if (!stamp->ok()) return stamp->status();
  Built index = Build(file, access, options);
  if (!index.ok()) return index;
  if (options.progress) options.progress(file->size());
  result.built = true;
  for (const std::string& place : store.PlacesToWrite(file->path())) {
    const absl::Status written = store.Write(
        place, [&](WrittenFile& out) { return WriteIndex(out, **index, access, **stamp); });
    result.left_to_another = absl::IsUnavailable(written);
    result.unwritten = std::string(written.message());
    if (written.ok()) result.path = place;
    if (written.ok() || result.left_to_another) break;
  }
  return index;
}

}  // namespace penstock
