// Maps that begin where huge pages do.

#include "ring/aligned_map.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "ring/descriptor.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

Descriptor MakeFile(uint64_t bytes) {
  Descriptor file(memfd_create("test", MFD_CLOEXEC));
  REQUIRE(ftruncate(file.get(), static_cast<off_t>(bytes)) == 0);
  return file;
}

bool IsMapped(const uint8_t* page) {
  unsigned char residence;
  return mincore(const_cast<uint8_t*>(page), 4096, &residence) == 0;
}

TEST_CASE("a map begins at a huge page, and nothing is left around it") {
  // What a file of whole pages takes, and one that ends within a page.
  for (const uint64_t bytes : {3 * kHugePageBytes, 3 * kHugePageBytes - 4096 - 5}) {
    const Descriptor file = MakeFile(bytes);
    const uint8_t last = 7;
    REQUIRE(pwrite(file.get(), &last, 1, static_cast<off_t>(bytes - 1)) == 1);
    for (int flags : {MAP_SHARED, MAP_PRIVATE | MAP_NORESERVE}) {
      void* const memory = MapAligned(file.get(), bytes, PROT_READ, flags);
      REQUIRE(memory != MAP_FAILED);
      const auto* data = static_cast<const uint8_t*>(memory);
      CHECK(reinterpret_cast<uintptr_t>(data) % kHugePageBytes == 0);
      CHECK(data[0] == 0);
      CHECK(data[bytes - 1] == 7);
      munmap(memory, bytes);
      // Somebody else may have mapped there meanwhile, but not in a test of one thread.
      const uint64_t pages_end = (bytes + 4095) / 4096 * 4096;
      CHECK_FALSE(IsMapped(data));
      CHECK_FALSE(IsMapped(data + pages_end));
    }
  }
}

TEST_CASE("a small file is mapped anywhere") {
  const Descriptor file = MakeFile(5000);
  void* const memory = MapAligned(file.get(), 5000, PROT_READ | PROT_WRITE, MAP_SHARED);
  REQUIRE(memory != MAP_FAILED);
  munmap(memory, 5000);
}

TEST_CASE("what cannot be mapped says why, and leaves no room behind") {
  const auto mapped_bytes = [] {
    long pages = 0;
    FILE* statm = std::fopen("/proc/self/statm", "r");
    REQUIRE(statm != nullptr);
    REQUIRE(std::fscanf(statm, "%ld", &pages) == 1);
    std::fclose(statm);
    return pages * 4096;
  };
  const long before = mapped_bytes();
  for (int i = 0; i < 100; ++i) {
    errno = 0;
    CHECK(MapAligned(-1, 8 * kHugePageBytes, PROT_READ, MAP_SHARED) == MAP_FAILED);
    CHECK(errno == EBADF);
  }
  CHECK(mapped_bytes() - before < long{8 * kHugePageBytes});
}

}  // namespace
}  // namespace penstock::ring
