#include "ring/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/interprocess/exceptions.hpp>
#include <cerrno>
#include <cstring>
#include <string>

#include "ring/memory_limit.h"

namespace penstock::ring {
namespace {

// What Boost.Interprocess asks of something that can be mapped.
class MappableFile {
 public:
  explicit MappableFile(int fd) : fd_(fd) {}
  boost::interprocess::mapping_handle_t get_mapping_handle() const {
    return boost::interprocess::ipcdetail::mapping_handle_from_file_handle(fd_);
  }

 private:
  int fd_;
};

Status SystemError(const std::string& what, int error) {
  return {error == ENOMEM || error == EMFILE || error == ENFILE ? Code::kResourceExhausted
                                                                : Code::kInternal,
          what + ": " + std::strerror(error)};
}

// A free address at which huge pages can be mapped, or null. Should another thread take it first,
// the mapping fails: the caller then maps anywhere.
void* FindAddress(uint64_t bytes) {
  void* found =
      mmap(nullptr, bytes + kHugePageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  munmap(found, bytes + kHugePageBytes);
  const auto address = reinterpret_cast<uintptr_t>(found);
  return reinterpret_cast<void*>((address + kHugePageBytes - 1) & ~(kHugePageBytes - 1));
}

// Returns the error's number, or 0.
int Map(int fd, uint64_t bytes, void* address, boost::interprocess::mapped_region* region) {
  try {
    boost::interprocess::mapped_region mapped(MappableFile(fd), boost::interprocess::read_write, 0,
                                              bytes, address);
    region->swap(mapped);
    return 0;
  } catch (const boost::interprocess::interprocess_exception& error) {
    return error.get_native_error() != 0 ? error.get_native_error() : EINVAL;
  }
}

}  // namespace

Status CreateMemoryFile(const char* name, uint64_t bytes, int seals, Descriptor* fd,
                        boost::interprocess::mapped_region* region) {
  Descriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return SystemError("cannot create shared memory", errno);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return SystemError("cannot size shared memory to " + BytesToString(bytes), errno);
  }
  if (Map(file.get(), bytes, FindAddress(bytes), region) != 0) {
    if (const int error = Map(file.get(), bytes, nullptr, region); error != 0)
      return SystemError("cannot map " + BytesToString(bytes) + " of shared memory", error);
  }
  if (fcntl(file.get(), F_ADD_SEALS, seals) != 0) {
    return SystemError("cannot seal shared memory", errno);
  }
  *fd = std::move(file);
  return {};
}

}  // namespace penstock::ring
