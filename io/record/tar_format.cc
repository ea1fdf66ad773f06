#include "io/record/tar_format.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/file/mapped_file.h"
#include "io/record/near_records.h"
#include "io/record/record_chunk.h"
#include "io/record/scan_progress.h"
#include "io/record/tar_cell.h"
#include "io/record/tar_head.h"
#include "io/record/tar_near.h"
#include "io/record/tar_scan.h"
#include "io/record/tar_stream.h"

namespace penstock {
namespace {

class Tar final : public RecordFormat, public RecordAccess, public NearRecords {
 public:
  std::string ContentKey() const override { return "tar"; }
  const RecordAccess* access() const override { return this; }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return std::make_unique<TarStream>(std::move(source));
  }

  std::string IndexKey() const override { return ContentKey(); }
  const RecordShape& shape() const override { return shape_; }
  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>& file,
                                    const IndexOptions& options) const override {
    if (file->descriptor() >= 0) {
      absl::StatusOr<std::optional<FoundRecords>> found = ScanMap(*file, options);
      if (!found.ok()) return found.status();
      if (*found) return **std::move(found);
    }
    return ScanByStream(*this, shape_.offset_shift, file, options);
  }
  bool Open(uint8_t* bytes, uint64_t* length, bool) const override {
    return *length >= kTarBlockBytes && IsTarHeader(bytes);
  }
  bool IsAt(RandomAccessFile& file, uint64_t offset, uint64_t) const override {
    uint8_t head[kTarBlockBytes];
    const absl::StatusOr<size_t> read = file.ReadAt(offset, absl::MakeSpan(head));
    return read.ok() && *read == sizeof(head) && IsTarHeader(head);
  }
  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>& file,
                     uint64_t offset) const override {
    return OrdinalByStream(*this, file, offset);
  }

  Cut CutNear(RandomAccessFile& file, uint64_t offset, uint64_t bytes, Take take) const override {
    return CutNearTar(file, offset, bytes, take);
  }

 private:
  // Nothing where it cannot be mapped, or is not sound.
  static absl::StatusOr<std::optional<FoundRecords>> ScanMap(const RandomAccessFile& file,
                                                             const IndexOptions& options) {
    const absl::StatusOr<std::unique_ptr<MappedFile>> map = MappedFile::Map(file);
    if (!map.ok()) return std::nullopt;
    ScanProgress progress(options);
    absl::StatusOr<std::optional<FoundRecords>> found =
        ScanSoundTar({(*map)->bytes(), (*map)->size()}, progress);
    if (found.ok() && (*map)->torn()) return std::nullopt;
    return found;
  }

  const RecordShape shape_ = {.least_bytes = kTarBlockBytes, .offset_shift = 9, .has_gaps = true};
};

}  // namespace

const std::shared_ptr<const RecordFormat>& TarFormat() {
  static const auto* const format =
      new std::shared_ptr<const RecordFormat>(std::make_shared<Tar>());
  return *format;
}

absl::Status ForEachTarMember(absl::Span<const uint8_t> bytes, std::string* key,
                              absl::FunctionRef<absl::Status(const TarMember&)> take) {
  if (IsTarCell(bytes)) return ForEachTarCellMember(bytes, key, take);
  TarHead head;
  bool has_key = false;
  while (!bytes.empty()) {
    const TarHead::Found found = ReadTarHead(bytes, &head);
    // What lies behind the last member, up to the next sample.
    if (found == TarHead::Found::kEnd && has_key) break;
    if (found == TarHead::Found::kNeedsMore && has_key) break;
    if (found != TarHead::Found::kMember) {
      return absl::DataLossError(
          absl::StrCat("no sample of a tar file: ",
                       found == TarHead::Found::kNeedsMore || found == TarHead::Found::kEnd
                           ? "a member's head is not all there"
                           : head.what));
    }
    absl::string_view own_key, extension;
    if (head.is_regular() && !IsTarMeta(head.path) &&
        SplitTarPath(head.path, &own_key, &extension)) {
      if (!has_key) key->assign(own_key.data(), own_key.size());
      if (has_key && own_key != *key) break;
      has_key = true;
      if (bytes.size() < head.bytes + head.size)
        return absl::DataLossError("no sample of a tar file: a member's data is not all there");
      if (absl::Status status = take({extension, bytes.subspan(head.bytes, head.size)});
          !status.ok())
        return status;
    }
    bytes.remove_prefix(std::min<uint64_t>(head.bytes + TarPadded(head.size), bytes.size()));
  }
  if (has_key) return absl::OkStatus();
  return absl::DataLossError("no sample of a tar file: no member has a key");
}

}  // namespace penstock
