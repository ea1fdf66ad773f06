// Without memory at the n-th allocation, for each n: a call of the C interface gives an error code,
// loses no slot and lets no exception through, and the loader goes on from its last cursor.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "client/c/penstock.h"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"

// The sanitizers have an allocator of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

// Of this thread: allocations that still succeed; below 0 there is no limit.
thread_local int64_t left = -1;
thread_local uint64_t failed = 0;
thread_local bool fails_on = false;  // whether all that follow fail too

bool Fails() {
  if (left < 0) return false;
  if (left > 0) {
    --left;
    return false;
  }
  if (!fails_on) left = -1;
  ++failed;
  errno = ENOMEM;
  return true;
}

}  // namespace

// libpenstock.so brings its own operator new, which comes here.
extern "C" void* malloc(size_t bytes) { return Fails() ? nullptr : __libc_malloc(bytes); }
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  return Fails() ? nullptr : __libc_memalign(alignment, bytes);
}

namespace {

using penstock::ServerProcess;

// What `call` returns when its n-th allocation fails.
int Starved(int64_t n, bool all_after, const std::function<int()>& call) {
  failed = 0;
  fails_on = all_after;
  left = n;
  const int code = call();
  left = -1;
  return code;
}

int Attach(const std::string& socket, const char* pipeline, uint32_t batch_rows,
           penstock_loader** loader) {
  penstock_attach_options options;
  penstock_default_options(&options);
  options.pipeline = pipeline;
  options.socket = socket.c_str();
  options.batch_rows = batch_rows;
  options.reconnect_seconds = 0;
  return penstock_attach_with(&options, loader);
}

penstock_stats Stats(penstock_loader* loader) {
  penstock_stats stats;
  penstock_get_stats(loader, &stats);
  return stats;
}

TEST_CASE("fault 35: attaching without memory is an error, and attaching again succeeds") {
  ServerProcess server(RING_SERVER, {"--steps", "9", "--id", "0"});
  const std::string socket = server.socket();
  for (const bool all_after : {false, true}) {
    for (int64_t n = 0;; ++n) {
      CAPTURE(n, all_after);
      penstock_loader* loader = nullptr;
      const int code =
          Starved(n, all_after, [&] { return Attach(socket, "counted", 12, &loader); });
      // What fails may be something that is done without.
      REQUIRE((code == PENSTOCK_OK || (code == PENSTOCK_RESOURCE_EXHAUSTED && failed > 0)));
      CHECK((loader != nullptr) == (code == PENSTOCK_OK));
      penstock_detach(loader);
      if (failed == 0) break;
      REQUIRE(n < 1000);
    }
  }
}

// One batch is taken, the next without memory: what that call gives and what follows.
void CheckNext(const std::string& socket, const char* pipeline, uint32_t rows, uint32_t kept,
               int64_t n, bool all_after) {
  penstock_loader* loader = nullptr;
  REQUIRE(Attach(socket, pipeline, rows, &loader) == PENSTOCK_OK);
  std::vector<penstock_batch*> held;
  penstock_batch* batch = nullptr;
  for (uint32_t i = 0; i <= kept; ++i) {
    REQUIRE(penstock_next(loader, PENSTOCK_FOREVER, &batch) == PENSTOCK_OK);
    held.push_back(batch);
  }
  const uint64_t step = penstock_batch_step(batch);
  if (kept == 0) {
    penstock_batch_release(batch);
    held.clear();
  }
  int code = Starved(n, all_after, [&] {
    int got = PENSTOCK_TIMEOUT;
    while (got == PENSTOCK_TIMEOUT) got = penstock_next(loader, 10'000'000, &batch);
    return got;
  });
  const uint64_t failures = failed;
  if (code != PENSTOCK_OK) {
    REQUIRE(code == PENSTOCK_RESOURCE_EXHAUSTED);
    CHECK(failures > 0);
    CHECK(batch == nullptr);
    CHECK(std::string(penstock_last_error()) != "");
    code = penstock_next(loader, PENSTOCK_FOREVER, &batch);
  }
  if (code == PENSTOCK_OK) {
    // Nothing was lost.
    CHECK(penstock_batch_step(batch) == step + 1);
    held.push_back(batch);
  } else {
    REQUIRE(code == PENSTOCK_RESOURCE_EXHAUSTED);
    CHECK_THAT(penstock_last_error(), Catch::Contains("a batch was lost for want of memory"));
    CHECK(penstock_ready(loader) == 0);
  }
  // Without any memory, too.
  Starved(0, true, [&held] {
    for (penstock_batch* one : held) penstock_batch_release(one);
    return 0;
  });
  if (code != PENSTOCK_OK) CHECK(Stats(loader).leases == 0);
  Starved(0, true, [loader] {
    penstock_detach(loader);
    return 0;
  });
  failed = failures;
}

TEST_CASE("fault 35: a batch without memory is an error, and none is left out in silence") {
  struct Case {
    const char* what;
    const char* server;
    uint32_t rows;
    uint32_t kept;
  };
  const Case cases[] = {{"whole", RING_SERVER, 0, 0},
                        {"a copy", RING_SERVER, 0, 12},
                        {"views", RING_SERVER, 4, 0},
                        {"copies of parts", RING_SERVER, 4, 12},
                        {"joined", RING_SERVER, 11, 0},
                        {"joined of several", RING_SERVER, 30, 2},
                        {"every kind", KINDS_SERVER, 0, 0},
                        {"copies of every kind", KINDS_SERVER, 0, 12},
                        {"parts of every kind", KINDS_SERVER, 1, 0}};
  for (const Case& row : cases) {
    const bool is_counted = std::string(row.server) == RING_SERVER;
    // One server for all: who attaches next goes on where the last one was.
    ServerProcess server(row.server, is_counted ? std::vector<std::string>{"--id", "0"}
                                                : std::vector<std::string>{});
    for (const bool all_after : {false, true}) {
      uint64_t failing_calls = 0;
      for (int64_t n = 0;; ++n) {
        CAPTURE(row.what, n, all_after);
        CheckNext(server.socket(), is_counted ? "counted" : "kinds", row.rows, row.kept, n,
                  all_after);
        if (failed == 0) break;
        ++failing_calls;
        REQUIRE(n < 1000);
      }
      // Batches that lie in place need no memory, once each slot has been seen; all others do.
      if (row.kept > 0 || row.rows > 8) CHECK(failing_calls > 0);
    }
  }
}

TEST_CASE("fault 35: requests without memory are errors") {
  ServerProcess server(RING_SERVER, {"--steps", "9"});
  for (int64_t n = 0; n < 30; ++n) {
    CAPTURE(n);
    char* description = nullptr;
    const int code = Starved(n, true, [&] {
      return penstock_validate("/nonexistent/penstock.sock", "name: \"x\"", &description);
    });
    CHECK((code == PENSTOCK_RESOURCE_EXHAUSTED || code == PENSTOCK_UNAVAILABLE));
    CHECK(description == nullptr);
    Starved(n, true, [] { return penstock_default_socket() != nullptr ? 0 : 1; });
  }
}

}  // namespace

#endif
