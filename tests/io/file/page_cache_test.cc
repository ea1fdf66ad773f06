#include "io/file/page_cache.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "io/file/mapped_file.h"
#include "ring/descriptor.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// A file of 4 MiB of which the first is in memory. `is_dropped`: the others are not, as on a disk;
// what lies in memory alone cannot be dropped.
ring::Descriptor HalfThere(const test::ScratchFolder& folder, bool* is_dropped = nullptr) {
  const std::string path = folder / "data";
  std::ofstream(path, std::ios::binary) << std::string(4 * kMiB, 'x');
  ring::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(file);
  REQUIRE(fsync(file.get()) == 0);
  REQUIRE(posix_fadvise(file.get(), kMiB, 3 * kMiB, POSIX_FADV_DONTNEED) == 0);
  if (is_dropped != nullptr) {
    const auto map = *MappedFile::Map(path);
    *is_dropped = map->InMemoryUntil(0, 4 * kMiB) <= 2 * kMiB &&
                  map->InMemoryUntil(3 * kMiB, 4 * kMiB) == 3 * kMiB;
  }
  return file;
}

// Runs `look` in a thread that works on files for the user nobody, as the kernel sees it.
template <typename Look>
void AsNobody(const Look& look) {
  std::thread([&look] {
    constexpr uid_t kNobody = 65534;
    // Of this thread alone, unlike the C library's.
    syscall(SYS_setfsuid, kNobody);
    look();
  }).join();
}

TEST_CASE("who owns a file is told of its pages") {
  const test::ScratchFolder folder;
  const ring::Descriptor file = HalfThere(folder);
  CHECK(ViewOfPageCache(file.get(), 4 * kMiB) == PageCacheView::kPages);
  // Of a file that has grown a page behind its end may be there: no harm.
  CHECK(ViewOfPageCache(file.get(), 0) == PageCacheView::kProbes);
  CHECK(ViewOfPageCache(file.get(), 4 * kMiB - 1) == PageCacheView::kPages);
}

TEST_CASE("single bytes tell how far a file is in memory") {
  const test::ScratchFolder folder;
  bool is_dropped = false;
  const ring::Descriptor file = HalfThere(folder, &is_dropped);
  CHECK(CachedUntil(file.get(), 0, kMiB) == kMiB);
  CHECK(CachedUntil(file.get(), 12345, kMiB - 1) == kMiB - 1);
  CHECK(CachedUntil(file.get(), 5, 6) == 6);
  CHECK(CachedUntil(file.get(), 7, 7) == 7);
  CHECK(CachedUntil(file.get(), 5 * kMiB, 6 * kMiB) == 5 * kMiB);
  CHECK(CachedUntil(-1, 0, kMiB) == 0);
  if (!is_dropped) {
    WARN("this folder lies in memory alone");
    return;
  }
  // The question has the disk begin to read, and a guest that stands still meanwhile finds the byte
  // there: not at all places, of which each is read for itself.
  REQUIRE(posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM) == 0);
  int num_missing = 0;
  for (uint64_t at = 3 * kMiB + 5; at < 4 * kMiB; at += kMiB / 32)
    num_missing += CachedUntil(file.get(), at, at + 1) == at ? 1 : 0;
  CHECK(num_missing > 0);
  // As far as the last byte that was asked for and is there.
  const uint64_t until = CachedUntil(file.get(), 100, 4 * kMiB);
  CHECK(until < 3 * kMiB);
  CHECK(until > kMiB - kProbeBytes);
}

TEST_CASE("who neither owns a file nor may write to it looks at single bytes") {
  if (geteuid() != 0) {
    // Everybody may read it, and root alone write to it.
    const ring::Descriptor file(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
    CHECK(ViewOfPageCache(file.get(), lseek(file.get(), 0, SEEK_END)) == PageCacheView::kProbes);
    return;
  }
  const test::ScratchFolder folder;
  const ring::Descriptor file = HalfThere(folder);
  AsNobody([&file] { CHECK(ViewOfPageCache(file.get(), 4 * kMiB) == PageCacheView::kProbes); });
  CHECK(ViewOfPageCache(file.get(), 4 * kMiB) == PageCacheView::kPages);
}

TEST_CASE("of what is no file with pages nobody tells") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const ring::Descriptor reading(ends[0]), writing(ends[1]);
  CHECK(ViewOfPageCache(reading.get(), 0) == PageCacheView::kNone);
}

}  // namespace
}  // namespace penstock
