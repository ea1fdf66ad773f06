// A file of computed elements, as `cache`, `snapshot` and `save` write it: reading.
//
//   0        header, 64 bytes:  "PENSTEL\n"  version u32  0 u32  key (16 bytes)  first u64  0 …  crc u32 of the 60 bytes before it
//   64 …     elements: for each a frame of 16 bytes and, behind it, its bytes at a multiple of 16
//            (of 64 from 1,024 bytes on)
//              frame:  length u32  crc u32  ordinal u64; the crc is that of the bytes, then the length, then the ordinal
//              The first element's ordinal is what the header says: more than 0 in a file that goes on behind others.
//   schema   how the elements look, as text (ElementSchema)
//   index    32 bytes an element:  offset of its bytes u64  its record's offset u64  its epoch u64  length u32  its record's file u32
//   footer   64 bytes, the file's last:  index offset u64  elements u64  schema offset u64  schema bytes u32  crc u32 of schema and index
//              key (16 bytes)  flags u32 (1: the dataset ends with it)  0 u32  "LETSNEP\n" without its last 4 bytes  crc u32
//
// All numbers are little-endian; a crc is a CRC-32C in TFRecord's masked form. A file is whole when
// its last bytes are a footer that holds: it gets its name only then.
//
// Threads:  constant after Open(); safe from any thread.
// Owns:     the map; elements point into it.
// Limits:   an element is below 4 GiB. Whoever takes an element's bytes checks them (Holds) behind
//           his last look: a file that is cut meanwhile reads as zeros, which never hold.
// Cost:     Open() reads schema and index and checks both; no element is touched.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/memory_block.h"
#include "base/signature.h"
#include "io/file/mapped_file.h"

namespace penstock {

inline constexpr uint32_t kElementFileVersion = 1;
inline constexpr size_t kElementFrameBytes = 16;
inline constexpr size_t kElementHeaderBytes = 64;
inline constexpr size_t kElementFooterBytes = 64;
inline constexpr size_t kElementIndexBytes = 32;
// What such files are called in a folder.
inline constexpr char kElementFileSuffix[] = ".penstock-elements";

// What `save` calls its one.
inline constexpr char kSavedElementsName[] = "elements";

using ElementKey = std::array<uint8_t, 16>;

// What the elements of a file are.
struct ElementSchema {
  Signature signature;
  std::string structure;    // ring/layout.h
  bool compressed = false;  // elements are packed (packed_element.h)
  bool sharded = false;     // Element::file is the number of the shard
};
std::string SchemaToText(const ElementSchema& schema);
absl::StatusOr<ElementSchema> SchemaFromText(std::string_view text);

// Whether the bytes of an element are those that were written with this frame; they may be a copy
// of what lies behind it.
bool ElementHolds(const uint8_t* frame, const uint8_t* data, uint32_t length);
uint32_t ElementCrc(const uint8_t* data, uint32_t length, uint64_t ordinal);

class ElementFile {
 public:
  struct Element {
    uint64_t at = 0;      // of its bytes in the file
    uint64_t offset = 0;  // of the record that it was made of
    uint64_t epoch = 0;
    uint32_t length = 0;
    uint32_t file = 0;  // of that record, among those of its pipeline; or the number of its shard
  };

  // Maps the file of this name. DataLoss, with what is wrong, for one that is not whole or is of
  // another version.
  static absl::StatusOr<std::shared_ptr<const ElementFile>> Map(const std::string& path);
  // The same for a file that can only be read: data() is null.
  static absl::StatusOr<std::shared_ptr<const ElementFile>> Read(RandomAccessFile& file);

  // Elements of the dataset that are in front of these.
  uint64_t first() const { return first_; }
  uint64_t size() const { return size_; }
  uint64_t file_bytes() const { return file_bytes_; }
  const ElementKey& key() const { return key_; }
  // Whether the dataset ends with its last element.
  bool whole() const { return whole_; }
  const ElementSchema& schema() const { return schema_; }
  // `index`: counted from the file's first.
  Element element(uint64_t index) const;

  // The map; null where there is none.
  const uint8_t* data() const { return map_ == nullptr ? nullptr : map_->bytes(); }
  FileVersion version() const { return map_ == nullptr ? FileVersion{} : map_->version(); }

 private:
  ElementFile() = default;
  // Reads `out.size()` bytes at an offset, which the file has.
  absl::Status Copy(RandomAccessFile* file, uint64_t offset, absl::Span<uint8_t> out) const;
  absl::Status Check(RandomAccessFile* file, const std::string& path);

  std::unique_ptr<MappedFile> map_;
  MemoryBlock index_;
  uint64_t first_ = 0;
  uint64_t size_ = 0;
  uint64_t file_bytes_ = 0;
  ElementKey key_{};
  bool whole_ = false;
  ElementSchema schema_;
};

}  // namespace penstock
