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

constexpr uint64_t kHugePageBytes = 2 << 20;
// A worker says how much it has written, and what it has not is laid there, too.
constexpr uint64_t kMostHugeBytes = 64 << 20;
#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;
#endif

uint64_t HugePages(uint64_t bytes) {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

// As mmap(), from where a huge page may begin on.
void* MapAligned(int file, off_t offset, uint64_t bytes, int protection) {
  const uint64_t room_bytes = bytes + kHugePageBytes;
  void* const room =
      mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return mmap(nullptr, bytes, protection, MAP_SHARED, file, offset);
  auto* const begin = static_cast<uint8_t*>(room);
  uint8_t* const address =
      begin +
      (kHugePageBytes - reinterpret_cast<uintptr_t>(begin) % kHugePageBytes) % kHugePageBytes;
  void* const at = mmap(address, bytes, protection, MAP_SHARED | MAP_FIXED, file, offset);
  if (at == MAP_FAILED) {
    munmap(room, room_bytes);
    return at;
  }
  if (address > begin) munmap(begin, static_cast<size_t>(address - begin));
  if (address + bytes < begin + room_bytes)
    munmap(address + bytes, static_cast<size_t>(begin + room_bytes - (address + bytes)));
  return at;
}

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
  if (!desk->Configure(configuration))
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

bool Desk::Configure(std::string_view configuration) {
  return pwrite(inputs(), configuration.data(), configuration.size(), 0) ==
         static_cast<ssize_t>(configuration.size());
}

uint8_t* Desk::Map(int file, int tray, uint64_t bytes, bool inputs) {
  Window& window = windows_[inputs ? 0 : 1][tray];
  if (window.bytes < bytes || window.at == nullptr) {
    if (bytes > kMaxTrayBytes) return nullptr;
    const uint64_t size = std::max(kFirstWindowBytes, std::bit_ceil(bytes));
    void* const at = MapAligned(file, static_cast<off_t>((tray + 1) * kTrayStride), size,
                                inputs ? PROT_READ | PROT_WRITE : PROT_READ);
    if (at == MAP_FAILED) return nullptr;
    if (window.at != nullptr) munmap(window.at, window.bytes);
    window = {at, size};
  }
  bytes = std::min(bytes, kMostHugeBytes);
  if (bytes > window.tried_bytes && bytes >= kHugePageBytes) LayHugePages(&window, bytes, inputs);
  return static_cast<uint8_t*>(window.at);
}

void Desk::LayHugePages(Window* window, uint64_t bytes, bool inputs) {
  uint8_t* const begin = static_cast<uint8_t*>(window->at) + window->tried_bytes;
  uint8_t* const end = static_cast<uint8_t*>(window->at) + HugePages(bytes);
  window->tried_bytes = HugePages(bytes);
  // What a worker has written is there already. In front of what is to be written, the kernel wants
  // to find one small page in each.
  for (uint8_t* page = begin; inputs && page < end; page += kHugePageBytes) *page = 0;
  // Without them everything works as well.
  madvise(begin, static_cast<size_t>(end - begin), MADV_COLLAPSE);
}

Progress Desk::progress() const {
  const auto* const words = static_cast<const uint64_t*>(progress_);
  return {__atomic_load_n(words, __ATOMIC_ACQUIRE), __atomic_load_n(words + 1, __ATOMIC_ACQUIRE),
          __atomic_load_n(words + 2, __ATOMIC_ACQUIRE)};
}

}  // namespace penstock::python
