#include "io/record/tfrecord_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "io/file/crc32c.h"
#include "io/record/tfrecord_reader.h"

namespace penstock {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

absl::Status ErrnoStatus(const char* what, const std::string& path) {
  return FileError(errno, absl::StrCat(what, " ", path));
}

void AppendLittleEndian(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

uint32_t MaskedCrc32c(const char* data, size_t size) {
  return MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(data), size));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TfrecordWriter>> TfrecordWriter::Create(const std::string& path) {
  const ReplacedFile file(path);
  const int fd = open(file.partial().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus("cannot create", file.partial());
  return std::unique_ptr<TfrecordWriter>(new TfrecordWriter(path, file, fd));
}

TfrecordWriter::TfrecordWriter(std::string path, ReplacedFile file, int fd)
    : path_(std::move(path)), file_(std::move(file)), fd_(fd) {
  buffer_.reserve(kBufferBytes + (kBufferBytes >> 4));
}

TfrecordWriter::~TfrecordWriter() {
  if (fd_ < 0) return;
  close(fd_);
  file_.Discard();
}

absl::Status TfrecordWriter::Write(std::string_view record) {
  if (record.size() > kMaxRecordBytes) {
    return absl::InvalidArgumentError(absl::StrCat("record longer than limit: ", record.size(),
                                                   " > ", kMaxRecordBytes, " bytes (", path_,
                                                   ", record ", num_records_, ")"));
  }
  const size_t header = buffer_.size();
  AppendLittleEndian(&buffer_, record.size(), 8);
  AppendLittleEndian(&buffer_, MaskedCrc32c(buffer_.data() + header, 8), 4);
  buffer_.append(record);
  AppendLittleEndian(&buffer_, MaskedCrc32c(record.data(), record.size()), 4);
  ++num_records_;
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status TfrecordWriter::Flush() {
  size_t written = 0;
  while (written < buffer_.size()) {
    const ssize_t n = write(fd_, buffer_.data() + written, buffer_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write", file_.partial());
    written += static_cast<size_t>(n);
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status TfrecordWriter::Close() {
  if (absl::Status status = Flush(); !status.ok()) return status;
  if (close(std::exchange(fd_, -1)) != 0) {
    const absl::Status status = ErrnoStatus("cannot write", file_.partial());
    file_.Discard();
    return status;
  }
  return file_.Replace();
}

}  // namespace penstock
