// Preloaded into a daemon: the files below a folder are read as from a disk that answers late,
// whatever of them is in memory.
//
// SLOW_DISK is "FOLDER LATENCY_MS MB_PER_S". A file is asked for in pieces of 128 KiB, by the read
// that needs it or by posix_fadvise() before that. A piece comes after the latency, and no earlier
// than the disk has carried those that were asked for before. A piece that was read to its end has
// to be asked for again.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { kPiece = 128 << 10, kPieces = 4096, kFiles = 1024 };

static char folder[4096];
static double latency_s, bytes_per_s;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static double busy_until;             // under mutex, as the next one
// By descriptor and piece, seconds since the start; 0: not asked for
static float* comes_at[kFiles];

static double Now(void) {
  static time_t begin;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (begin == 0) begin = now.tv_sec - 1;
  return (double)(now.tv_sec - begin) + (double)now.tv_nsec * 1e-9;
}

__attribute__((constructor)) static void Begin(void) {
  double latency_ms, mb_per_s;
  const char* disk = getenv("SLOW_DISK");
  if (disk == NULL || sscanf(disk, "%4095s %lf %lf", folder, &latency_ms, &mb_per_s) != 3) abort();
  latency_s = latency_ms * 1e-3;
  bytes_per_s = mb_per_s * 1e6;
  Now();
}

static int IsOnDisk(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof(path) - 1);
  if (size <= 0 || fd >= kFiles) return 0;
  path[size] = 0;
  return strncmp(path, folder, strlen(folder)) == 0;
}

// When all pieces of a part are there; what nobody has asked for is asked for now.
static double Ask(int fd, off_t offset, off_t bytes) {
  double last = 0;
  pthread_mutex_lock(&mutex);
  if (comes_at[fd] == NULL) comes_at[fd] = calloc(kPieces, sizeof(float));
  for (off_t piece = offset / kPiece; piece * kPiece < offset + bytes && piece < kPieces; ++piece) {
    float* const at = &comes_at[fd][piece];
    if (*at == 0) {
      const double earliest = Now() + latency_s;
      busy_until = (busy_until > earliest ? busy_until : earliest) + kPiece / bytes_per_s;
      *at = (float)busy_until;
    }
    if (*at > last) last = *at;
  }
  pthread_mutex_unlock(&mutex);
  return last;
}

static void Forget(int fd, off_t offset, off_t bytes) {
  pthread_mutex_lock(&mutex);
  for (off_t piece = offset / kPiece; (piece + 1) * kPiece <= offset + bytes && piece < kPieces; ++piece) comes_at[fd][piece] = 0;
  pthread_mutex_unlock(&mutex);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  static ssize_t (*read)(int, void*, size_t, off_t);
  if (read == NULL) read = (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  if (!IsOnDisk(fd)) return read(fd, to, bytes, offset);
  const double wait = Ask(fd, offset, (off_t)bytes) - Now();
  if (wait > 0) {
    struct timespec left = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }
  const ssize_t count = read(fd, to, bytes, offset);
  // Bytes that a file's last piece has not are read all the same.
  if (count >= 0) Forget(fd, offset, (size_t)count < bytes ? (off_t)bytes + kPiece : count);
  return count;
}
ssize_t pread64(int fd, void* to, size_t bytes, off_t offset) { return pread(fd, to, bytes, offset); }

int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) {
  if (advice == POSIX_FADV_WILLNEED && IsOnDisk(fd)) Ask(fd, offset, bytes);
  return 0;
}
int posix_fadvise64(int fd, off_t offset, off_t bytes, int advice) { return posix_fadvise(fd, offset, bytes, advice); }

// Nothing of the disk's files is at hand.
ssize_t preadv2(int fd, const struct iovec* parts, int count, off_t offset, int flags) {
  static ssize_t (*read)(int, const struct iovec*, int, off_t, int);
  if (read == NULL) read = (ssize_t(*)(int, const struct iovec*, int, off_t, int))dlsym(RTLD_NEXT, "preadv2");
  if ((flags & RWF_NOWAIT) != 0 && IsOnDisk(fd)) {
    errno = EAGAIN;
    return -1;
  }
  return read(fd, parts, count, offset, flags);
}
ssize_t preadv64v2(int fd, const struct iovec* parts, int count, off_t offset, int flags) { return preadv2(fd, parts, count, offset, flags); }
