#include "server/python/desk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock::python {
namespace {

constexpr uint64_t kFirstWindowBytes = 1 << 20;
constexpr size_t kProgressBytes = 4096;
constexpr auto kFileBytes = static_cast<off_t>((kTrays + 1) * kTrayStride);

// Sparse, and of one size for ever.
absl::StatusOr<ring::Descriptor> CreateFile(const char* name) {
  ring::Descriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), kFileBytes) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory file for a Python worker process: ",
                                                     std::strerror(errno), "; see ulimit -n -f"));
  }
  return file;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Desk>> Desk::Create(std::string_view configuration) {
  std::unique_ptr<Desk> desk(new Desk);
  for (ring::Descriptor* const file : {&desk->inputs_, &desk->outputs_}) {
    absl::StatusOr<ring::Descriptor> made = CreateFile("penstock-desk");
    if (!made.ok()) return made.status();
    *file = *std::move(made);
  }
  if (pwrite(desk->inputs(), configuration.data(), configuration.size(), 0) !=
      static_cast<ssize_t>(configuration.size()))
    return absl::ResourceExhaustedError("no memory for a Python worker process");
  void* const page = mmap(nullptr, kProgressBytes, PROT_READ, MAP_SHARED, desk->outputs(), 0);
  if (page == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a Python worker process: ", std::strerror(errno)));
  }
  desk->progress_ = page;
  return desk;
}

Desk::~Desk() {
  // Whoever holds the files still, as a worker's child may, holds none of what lies in them.
  for (const int file : {inputs_.get(), outputs_.get()}) {
    if (file >= 0) fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kFileBytes);
  }
  if (progress_ != nullptr) munmap(progress_, kProgressBytes);
  for (auto& windows : windows_) {
    for (const Window& window : windows)
      if (window.at != nullptr) munmap(window.at, window.bytes);
  }
}

uint8_t* Desk::Map(int file, int tray, uint64_t bytes, bool inputs) {
  Window& window = windows_[inputs ? 0 : 1][tray];
  if (window.bytes >= bytes && window.at != nullptr) return static_cast<uint8_t*>(window.at);
  if (bytes > kMaxTrayBytes) return nullptr;
  const uint64_t size = std::max(kFirstWindowBytes, std::bit_ceil(bytes));
  void* const at = mmap(nullptr, size, inputs ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                        file, static_cast<off_t>((tray + 1) * kTrayStride));
  if (at == MAP_FAILED) return nullptr;
  if (window.at != nullptr) munmap(window.at, window.bytes);
  window = {at, size};
  return static_cast<uint8_t*>(at);
}

Progress Desk::progress() const {
  const auto* const words = static_cast<const uint64_t*>(progress_);
  return {__atomic_load_n(words, __ATOMIC_ACQUIRE), __atomic_load_n(words + 1, __ATOMIC_ACQUIRE),
          __atomic_load_n(words + 2, __ATOMIC_ACQUIRE)};
}

}  // namespace penstock::python
