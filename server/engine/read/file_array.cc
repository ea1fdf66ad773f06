#include "server/engine/read/file_array.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/pending_call.h"

namespace penstock {
namespace {

constexpr uint64_t kPieceBytes = 256 << 10;
// Of each row; what lies behind follows by itself.
constexpr uint64_t kFetchedBytes = 512;

}  // namespace

uint64_t FileArray::FileOffset(uint64_t offset) const {
  if (deflated()) return member_->data_offset;
  return (member_ ? member_->data_offset : 0) + header_.data_offset + offset;
}

absl::Status FileArray::Read(FileTable& files, uint64_t offset, absl::Span<uint8_t> out) const {
  once_.Call([&] {
    status_ = MakeReady(files);
    ready_.store(true, std::memory_order_release);  // SYNC array-ready
  });
  if (!status_.ok()) return status_;
  return Copy(files, deflated() ? header_.data_offset + offset : FileOffset(offset), out);
}

void FileArray::Prefetch(uint64_t offset, uint64_t bytes) const {
  if (!ready_.load(std::memory_order_acquire) || !status_.ok()) return;  // SYNC array-ready
  if (map_ != nullptr) {
    map_->Prefetch(FileOffset(offset), bytes);
  } else if (deflated()) {
    for (uint64_t at = 0; at < std::min(bytes, kFetchedBytes); at += 64)
      __builtin_prefetch(inflated_.get() + header_.data_offset + offset + at);
  }
}

absl::Status FileArray::MakeReady(FileTable& files) const {
  // Compares the file with the manifest.
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(file_);
  if (!file.ok()) return file.status();
  if (deflated()) {
    inflated_ = AllocateMemoryBlock(member_->plain_bytes);
    return InflateWhole(**file, *member_, absl::MakeSpan(inflated_.get(), member_->plain_bytes));
  }
  map_ = files.Map(file_);
  return member_ ? VerifyChecksum(files) : absl::OkStatus();
}

absl::Status FileArray::VerifyChecksum(FileTable& files) const {
  std::vector<uint8_t> piece(std::min(kPieceBytes, member_->data_bytes));
  uint32_t crc = 0;
  for (uint64_t done = 0; done < member_->data_bytes; done += piece.size()) {
    piece.resize(std::min(kPieceBytes, member_->data_bytes - done));
    const PendingCall call("reading", files.manifest()[file_].path, member_->data_offset + done);
    absl::Status status = Copy(files, member_->data_offset + done, absl::MakeSpan(piece));
    if (!status.ok()) return status;
    crc = ExtendCrc32(crc, piece);
  }
  if (crc == member_->crc32) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the checksum of \"", member_->name, "\" does not match: stored ",
                   absl::Hex(member_->crc32), ", found ", absl::Hex(crc), " (",
                   files.manifest()[file_].path, ", offset ", member_->data_offset, ")"));
}

absl::Status FileArray::Copy(FileTable& files, uint64_t offset, absl::Span<uint8_t> out) const {
  if (out.empty()) return absl::OkStatus();
  if (deflated()) {
    std::memcpy(out.data(), inflated_.get() + offset, out.size());
    return absl::OkStatus();
  }
  if (map_ != nullptr) return map_->Copy(offset, out);
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(file_);
  if (!file.ok()) return file.status();
  absl::StatusOr<size_t> read = (*file)->ReadAt(offset, out);
  if (!read.ok()) return read.status();
  if (*read == out.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the file became shorter than its ", (*file)->size(),
                                          " bytes (", (*file)->path(), ", offset ", offset, ")"));
}

}  // namespace penstock
