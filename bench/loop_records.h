// TFRecord files for the bare loops: mapped, walked for ever, both checksums verified.
//
// Threads:  a MappedFile may be read from any thread; a RecordWalk belongs to one.
// Owns:     MappedFile its mapping; a walk nothing.
// Limits:   a damaged file ends the process.
// Cost:     the checksums, and a prefetch some records ahead.
#pragma once

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/loop_crc32c.h"

namespace penstock::bench {

[[noreturn]] inline void Die(const char* what, const std::string& which) {
  std::fprintf(stderr, "%s: %s\n", what, which.c_str());
  std::exit(1);
}

inline std::vector<std::string> MatchFiles(const std::string& pattern) {
  glob_t matches;
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &matches) != 0) Die("no file matches", pattern);
  for (size_t i = 0; i < matches.gl_pathc; ++i) paths.emplace_back(matches.gl_pathv[i]);
  globfree(&matches);
  return paths;
}

class MappedFile {
 public:
  explicit MappedFile(const std::string& path) : path_(path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) Die("cannot open", path);
    size_ = info.st_size;
    // A page behind the file, so that whole vectors may be loaded from its last record.
    mapped_ = (size_ + 4095) / 4096 * 4096 + 4096;
    void* const memory = mmap(nullptr, mapped_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mmap(memory, size_, PROT_READ,
                                     MAP_PRIVATE | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
      Die("cannot map", path);
    }
    close(fd);
    data_ = static_cast<const uint8_t*>(memory);
  }
  ~MappedFile() {
    if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), mapped_);
  }
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(other.size_),
        mapped_(other.mapped_) {}
  MappedFile& operator=(MappedFile&&) = delete;

  const std::string& path() const { return path_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::string path_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;
};

struct Record {
  const uint8_t* data;
  size_t size;
};

// The records of files number first, first + stride, … , over and over.
class RecordWalk {
 public:
  RecordWalk(const std::vector<MappedFile>& files, size_t first, size_t stride)
      : files_(files), file_(first), first_(first), stride_(stride) {
    Open();
  }

  // `crc32c` is Crc32cOfRecord or its form for an instruction set that the caller is compiled for.
  template <uint32_t (*crc32c)(const uint8_t*, size_t)>
  __attribute__((always_inline)) inline Record Next() {
    constexpr size_t kHeader = 12, kFooter = 4;
    if (next_ == end_) [[unlikely]] {
      file_ = file_ + stride_ < files_.size() ? file_ + stride_ : first_;
      Open();
    }
    const size_t left = end_ - next_;
    if (left < kHeader + kFooter) [[unlikely]]
      Damaged();
    uint64_t length;
    uint32_t length_crc, data_crc;
    std::memcpy(&length, next_, sizeof(length));
    std::memcpy(&length_crc, next_ + 8, sizeof(length_crc));
    if (MaskCrc(Crc32cOfLength(length)) != length_crc || length > left - kHeader - kFooter)
        [[unlikely]] {
      Damaged();
    }
    const uint8_t* const data = next_ + kHeader;
    for (size_t i = 0; i < 256; i += 64)
      _mm_prefetch(reinterpret_cast<const char*>(data) + kAhead + i, _MM_HINT_T0);
    std::memcpy(&data_crc, data + length, sizeof(data_crc));
    if (MaskCrc(crc32c(data, length)) != data_crc) [[unlikely]]
      Damaged();
    next_ = data + length + kFooter;
    return {data, length};
  }

 private:
  static constexpr size_t kAhead = 2048;

  void Open() {
    next_ = files_[file_].data();
    end_ = next_ + files_[file_].size();
    if (next_ == end_) Die("empty file", files_[file_].path());
  }

  [[noreturn]] void Damaged() const { Die("damaged file", files_[file_].path()); }

  const std::vector<MappedFile>& files_;
  size_t file_;
  const size_t first_;
  const size_t stride_;
  const uint8_t* next_ = nullptr;
  const uint8_t* end_ = nullptr;
};

}  // namespace penstock::bench
