#include "server/engine/read/arrow_buffers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/pending_call.h"

namespace penstock {

const MappedFile* ArrowBuffers::MapOf(uint32_t file, FileTable& files) const {
  Mapping& mapping = maps_[file];
  mapping.once.Call([&] { mapping.map = files.Map(first_file_ + file); });
  return mapping.map.get();
}

absl::Status ArrowBuffers::Read(const ArrowBatches::Batch& batch, const ArrowExtent& extent,
                                FileTable& files, ArrowMemory* memory) const {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(first_file_ + batch.file);
  if (!file.ok()) return file.status();
  if (extent.bytes > kMaxArrowBufferBytes) {
    return absl::DataLossError(absl::StrCat(
        "a buffer of ", extent.bytes, " bytes, which has to be read into memory; expected at most ",
        kMaxArrowBufferBytes));
  }
  ArrowMemory raw = AllocateArrowMemory(extent.bytes);
  const PendingCall call("reading", (*file)->path(), extent.offset);
  absl::StatusOr<size_t> read =
      (*file)->ReadAt(extent.offset, absl::MakeSpan(raw.block.get(), extent.bytes));
  if (!read.ok()) return read.status();
  if (*read < extent.bytes) {
    return FileShrunkError(absl::StrCat("the file became shorter than its ", (*file)->size(),
                                        " bytes while it was read"));
  }
  files.CountRead(extent.bytes);
  if (batch.codec == ArrowCodec::kNone) {
    *memory = std::move(raw);
    return absl::OkStatus();
  }
  absl::StatusOr<ArrowMemory> plain =
      UnpackArrowBuffer(batch.codec, {raw.block.get(), extent.bytes});
  if (!plain.ok()) return plain.status();
  *memory = *std::move(plain);
  return absl::OkStatus();
}

absl::StatusOr<const uint8_t*> ArrowView::Get(const ArrowBatches::Batch& batch, uint64_t place,
                                              ArrowPart part, uint64_t least, uint64_t* bytes) {
  const ArrowExtent& extent = buffers_.batches_.place(place).parts[static_cast<size_t>(part)];
  const auto too_few = [least](uint64_t found) {
    return absl::DataLossError(
        absl::StrCat("a buffer has ", found, " bytes, expected at least ", least));
  };
  if (const uint8_t* const map = MapOf(batch)) {
    if (bytes != nullptr) *bytes = extent.bytes;
    if (extent.bytes < least) return too_few(extent.bytes);
    return map + extent.offset;
  }
  const uint64_t key = place * kArrowParts + static_cast<uint64_t>(part);
  const auto found = [&](const ArrowMemory& memory) -> absl::StatusOr<const uint8_t*> {
    if (bytes != nullptr) *bytes = memory.bytes;
    if (memory.bytes < least) return too_few(memory.bytes);
    return memory.block.get();
  };
  for (const std::shared_ptr<const ArrowBuffers::Held>& held : held_) {
    if (held->key == key) return found(held->value);
  }
  std::shared_ptr<const ArrowBuffers::Held> held = buffers_.kept_.Get(
      key, [&](ArrowMemory* memory) { return buffers_.Read(batch, extent, files_, memory); },
      [](const ArrowMemory& memory) { return memory.bytes; });
  if (!held->status.ok()) return held->status;
  if (held->value.bytes < least) return too_few(held->value.bytes);
  held_bytes_ += held->value.bytes;
  held_.push_back(std::move(held));
  return found(held_.back()->value);
}

absl::Status ArrowView::CheckMap(uint32_t file) const {
  const MappedFile* const map = buffers_.MapOf(file, files_);
  if (map == nullptr || !map->torn()) return absl::OkStatus();
  return FileShrunkError(
      absl::StrCat("the file lost bytes while it was mapped (", map->path(), ")"));
}

}  // namespace penstock
