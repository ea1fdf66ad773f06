#include "io/element/element_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "io/element/element_bytes.h"
#include "io/file/crc32c.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

constexpr uint32_t kSchemaBytesMax = 1 << 20;
constexpr uint64_t kElementBytesMax = UINT32_MAX;

// By RowForm.
constexpr const char* kForms[] = {"", "/ragged", "/sparse", "/packed_ragged", "/packed_sparse"};
constexpr char kNarrowSplits[] = "/int32";
// In front of the structure.
constexpr char kCompressed[] = "compressed ";
constexpr char kSharded[] = "sharded ";

// The bytes of a value as far as its type tells them, where an axis that only the data tells counts
// as one; more than an element may have: kElementBytesMax + 1.
uint64_t KnownBytes(const TensorType& type) {
  uint64_t bytes = std::max<uint64_t>(DTypeSize(type.dtype), 1);
  for (const int64_t size : type.shape) {
    const auto factor = static_cast<uint64_t>(std::max<int64_t>(size, 1));
    if (factor > kElementBytesMax / bytes) return kElementBytesMax + 1;
    bytes *= factor;
  }
  return bytes;
}

absl::Status Reject(const std::string& path, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("not a whole file of elements: ", why, " (", path, ")"));
}

}  // namespace

// A line for the structure, then one for each feature: dtype with the row's form, sizes separated
// by commas or "-" for a scalar, name.
std::string SchemaToText(const ElementSchema& schema) {
  std::string text = absl::StrCat(schema.compressed ? kCompressed : "",
                                  schema.sharded ? kSharded : "", schema.structure, "\n");
  for (const Feature& feature : schema.signature) {
    const Shape& shape = feature.type.shape;
    absl::StrAppend(
        &text, DTypeName(feature.type.dtype), kForms[static_cast<size_t>(feature.type.form)],
        feature.type.narrow_splits ? kNarrowSplits : "", " ",
        shape.empty() ? "-" : absl::StrJoin(shape, ","), " ", absl::CEscape(feature.name), "\n");
  }
  return text;
}

absl::StatusOr<ElementSchema> SchemaFromText(std::string_view text) {
  const auto bad = [] { return absl::DataLossError("its schema is malformed"); };
  std::vector<std::string> lines =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '\n');
  if (lines.size() < 2 || !lines.back().empty()) return bad();
  ElementSchema schema;
  absl::string_view first = lines.front();
  schema.compressed = absl::ConsumePrefix(&first, kCompressed);
  schema.sharded = absl::ConsumePrefix(&first, kSharded);
  schema.structure = std::string(first);
  uint64_t known_bytes = 0;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(lines[i], absl::MaxSplits(' ', 2));
    if (parts.size() != 3) return bad();
    Feature feature;
    if (!absl::CUnescape(parts[2], &feature.name)) return bad();
    absl::string_view name = parts[0];
    feature.type.narrow_splits = absl::ConsumeSuffix(&name, kNarrowSplits);
    for (size_t form = 1; form < std::size(kForms); ++form) {
      if (absl::ConsumeSuffix(&name, kForms[form])) feature.type.form = static_cast<RowForm>(form);
    }
    const std::optional<DType> dtype = DTypeFromName(std::string(name));
    if (!dtype || *dtype == DType::kInvalid) return bad();
    feature.type.dtype = *dtype;
    if (parts[1] != "-") {
      for (const absl::string_view size : absl::StrSplit(parts[1], ',')) {
        int64_t value = 0;
        if (!absl::SimpleAtoi(size, &value) || value < kUnknownSize) return bad();
        feature.type.shape.push_back(value);
      }
    }
    // A packed row has an axis, and a ragged one begins with one that only the data tells.
    const Shape& shape = feature.type.shape;
    if (feature.type.packed() && shape.empty()) return bad();
    if (feature.type.form == RowForm::kPackedRagged &&
        std::find(shape.begin() + 1, shape.end(), kUnknownSize) == shape.end())
      return bad();
    // What is added up of them later never wraps.
    known_bytes += KnownBytes(feature.type);
    if (known_bytes > kElementBytesMax) return bad();
    schema.signature.push_back(std::move(feature));
  }
  if (schema.signature.empty()) return bad();
  return schema;
}

uint32_t ElementCrc(const uint8_t* data, uint32_t length, uint64_t ordinal) {
  uint8_t frame[12];
  StoreU32(frame, length);
  StoreU64(frame + 4, ordinal);
  return MaskCrc32c(ExtendCrc32c(Crc32c(data, length), frame, sizeof(frame)));
}

bool ElementHolds(const uint8_t* frame, const uint8_t* data, uint32_t length) {
  // The frame is taken once: whoever can write the file may change it at any time.
  const uint32_t stored_length = LoadU32(frame);
  const uint32_t stored_crc = LoadU32(frame + 4);
  const uint64_t ordinal = LoadU64(frame + 8);
  return stored_length == length && stored_crc == ElementCrc(data, length, ordinal);
}

absl::StatusOr<std::shared_ptr<const ElementFile>> ElementFile::Map(const std::string& path) {
  absl::StatusOr<std::unique_ptr<MappedFile>> map = MappedFile::Map(path);
  if (!map.ok()) return map.status();
  std::shared_ptr<ElementFile> file(new ElementFile);
  file->file_bytes_ = (*map)->size();
  file->map_ = *std::move(map);
  if (absl::Status status = file->Check(nullptr, path); !status.ok()) return status;
  return file;
}

absl::StatusOr<std::shared_ptr<const ElementFile>> ElementFile::Read(RandomAccessFile& source) {
  std::shared_ptr<ElementFile> file(new ElementFile);
  file->file_bytes_ = source.size();
  if (absl::Status status = file->Check(&source, source.path()); !status.ok()) return status;
  return file;
}

absl::Status ElementFile::Copy(RandomAccessFile* file, uint64_t offset,
                               absl::Span<uint8_t> out) const {
  if (file == nullptr) return map_->Copy(offset, out);
  absl::StatusOr<size_t> read = file->ReadAt(offset, out);
  if (!read.ok()) return read.status();
  if (*read < out.size()) return Reject(file->path(), "it became shorter");
  return absl::OkStatus();
}

absl::Status ElementFile::Check(RandomAccessFile* file, const std::string& path) {
  if (file_bytes_ < kElementHeaderBytes + kElementFooterBytes)
    return Reject(path, "it is too short");
  uint8_t header[kElementHeaderBytes];
  uint8_t footer[kElementFooterBytes];
  const uint64_t footer_at = file_bytes_ - kElementFooterBytes;
  if (absl::Status status = Copy(file, 0, absl::MakeSpan(header)); !status.ok()) return status;
  if (absl::Status status = Copy(file, footer_at, absl::MakeSpan(footer)); !status.ok())
    return status;
  if (std::memcmp(header, kElementMagic, sizeof(kElementMagic)) != 0)
    return Reject(path, "it begins with other bytes");
  if (LoadU32(header + 60) != MaskCrc32c(Crc32c(header, 60)))
    return Reject(path, "its header's checksum does not hold");
  if (LoadU32(header + 8) != kElementFileVersion) {
    return Reject(path, absl::StrCat("it is of version ", LoadU32(header + 8),
                                     ", this release's is ", kElementFileVersion));
  }
  if (std::memcmp(footer + 56, kElementEnd, sizeof(kElementEnd)) != 0 ||
      LoadU32(footer + 60) != MaskCrc32c(Crc32c(footer, 60))) {
    return Reject(path, "its footer is missing or its checksum does not hold");
  }
  const uint64_t index_at = LoadU64(footer);
  const uint64_t size = LoadU64(footer + 8);
  const uint64_t schema_at = LoadU64(footer + 16);
  const uint32_t schema_bytes = LoadU32(footer + 24);
  // Each part is bounded before it is added to.
  if (schema_at < kElementHeaderBytes || schema_at > footer_at || schema_bytes > kSchemaBytesMax ||
      schema_bytes > footer_at - schema_at || index_at != schema_at + schema_bytes ||
      size > (footer_at - index_at) / kElementIndexBytes ||
      size * kElementIndexBytes != footer_at - index_at) {
    return Reject(path, "its parts do not fit its size");
  }
  if (std::memcmp(header + 16, footer + 32, key_.size()) != 0)
    return Reject(path, "its header and its footer are of different files");
  std::memcpy(key_.data(), footer + 32, key_.size());
  whole_ = (LoadU32(footer + 48) & kElementsWhole) != 0;
  first_ = LoadU64(header + 32);
  if (first_ > UINT64_MAX - size) return Reject(path, "its elements' numbers wrap");

  std::string text(schema_bytes, 0);
  const auto text_bytes = absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size());
  if (absl::Status status = Copy(file, schema_at, text_bytes); !status.ok()) return status;
  index_ = AllocateMemoryBlock(size * kElementIndexBytes + 1);
  const auto index = absl::MakeSpan(index_.get(), size * kElementIndexBytes);
  if (absl::Status status = Copy(file, index_at, index); !status.ok()) return status;
  const uint32_t crc =
      ExtendCrc32c(Crc32c(text_bytes.data(), text_bytes.size()), index.data(), index.size());
  if (LoadU32(footer + 28) != MaskCrc32c(crc))
    return Reject(path, "the checksum of its index does not hold");
  absl::StatusOr<ElementSchema> schema = SchemaFromText(text);
  if (!schema.ok()) return Reject(path, schema.status().message());
  schema_ = *std::move(schema);
  size_ = size;
  for (uint64_t i = 0; i < size; ++i) {
    const Element entry = element(i);
    if (entry.at < kElementHeaderBytes + kElementFrameBytes || entry.at % 16 != 0 ||
        entry.at > schema_at || entry.length > schema_at - entry.at) {
      size_ = 0;
      return Reject(path, absl::StrCat("element ", i, " lies outside of it"));
    }
  }
  return absl::OkStatus();
}

ElementFile::Element ElementFile::element(uint64_t index) const {
  const uint8_t* const entry = index_.get() + index * kElementIndexBytes;
  return {LoadU64(entry), LoadU64(entry + 8), LoadU64(entry + 16), LoadU32(entry + 24),
          LoadU32(entry + 28)};
}

}  // namespace penstock
