// What a client can do with the descriptors it receives, tried with the system calls themselves.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

TEST_CASE("faults 33 and 44: nobody but the daemon can write or resize a segment") {
  auto writer = MakeWriter();
  ConsumerHandle handle;
  REQUIRE(writer->Attach("default", 1, &handle).ok());
  const int fd = handle.segment_fd;

  CHECK(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  CHECK(errno == EPERM);

  void* readable = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(readable != MAP_FAILED);
  CHECK(mprotect(readable, 4096, PROT_READ | PROT_WRITE) == -1);
  munmap(readable, 4096);

  char byte = 1;
  CHECK(pwrite(fd, &byte, 1, 0) == -1);
  CHECK(errno == EPERM);
  CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == -1);
  CHECK(errno == EPERM);
  CHECK(ftruncate(fd, 4096) == -1);
  CHECK(errno == EPERM);
  CHECK(ftruncate(fd, int64_t{1} << 30) == -1);
  CHECK(errno == EPERM);
  CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1);
  CHECK(errno == EPERM);

  // Opened anew for writing through /proc it is sealed as well.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const Descriptor again(open(path.c_str(), O_RDWR));
  if (again) {
    CHECK(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0) == MAP_FAILED);
  }
  // The daemon goes on writing.
  CHECK(Produce(writer.get()) == 3);
}

TEST_CASE("fault 44: a control page cannot be resized under the daemon") {
  auto writer = MakeWriter();
  ConsumerHandle handle;
  REQUIRE(writer->Attach("default", 1, &handle).ok());
  CHECK(ftruncate(handle.control_fd, 0) == -1);
  CHECK(errno == EPERM);
  CHECK(ftruncate(handle.control_fd, 8192) == -1);
  CHECK(errno == EPERM);
  // A hole reads as zeros there, which release nothing.
  REQUIRE(fallocate(handle.control_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
  CHECK(Produce(writer.get()) == 3);
  CHECK(writer->TryClaim() == -1);
}

TEST_CASE("fault 41: descriptors do not survive an exec") {
  auto writer = MakeWriter();
  ConsumerHandle handle;
  REQUIRE(writer->Attach("default", 1, &handle).ok());
  for (int fd : {handle.segment_fd, handle.control_fd, handle.bell_fd}) {
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
}

}  // namespace
}  // namespace penstock::ring
