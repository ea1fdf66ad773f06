// Memory whose last byte is the last of a page, behind which nothing may be touched; and whose
// first stands behind such a page if it fills pages.
//
// Threads:  one.
// Owns:     the mapping.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace penstock::testing {

class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inside = (bytes + page - 1) / page * page;
    mapped_bytes_ = inside + 2 * page;
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) std::abort();
    auto* const first = static_cast<uint8_t*>(mapped_) + page;
    if (inside > 0 && mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = first + inside - bytes;
  }
  ~GuardedMemory() { munmap(mapped_, mapped_bytes_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  uint8_t* data() const { return data_; }
  template <typename T>
  T* As() const {
    return reinterpret_cast<T*>(data_);
  }
  // Whether it begins with the bytes of `values`. Of no values too, whose address may be null,
  // which memcmp does not take.
  template <typename T>
  bool BeginsWith(const std::vector<T>& values) const {
    return values.empty() || std::memcmp(data_, values.data(), values.size() * sizeof(T)) == 0;
  }

 private:
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  uint8_t* data_ = nullptr;
};

}  // namespace penstock::testing
