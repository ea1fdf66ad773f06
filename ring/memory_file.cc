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

}  // namespace

Status CreateMemoryFile(const char* name, uint64_t bytes, int seals, Descriptor* fd,
                        boost::interprocess::mapped_region* region) {
  Descriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return SystemError("cannot create shared memory", errno);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return SystemError("cannot size shared memory to " + BytesToString(bytes), errno);
  }
  try {
    boost::interprocess::mapped_region mapped(MappableFile(file.get()),
                                              boost::interprocess::read_write, 0, bytes);
    region->swap(mapped);
  } catch (const boost::interprocess::interprocess_exception& error) {
    return SystemError("cannot map " + BytesToString(bytes) + " of shared memory",
                       error.get_native_error());
  }
  if (fcntl(file.get(), F_ADD_SEALS, seals) != 0) {
    return SystemError("cannot seal shared memory", errno);
  }
  *fd = std::move(file);
  return {};
}

}  // namespace penstock::ring
