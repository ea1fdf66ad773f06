#include "io/array/zip_directory.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_order.h"

namespace penstock {
namespace {

constexpr uint32_t kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50;
constexpr uint32_t kLocator64Magic = 0x07064b50;
constexpr uint32_t kEntryMagic = 0x02014b50;
constexpr uint32_t kLocalMagic = 0x04034b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kLocator64Bytes = 20;
constexpr uint64_t kEntryBytes = 46;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kMaxCommentBytes = 65535;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
// Deflate makes at most 258 bytes of 2 bits.
constexpr uint64_t kMaxDeflateRatio = 1032;
constexpr size_t kPieceBytes = 256 << 10;

// Numbers of the file, least significant byte first.
class Fields {
 public:
  explicit Fields(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}
  uint16_t U16(size_t at) const { return LoadLittle<uint16_t>(&bytes_[at]); }
  uint32_t U32(size_t at) const { return LoadLittle<uint32_t>(&bytes_[at]); }
  uint64_t U64(size_t at) const { return LoadLittle<uint64_t>(&bytes_[at]); }

 private:
  const absl::Span<const uint8_t> bytes_;
};

absl::Status Damaged(const RandomAccessFile& file, absl::string_view what, uint64_t offset) {
  return absl::DataLossError(
      absl::StrCat("damaged ZIP archive: ", what, " (", file.path(), ", offset ", offset, ")"));
}

// All of [offset, offset + bytes), which the caller has compared with the file's size.
absl::StatusOr<std::vector<uint8_t>> ReadAll(RandomAccessFile& file, uint64_t offset,
                                             uint64_t bytes) {
  std::vector<uint8_t> out(bytes);
  absl::StatusOr<size_t> read = file.ReadAt(offset, absl::MakeSpan(out));
  if (!read.ok()) return read.status();
  if (*read < bytes) return Damaged(file, "the file became shorter", offset);
  return out;
}

// Where the directory lies.
struct Directory {
  uint64_t entries = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

absl::StatusOr<Directory> FindDirectory(RandomAccessFile& file) {
  const uint64_t size = file.size();
  const uint64_t tail_bytes = std::min(size, kEndBytes + kMaxCommentBytes);
  absl::StatusOr<std::vector<uint8_t>> tail = ReadAll(file, size - tail_bytes, tail_bytes);
  if (!tail.ok()) return tail.status();
  const Fields fields(*tail);
  std::optional<uint64_t> end;
  for (uint64_t at = tail_bytes >= kEndBytes ? tail_bytes - kEndBytes + 1 : 0; at-- > 0 && !end;) {
    // What is behind it is its comment.
    if (fields.U32(at) == kEndMagic && fields.U16(at + 20) == tail_bytes - at - kEndBytes) end = at;
  }
  if (!end) {
    return absl::DataLossError(absl::StrCat(
        "no ZIP archive, or not all of one: it has no directory at its end (", file.path(), ")"));
  }
  const uint64_t end_offset = size - tail_bytes + *end;
  Directory found;
  found.entries = fields.U16(*end + 10);
  found.bytes = fields.U32(*end + 12);
  found.offset = fields.U32(*end + 16);
  bool one_disk = fields.U16(*end + 4) == 0 && fields.U16(*end + 6) == 0;
  uint64_t behind = end_offset;  // what the directory lies before
  if (found.entries == UINT16_MAX || found.bytes == UINT32_MAX || found.offset == UINT32_MAX) {
    if (end_offset < kLocator64Bytes + kEnd64Bytes)
      return Damaged(file, "no ZIP64 directory before its end", end_offset);
    absl::StatusOr<std::vector<uint8_t>> locator =
        ReadAll(file, end_offset - kLocator64Bytes, kLocator64Bytes);
    if (!locator.ok()) return locator.status();
    // Without one these are the figures themselves.
    if (Fields(*locator).U32(0) == kLocator64Magic) {
      const uint64_t offset = Fields(*locator).U64(8);
      if (offset > end_offset - kLocator64Bytes - kEnd64Bytes)
        return Damaged(file, "its ZIP64 locator points behind itself",
                       end_offset - kLocator64Bytes);
      absl::StatusOr<std::vector<uint8_t>> end64 = ReadAll(file, offset, kEnd64Bytes);
      if (!end64.ok()) return end64.status();
      const Fields wide(*end64);
      if (wide.U32(0) != kEnd64Magic) return Damaged(file, "no ZIP64 directory end", offset);
      one_disk = wide.U32(16) == 0 && wide.U32(20) == 0;
      found.entries = wide.U64(32);
      found.bytes = wide.U64(40);
      found.offset = wide.U64(48);
      behind = offset;
    }
  }
  if (!one_disk) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ZIP archive of several disks cannot be read (", file.path(), ")"));
  }
  if (found.offset > behind || found.bytes > behind - found.offset)
    return Damaged(file, "its directory lies outside of the file", end_offset);
  if (found.bytes > kMaxZipDirectoryBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ZIP directory longer than one may be: ", found.bytes, " > ",
                     kMaxZipDirectoryBytes, " bytes (", file.path(), ")"));
  }
  if (found.entries > found.bytes / kEntryBytes)
    return Damaged(file, "its directory is too short for its entries", end_offset);
  return found;
}

// Replaces what the 32-bit fields have no room for; false where the extra field does not hold it.
bool ReadZip64(absl::Span<const uint8_t> extra, ZipMember* member, uint64_t* local_offset) {
  const bool wants_plain = member->plain_bytes == UINT32_MAX;
  const bool wants_data = member->data_bytes == UINT32_MAX;
  const bool wants_offset = *local_offset == UINT32_MAX;
  if (!wants_plain && !wants_data && !wants_offset) return true;
  while (extra.size() >= 4) {
    const Fields fields(extra);
    const size_t bytes = fields.U16(2);
    if (bytes > extra.size() - 4) return false;
    if (fields.U16(0) == 1) {
      size_t at = 4;
      for (const auto& [wanted, value] :
           {std::pair(wants_plain, &member->plain_bytes),
            std::pair(wants_data, &member->data_bytes), std::pair(wants_offset, local_offset)}) {
        if (!wanted) continue;
        if (at + 8 > bytes + 4) return false;
        *value = fields.U64(at);
        at += 8;
      }
      return true;
    }
    extra.remove_prefix(4 + bytes);
  }
  return false;
}

// Finds the member's bytes by its local header.
absl::Status FindData(RandomAccessFile& file, uint64_t local_offset, uint64_t data_end,
                      ZipMember* member) {
  const uint64_t header_bytes = kLocalBytes + member->name.size();
  if (local_offset > data_end || header_bytes > data_end - local_offset)
    return Damaged(file, "a member lies outside of the file", local_offset);
  absl::StatusOr<std::vector<uint8_t>> header = ReadAll(file, local_offset, header_bytes);
  if (!header.ok()) return header.status();
  const Fields fields(*header);
  if (fields.U32(0) != kLocalMagic || fields.U16(26) != member->name.size() ||
      !std::equal(member->name.begin(), member->name.end(), header->begin() + kLocalBytes,
                  [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; })) {
    return Damaged(file, "a member's header is not the one of the directory", local_offset);
  }
  member->data_offset = local_offset + header_bytes + fields.U16(28);
  if (member->data_offset > data_end || member->data_bytes > data_end - member->data_offset)
    return Damaged(file, "a member's bytes lie outside of the file", local_offset);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<size_t> InflateBeginning(RandomAccessFile& file, const ZipMember& member,
                                        absl::Span<uint8_t> out) {
  const std::unique_ptr<uint8_t[]> piece(new uint8_t[kPieceBytes]);
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_DEFLATE;
  size_t done = 0;
  uint64_t taken = 0;
  while (done < out.size()) {
    if (state.avail_in == 0 && taken < member.data_bytes) {
      const size_t wanted = std::min<uint64_t>(kPieceBytes, member.data_bytes - taken);
      absl::StatusOr<size_t> read =
          file.ReadAt(member.data_offset + taken, absl::MakeSpan(piece.get(), wanted));
      if (!read.ok()) return read.status();
      if (*read < wanted) return Damaged(file, "the file became shorter", member.data_offset);
      taken += wanted;
      state.next_in = piece.get();
      state.avail_in = static_cast<uint32_t>(wanted);
    }
    const bool was_empty = state.avail_in == 0;
    const auto room = static_cast<uint32_t>(std::min(out.size() - done, size_t{1} << 30));
    state.next_out = out.data() + done;
    state.avail_out = room;
    const int result = isal_inflate(&state);
    done += room - state.avail_out;
    if (result < 0 || result == ISAL_NEED_DICT)
      return Damaged(file, absl::StrCat("bad deflate data of \"", member.name, "\""),
                     member.data_offset);
    if (state.block_state == ISAL_BLOCK_FINISH) break;
    if (was_empty && state.avail_out == room)
      return Damaged(file, absl::StrCat("the deflate data of \"", member.name, "\" has no end"),
                     member.data_offset);
  }
  return done;
}

absl::StatusOr<std::vector<ZipMember>> ReadZipDirectory(RandomAccessFile& file) {
  absl::StatusOr<Directory> directory = FindDirectory(file);
  if (!directory.ok()) return directory.status();
  absl::StatusOr<std::vector<uint8_t>> bytes = ReadAll(file, directory->offset, directory->bytes);
  if (!bytes.ok()) return bytes.status();
  std::vector<ZipMember> members;
  absl::Span<const uint8_t> rest(*bytes);
  for (uint64_t i = 0; i < directory->entries; ++i) {
    const uint64_t offset = directory->offset + (bytes->size() - rest.size());
    if (rest.size() < kEntryBytes || Fields(rest).U32(0) != kEntryMagic)
      return Damaged(file, "its directory ends early", offset);
    const Fields fields(rest);
    const size_t name_bytes = fields.U16(28);
    const size_t extra_bytes = fields.U16(30);
    const size_t entry_bytes = kEntryBytes + name_bytes + extra_bytes + fields.U16(32);
    if (entry_bytes > rest.size()) return Damaged(file, "its directory ends early", offset);
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(rest.data()) + kEntryBytes, name_bytes);
    member.crc32 = fields.U32(16);
    member.data_bytes = fields.U32(20);
    member.plain_bytes = fields.U32(24);
    uint64_t local_offset = fields.U32(42);
    if (!ReadZip64(rest.subspan(kEntryBytes + name_bytes, extra_bytes), &member, &local_offset))
      return Damaged(file, "a ZIP64 field is missing", offset);
    const uint16_t method = fields.U16(10);
    const bool encrypted = (fields.U16(8) & 1) != 0;
    rest.remove_prefix(entry_bytes);
    if (!member.name.empty() && member.name.back() == '/') continue;
    if (encrypted || (method != kStored && method != kDeflated)) {
      return absl::InvalidArgumentError(
          absl::StrCat("member \"", member.name, "\" is ",
                       encrypted ? "encrypted" : absl::StrCat("compressed by method ", method),
                       "; expected stored or deflated ones (", file.path(), ")"));
    }
    member.deflated = method == kDeflated;
    absl::Status status = FindData(file, local_offset, directory->offset, &member);
    if (!status.ok()) return status;
    if (member.deflated ? member.plain_bytes / kMaxDeflateRatio > member.data_bytes
                        : member.plain_bytes != member.data_bytes) {
      return Damaged(file, absl::StrCat("the sizes of \"", member.name, "\" do not agree"), offset);
    }
    members.push_back(std::move(member));
  }
  return members;
}

absl::Status InflateWhole(RandomAccessFile& file, const ZipMember& member,
                          absl::Span<uint8_t> out) {
  absl::StatusOr<size_t> done = InflateBeginning(file, member, out);
  if (!done.ok()) return done.status();
  if (*done != out.size() || ExtendCrc32(0, out) != member.crc32) {
    return Damaged(file, absl::StrCat("checksum or size of \"", member.name, "\" does not match"),
                   member.data_offset);
  }
  return absl::OkStatus();
}

uint32_t ExtendCrc32(uint32_t crc, absl::Span<const uint8_t> bytes) {
  return crc32_gzip_refl(crc, bytes.data(), bytes.size());
}

}  // namespace penstock
