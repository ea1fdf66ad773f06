// Preloaded into a daemon: calls fail as if the system had no more of what they ask for, when a
// test says so.
//
// FAILING_CALLS is a file of counters that the test and all of the daemon's processes share: for
// each kind of call how many still succeed, how many fail then, and how many have failed. So a
// failure that is asked for once happens once, whichever process meets it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  kThread,
  kMemoryFile,
  kMap,
  kAllocate,
  kHugePages,
  kAffinity,
  kPriority,
  kFork,
  kUnlink,
  kPidfd,
  kKinds
};

struct Counters {
  _Atomic long passing;
  _Atomic long failing;
  _Atomic long failed;
};

static struct Counters* counters;

__attribute__((constructor)) static void Begin(void) {
  const int fd = open(getenv("FAILING_CALLS"), O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  void* (*map)(void*, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  void* page = map(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) abort();
  counters = page;
}

static int Fails(int kind) {
  if (counters == NULL) return 0;
  struct Counters* of = &counters[kind];
  if (atomic_load(&of->failing) <= 0) return 0;
  if (atomic_fetch_sub(&of->passing, 1) > 0) return 0;
  if (atomic_fetch_sub(&of->failing, 1) <= 0) return 0;
  atomic_fetch_add(&of->failed, 1);
  return 1;
}

/* gRPC makes threads of its own when it is busy, and does without: only those of C++'s library
 * count. */
static int IsOfCxx(void* (*run)(void*)) {
  Dl_info from;
  return dladdr((void*)run, &from) != 0 && from.dli_fname != NULL && strstr(from.dli_fname, "libstdc++") != NULL;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  static int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (IsOfCxx(run) && Fails(kThread)) return EAGAIN;
  if (create == NULL) create = dlsym(RTLD_NEXT, "pthread_create");
  return create(thread, attributes, run, argument);
}

int memfd_create(const char* name, unsigned flags) {
  static int (*create)(const char*, unsigned);
  if (Fails(kMemoryFile)) {
    errno = ENFILE;
    return -1;
  }
  if (create == NULL) create = dlsym(RTLD_NEXT, "memfd_create");
  return create(name, flags);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  static void* (*map)(void*, size_t, int, int, int, off_t);
  if (fd >= 0 && Fails(kMap)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (map == NULL) map = dlsym(RTLD_NEXT, "mmap");
  return map(address, bytes, protection, flags, fd, offset);
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return mmap(address, bytes, protection, flags, fd, offset);
}

// Allocations, by the names that glibc has besides: dlsym would allocate.
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  if (Fails(kAllocate)) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  if (Fails(kAllocate)) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  if (Fails(kAllocate)) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  if (Fails(kAllocate)) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (Fails(kAllocate)) return ENOMEM;
  void* const allocated = __libc_memalign(alignment, bytes);
  if (allocated == NULL) return ENOMEM;
  *memory = allocated;
  return 0;
}

int madvise(void* address, size_t bytes, int advice) {
  static int (*advise)(void*, size_t, int);
  if ((advice == 14 || advice == 25) && Fails(kHugePages)) {  // MADV_HUGEPAGE, MADV_COLLAPSE
    errno = EINVAL;
    return -1;
  }
  if (advise == NULL) advise = dlsym(RTLD_NEXT, "madvise");
  return advise(address, bytes, advice);
}

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t* set) {
  static int (*get)(pid_t, size_t, cpu_set_t*);
  if (Fails(kAffinity)) {
    errno = EPERM;
    return -1;
  }
  if (get == NULL) get = dlsym(RTLD_NEXT, "sched_getaffinity");
  return get(pid, bytes, set);
}

int setpriority(__priority_which_t which, id_t who, int priority) {
  static int (*set)(__priority_which_t, id_t, int);
  if (Fails(kPriority)) {
    errno = EACCES;
    return -1;
  }
  if (set == NULL) set = dlsym(RTLD_NEXT, "setpriority");
  return set(which, who, priority);
}

pid_t fork(void) {
  static pid_t (*make)(void);
  if (Fails(kFork)) {
    errno = EAGAIN;
    return -1;
  }
  if (make == NULL) make = dlsym(RTLD_NEXT, "fork");
  return make();
}

/* Of what the daemon keeps. */
int unlink(const char* path) {
  static int (*remove_name)(const char*);
  if (strstr(path, ".pipeline") != NULL && Fails(kUnlink)) {
    errno = EROFS;
    return -1;
  }
  if (remove_name == NULL) remove_name = dlsym(RTLD_NEXT, "unlink");
  return remove_name(path);
}

/* As a sandbox's filter (seccomp) refuses what it does not know. */
long syscall(long number, ...) {
  static long (*call)(long, ...);
  va_list given;
  va_start(given, number);
  long arguments[6];
  for (int i = 0; i < 6; ++i) arguments[i] = va_arg(given, long);
  va_end(given);
  if (number == SYS_pidfd_open && Fails(kPidfd)) {
    errno = ENOSYS;
    return -1;
  }
  if (call == NULL) call = dlsym(RTLD_NEXT, "syscall");
  return call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
