#include "io/record/tfrecord_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_error.h"
#include "base/replaced_file.h"
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

class FileSink final : public ByteSink {
 public:
  FileSink(const ReplacedFile& file, int fd) : file_(file), fd_(fd) {}
  ~FileSink() override {
    if (fd_ < 0) return;
    close(fd_);
    file_.Discard();
  }

  absl::Status Write(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus("cannot write", file_.partial());
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    if (close(std::exchange(fd_, -1)) != 0) {
      const absl::Status status = ErrnoStatus("cannot write", file_.partial());
      file_.Discard();
      return status;
    }
    return file_.Replace();
  }

 private:
  const ReplacedFile file_;
  int fd_;
};

uint32_t MaskedCrc32c(const char* data, size_t size) {
  return MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(data), size));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TfrecordWriter>> TfrecordWriter::Create(const std::string& path) {
  const ReplacedFile file(path);
  const int fd = open(file.partial().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus("cannot create", file.partial());
  return std::make_unique<TfrecordWriter>(path, std::make_unique<FileSink>(file, fd));
}

TfrecordWriter::TfrecordWriter(std::string path, std::unique_ptr<ByteSink> sink)
    : path_(std::move(path)), sink_(std::move(sink)) {
  buffer_.reserve(kBufferBytes + (kBufferBytes >> 4));
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
  if (absl::Status status = sink_->Write(buffer_); !status.ok()) return status;
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status TfrecordWriter::Close() {
  if (absl::Status status = Flush(); !status.ok()) return status;
  return sink_->Close();
}

}  // namespace penstock
