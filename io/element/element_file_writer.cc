#include "io/element/element_file_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/file_error.h"
#include "io/element/element_bytes.h"
#include "io/element/packed_element.h"
#include "io/file/crc32c.h"

namespace penstock {
namespace {

constexpr uint32_t kCopiedBytes = 256 << 10;
constexpr uint32_t kWideBytes = 1024;

// Where the bytes of an element of this length lie, behind what ends at `end` and its frame.
uint64_t PlaceBehind(uint64_t end, uint32_t length) {
  const uint64_t alignment = length >= kWideBytes ? 64 : 16;
  return (end + kElementFrameBytes + alignment - 1) / alignment * alignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ElementFileWriter>> ElementFileWriter::Create(
    Disk& disk, const std::string& path, const ElementKey& key, const ElementSchema& schema,
    uint64_t first) {
  absl::StatusOr<std::unique_ptr<WrittenFile>> file = disk.Create(path + ".partial");
  if (!file.ok()) return file.status();
  std::unique_ptr<ElementFileWriter> writer(new ElementFileWriter(
      disk, path, key, SchemaToText(schema), schema.compressed, first, *std::move(file)));
  if (writer->writes_each_byte_) {
    if (absl::Status status = writer->WriteHead(); !status.ok()) return status;
  }
  return writer;
}

ElementFileWriter::ElementFileWriter(Disk& disk, std::string path, const ElementKey& key,
                                     std::string schema, bool compressed, uint64_t first,
                                     std::unique_ptr<WrittenFile> file)
    : disk_(disk),
      path_(std::move(path)),
      key_(key),
      schema_(std::move(schema)),
      compressed_(compressed),
      writes_each_byte_(IsAddress(path_)),
      first_(first),
      file_(std::move(file)) {}

ElementFileWriter::~ElementFileWriter() {
  // While the lock is still held: else it might be another writer's.
  if (!published_) disk_.Remove(partial_path()).IgnoreError();
}

uint64_t ElementFileWriter::BytesWith(uint32_t length) const {
  const uint64_t end = end_;
  return bytes() - end + PlaceBehind(end, length) + length + kElementIndexBytes;
}

uint64_t ElementFileWriter::bytes() const {
  return end_ + schema_.size() + index_.size() * kElementIndexBytes + kElementFooterBytes;
}

ElementFile::Element ElementFileWriter::Add(ElementFile::Element element) {
  if (!compressed_) {
    element.at = PlaceBehind(end_, element.length);
    end_ = element.at + element.length;
  }
  index_.push_back(element);
  return element;
}

absl::Status ElementFileWriter::Write(uint64_t begin, absl::Span<ElementFile::Element> places,
                                      absl::Span<const uint8_t* const> data, uint64_t from) {
  if (!compressed_) return WriteAtPlaces(begin, places, data, from);
  std::vector<std::string> packed;
  std::vector<const uint8_t*> bytes;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].length > kMaxPackableBytes)
      return absl::ResourceExhaustedError("an element is larger than it may be to be packed");
    packed.push_back(PackElement({data[i], places[i].length}));
    places[i].length = static_cast<uint32_t>(packed.back().size());
    bytes.push_back(reinterpret_cast<const uint8_t*>(packed.back().data()));
  }
  {
    const std::lock_guard lock(mutex_);
    uint64_t end = end_;
    from = writes_each_byte_ ? end : 0;
    for (ElementFile::Element& place : places) {
      place.at = PlaceBehind(end, place.length);
      end = place.at + place.length;
    }
    end_ = end;
  }
  return WriteAtPlaces(begin, places, bytes, from);
}

void ElementFileWriter::Place(uint64_t begin, absl::Span<const ElementFile::Element> places) {
  if (compressed_) std::copy(places.begin(), places.end(), index_.begin() + begin);
}

absl::Status ElementFileWriter::WriteAtPlaces(uint64_t begin,
                                              absl::Span<const ElementFile::Element> places,
                                              absl::Span<const uint8_t* const> data,
                                              uint64_t from) {
  std::string piece;
  uint64_t piece_at = 0;
  const auto flush = [&] {
    const absl::Status status =
        file_->WriteAt(piece_at, {reinterpret_cast<const uint8_t*>(piece.data()), piece.size()});
    piece.clear();
    return status;
  };
  for (size_t i = 0; i < places.size(); ++i) {
    const ElementFile::Element& place = places[i];
    uint8_t frame[kElementFrameBytes];
    StoreU32(frame, place.length);
    const uint64_t ordinal = first_ + begin + i;
    StoreU32(frame + 4, ElementCrc(data[i], place.length, ordinal));
    StoreU64(frame + 8, ordinal);
    const uint64_t frame_at = place.at - kElementFrameBytes;
    if (piece.empty()) piece_at = from != 0 ? from : frame_at;
    if (from != 0) from = place.at + place.length;
    piece.resize(frame_at - piece_at);
    piece.append(reinterpret_cast<const char*>(frame), sizeof(frame));
    if (place.length <= kCopiedBytes) {
      piece.append(reinterpret_cast<const char*>(data[i]), place.length);
      if (piece.size() < 4 * kCopiedBytes) continue;
    }
    if (absl::Status status = flush(); !status.ok()) return status;
    if (place.length <= kCopiedBytes) continue;
    absl::Status status = file_->WriteAt(place.at, {data[i], place.length});
    if (!status.ok()) return status;
  }
  return piece.empty() ? absl::OkStatus() : flush();
}

absl::Status ElementFileWriter::Finish(uint64_t elements, bool whole) {
  elements = std::min<uint64_t>(elements, index_.size());
  whole = whole && elements == index_.size();
  absl::Status status = WriteEnd(elements, whole);
  // What the last elements take is enough for the index of the others.
  while (absl::IsResourceExhausted(status) && elements > 0) {
    elements -= std::max<uint64_t>(1, elements / 64);
    whole = false;
    status = WriteEnd(elements, whole);
  }
  if (!status.ok()) return status;
  if (elements == 0 && !whole)
    return absl::ResourceExhaustedError("there is no room for an element");
  if (status = file_->Sync(); !status.ok()) return status;
  // From here on the file is there under one name or the other.
  published_ = true;
  status = disk_.Publish(partial_path(), path_);
  if (status.ok()) return status;
  disk_.Remove(partial_path()).IgnoreError();
  disk_.Remove(path_).IgnoreError();
  return status;
}

absl::Status ElementFileWriter::WriteHead() {
  uint8_t header[kElementHeaderBytes] = {};
  std::memcpy(header, kElementMagic, sizeof(kElementMagic));
  StoreU32(header + 8, kElementFileVersion);
  std::memcpy(header + 16, key_.data(), key_.size());
  StoreU64(header + 32, first_);
  StoreU32(header + 60, MaskCrc32c(Crc32c(header, 60)));
  return file_->WriteAt(0, header);
}

absl::Status ElementFileWriter::WriteEnd(uint64_t elements, bool whole) {
  // The last one need not be the one that lies last.
  uint64_t schema_at = kElementHeaderBytes;
  for (uint64_t i = 0; i < elements; ++i)
    schema_at = std::max(schema_at, index_[i].at + index_[i].length);
  std::string tail = schema_;
  tail.resize(schema_.size() + elements * kElementIndexBytes);
  auto* const index = reinterpret_cast<uint8_t*>(tail.data()) + schema_.size();
  for (uint64_t i = 0; i < elements; ++i) {
    uint8_t* const entry = index + i * kElementIndexBytes;
    StoreU64(entry, index_[i].at);
    StoreU64(entry + 8, index_[i].offset);
    StoreU64(entry + 16, index_[i].epoch);
    StoreU32(entry + 24, index_[i].length);
    StoreU32(entry + 28, index_[i].file);
  }
  uint8_t footer[kElementFooterBytes] = {};
  StoreU64(footer, schema_at + schema_.size());
  StoreU64(footer + 8, elements);
  StoreU64(footer + 16, schema_at);
  StoreU32(footer + 24, static_cast<uint32_t>(schema_.size()));
  StoreU32(footer + 28,
           MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(tail.data()), tail.size())));
  std::memcpy(footer + 32, key_.data(), key_.size());
  StoreU32(footer + 48, whole ? kElementsWhole : 0);
  std::memcpy(footer + 56, kElementEnd, sizeof(kElementEnd));
  StoreU32(footer + 60, MaskCrc32c(Crc32c(footer, 60)));
  tail.append(reinterpret_cast<const char*>(footer), sizeof(footer));

  if (!writes_each_byte_) {
    if (absl::Status status = file_->Truncate(schema_at); !status.ok()) return status;
    if (absl::Status status = WriteHead(); !status.ok()) return status;
  }
  return file_->WriteAt(schema_at, {reinterpret_cast<const uint8_t*>(tail.data()), tail.size()});
}

}  // namespace penstock
