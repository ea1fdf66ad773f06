// The C interface against a ring_server with known bytes.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client/c/penstock.h"
#include "ring/descriptor.h"
#include "tests/client/counted_loader.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace {

using penstock::AttachTo;
using penstock::LoaderPtr;
using penstock::ServerProcess;

penstock_batch* Next(const LoaderPtr& loader) {
  penstock_batch* batch = nullptr;
  const int code = penstock_next(loader.get(), PENSTOCK_FOREVER, &batch);
  INFO(penstock_last_error());
  REQUIRE(code == PENSTOCK_OK);
  return batch;
}

// Compares every element with what ring_server writes.
void CheckBatch(const penstock_batch* batch, uint64_t step, uint32_t rows) {
  REQUIRE(penstock_batch_step(batch) == step);
  CHECK(penstock_batch_epoch(batch) == step / 10);
  REQUIRE(penstock_batch_rows(batch) == rows);
  const penstock_tensor* x = penstock_batch_tensor(batch, 0);
  REQUIRE(std::string(x->name) == "x");
  REQUIRE(x->ndim == 2);
  REQUIRE(x->shape[0] == rows);
  REQUIRE(x->shape[1] == 4);
  CHECK(x->bytes == rows * 16);
  CHECK(reinterpret_cast<uintptr_t>(x->data) % 64 == 0);
  const penstock_tensor* y = penstock_batch_find(batch, "y");
  REQUIRE(y != nullptr);
  CHECK(y->dtype == PENSTOCK_INT64);
  int wrong = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t column = 0; column < 4; ++column) {
      wrong += static_cast<const float*>(x->data)[row * 4 + column] !=
               static_cast<float>(1000 * step + 10 * row + column);
    }
    wrong += static_cast<const int64_t*>(y->data)[row] != static_cast<int64_t>(100 * step + row);
    wrong +=
        static_cast<const uint8_t*>(penstock_batch_tensor(batch, 2)->data)[row] != (step + row) % 2;
  }
  CHECK(wrong == 0);
  const penstock_tensor* id = penstock_batch_find(batch, "id");
  REQUIRE(id->ndim == 0);
  CHECK(*static_cast<const uint64_t*>(id->data) == step);
}

TEST_CASE("every batch of a finite stream arrives once, in order, and then the end") {
  ServerProcess server(RING_SERVER, {"--steps", "100", "--last-rows", "3"});
  LoaderPtr loader = AttachTo(server);
  for (uint64_t step = 0; step < 100; ++step) {
    penstock_batch* batch = Next(loader);
    CheckBatch(batch, step, step == 99 ? 3 : 8);
    CHECK_FALSE(penstock_batch_is_copy(batch));
    uint32_t bytes = 0;
    const char* cursor = static_cast<const char*>(penstock_batch_cursor(batch, &bytes));
    CHECK(std::string(cursor, bytes) == "cursor-" + std::to_string(step));
    penstock_batch_release(batch);
  }
  penstock_batch* batch = nullptr;
  CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_END);
  CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_END);
  CHECK(batch == nullptr);
  penstock_stats stats;
  penstock_get_stats(loader.get(), &stats);
  CHECK(stats.batches == 100);
  CHECK(stats.copies == 0);
  CHECK(stats.bytes == 99 * (128 + 64 + 8 + 8) + 3 * 16 + 3 * 8 + 3 + 8);
  CHECK(stats.position == 100);
  CHECK(stats.leases == 0);

  SECTION("for a late consumer too") {
    LoaderPtr late = AttachTo(server);
    CHECK(penstock_next(late.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_END);
  }
}

TEST_CASE("the shape of a full batch is known before the first") {
  ServerProcess server(RING_SERVER, {"--steps", "1", "--last-rows", "2"});
  LoaderPtr loader = AttachTo(server);
  REQUIRE(penstock_num_tensors(loader.get()) == 4);
  const penstock_tensor* x = penstock_tensor_info(loader.get(), 0);
  CHECK(x->shape[0] == 8);
  CHECK(x->data == nullptr);
  CHECK(penstock_tensor_info(loader.get(), 4) == nullptr);
}

TEST_CASE("a consumer that keeps every batch gets copies and does not wait for itself") {
  ServerProcess server(RING_SERVER, {"--steps", "20", "--last-rows", "5"});
  LoaderPtr loader = AttachTo(server);
  std::vector<penstock_batch*> kept;
  for (int i = 0; i < 20; ++i) kept.push_back(Next(loader));
  penstock_stats stats;
  penstock_get_stats(loader.get(), &stats);
  CHECK(stats.lease_share == 2);
  CHECK(stats.leases == 2);
  CHECK(stats.copies == 18);
  // They are all intact, in the end and after the loader is gone.
  loader.reset();
  for (uint64_t step = 0; step < 20; ++step) CheckBatch(kept[step], step, step == 19 ? 5 : 8);
  for (penstock_batch* batch : kept) penstock_batch_release(batch);
}

TEST_CASE("what a program writes is its own, and gone with the batch") {
  ServerProcess server(RING_SERVER, {"--steps", "60"});
  LoaderPtr writer = AttachTo(server), other = AttachTo(server);
  for (uint64_t step = 0; step < 60; ++step) {
    penstock_batch* batch = Next(writer);
    if (penstock_batch_is_copy(batch)) FAIL("nothing is kept here");
    penstock_batch* theirs = Next(other);
    for (uint32_t i = 0; i < penstock_batch_num_tensors(batch); ++i) {
      const penstock_tensor* tensor = penstock_batch_tensor(batch, i);
      void* mine = penstock_batch_writable(batch, tensor->data);
      REQUIRE(mine != nullptr);
      CHECK(mine != tensor->data);
      CHECK(std::memcmp(mine, tensor->data, tensor->bytes) == 0);
      // Every other step is not written.
      if (step % 2 == 0) std::memset(mine, 0xa5, tensor->bytes);
    }
    const uint32_t rows = penstock_batch_rows(batch);
    CheckBatch(batch, step, rows);
    CheckBatch(theirs, step, rows);
    penstock_batch_release(batch);
    penstock_batch_release(theirs);
  }
}

TEST_CASE("a program that locks its memory may write its batches, and sees no old ones") {
  ServerProcess server(RING_SERVER, {"--steps", "60"});
  for (const bool locks_first : {true, false}) {
    INFO("locks first " << locks_first);
    const pid_t child = fork();
    if (child == 0) {
      const auto lock = [] { return mlockall(MCL_CURRENT | MCL_FUTURE) == 0; };
      LoaderPtr loader = AttachTo(server);
      if (locks_first && !lock()) _exit(2);
      bool fine = true;
      for (int i = 0; i < 20; ++i) {
        penstock_batch* batch = Next(loader);
        const penstock_tensor* tensor = penstock_batch_tensor(batch, 0);
        void* mine = penstock_batch_writable(batch, tensor->data);
        fine &= mine != nullptr && std::memcmp(mine, tensor->data, tensor->bytes) == 0;
        std::memset(mine, 0xa5, tensor->bytes);
        if (i == 10 && !locks_first && !lock()) _exit(2);
        penstock_batch_release(batch);
        // The lock made a copy of each page that could be written then: only that of this batch has
        // been dropped.
        if (i == 10 && !locks_first) break;
      }
      _exit(fine ? 0 : 1);
    }
    int state = 0;
    REQUIRE(waitpid(child, &state, 0) == child);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 2) {
      WARN("this user may not lock memory");
      return;
    }
    CHECK(state == 0);
  }
}

TEST_CASE("batches may be released in any order") {
  ServerProcess server(RING_SERVER, {"--steps", "300"});
  LoaderPtr loader = AttachTo(server);
  penstock_batch* held = Next(loader);
  for (uint64_t step = 1; step < 300; ++step) {
    penstock_batch* batch = Next(loader);
    CheckBatch(batch, step, 8);
    penstock_batch_release(batch);
  }
  CheckBatch(held, 0, 8);
  penstock_batch_release(held);
}

TEST_CASE("a wait ends in time and can be gone on with") {
  ServerProcess server(RING_SERVER, {"--steps", "2", "--hold-at", "1"});
  LoaderPtr loader = AttachTo(server);
  penstock_batch_release(Next(loader));
  penstock_batch* batch = nullptr;
  CHECK(penstock_ready(loader.get()) == 0);
  CHECK(penstock_next(loader.get(), 0, &batch) == PENSTOCK_TIMEOUT);
  CHECK(penstock_next(loader.get(), 5'000'000, &batch) == PENSTOCK_TIMEOUT);
  server.Go();
  batch = Next(loader);
  CheckBatch(batch, 1, 8);
  penstock_batch_release(batch);
}

TEST_CASE("a failed pipeline fails every call, after its last batch") {
  ServerProcess server(RING_SERVER, {"--steps", "1", "--end-code", "15", "--end-message",
                                     "bad record (a.tfrecord, record 7, offset 40)"});
  LoaderPtr loader = AttachTo(server);
  penstock_batch_release(Next(loader));
  penstock_batch* batch = nullptr;
  for (int i = 0; i < 2; ++i) {
    CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_DATA_LOSS);
    CHECK(std::string(penstock_last_error()) == "bad record (a.tfrecord, record 7, offset 40)");
  }
}

TEST_CASE("fault 48: a killed daemon is UNAVAILABLE, after the batches that it had published") {
  ServerProcess server(RING_SERVER, {"--hold-at", "2"});
  LoaderPtr loader = AttachTo(server);
  penstock_batch* first = Next(loader);
  // It has published step 1 before it dies: slots are free.
  penstock_stats stats;
  do {
    penstock_get_stats(loader.get(), &stats);
  } while (stats.published < 2);
  server.Kill();
  penstock_batch* second = Next(loader);
  penstock_batch* batch = nullptr;
  CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_UNAVAILABLE);
  CHECK_THAT(penstock_last_error(), Catch::Contains("penstockd has gone away"));
  CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_UNAVAILABLE);
  // What it holds stays readable.
  CheckBatch(first, 0, 8);
  CheckBatch(second, 1, 8);
  penstock_batch_release(first);
  penstock_batch_release(second);
}

TEST_CASE("fault 40: in a forked child the loader refuses and releases nothing") {
  ServerProcess server(RING_SERVER, {"--steps", "50"});
  LoaderPtr loader = AttachTo(server);
  penstock_batch* held = Next(loader);
  const pid_t child = fork();
  if (child == 0) {
    penstock_batch* batch = nullptr;
    const bool refused = penstock_next(loader.get(), 0, &batch) == PENSTOCK_FAILED_PRECONDITION;
    penstock_batch_release(held);
    penstock_detach(loader.get());
    _exit(refused ? 0 : 1);
  }
  int state = 0;
  REQUIRE(waitpid(child, &state, 0) == child);
  CHECK(state == 0);
  for (uint64_t step = 1; step < 50; ++step) {
    penstock_batch* batch = Next(loader);
    CheckBatch(batch, step, 8);
    penstock_batch_release(batch);
  }
  CheckBatch(held, 0, 8);
  penstock_batch_release(held);
}

TEST_CASE("the errors of the first ten minutes say the cause and the next command") {
  penstock_loader* loader = nullptr;
  SECTION("no daemon") {
    CHECK(penstock_attach("chess", "/tmp/penstock-nowhere/socket", nullptr, &loader) ==
          PENSTOCK_UNAVAILABLE);
    CHECK_THAT(penstock_last_error(),
               Catch::Contains("penstockd --socket /tmp/penstock-nowhere/socket"));
  }
  SECTION("unknown pipeline") {
    ServerProcess server(RING_SERVER);
    CHECK(penstock_attach("chest", server.socket().c_str(), nullptr, &loader) ==
          PENSTOCK_NOT_FOUND);
    CHECK_THAT(penstock_last_error(),
               Catch::Contains("penstock --socket " + server.socket() + " list"));
  }
  SECTION("the default socket is PENSTOCK_SOCKET") {
    setenv("PENSTOCK_SOCKET", "/tmp/penstock-nowhere/other", 1);
    CHECK(penstock_attach("chess", nullptr, nullptr, &loader) == PENSTOCK_UNAVAILABLE);
    unsetenv("PENSTOCK_SOCKET");
    CHECK_THAT(penstock_last_error(), Catch::Contains("/tmp/penstock-nowhere/other"));
  }
  CHECK(loader == nullptr);
}

TEST_CASE(
    "a daemon that does not answer is waited for as long as the options say, or until that is "
    "cancelled") {
  // It listens and does nothing more, as one that was stopped.
  const penstock::test::ScratchFolder folder;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder / "socket").c_str());
  const penstock::ring::Descriptor frozen(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(bind(frozen.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(frozen.get(), 8) == 0);

  penstock_loader* loader = nullptr;
  penstock_attach_options options;
  penstock_default_options(&options);
  CHECK(options.attach_seconds == 60);
  options.pipeline = "counted";
  options.socket = address.sun_path;
  SECTION("in time") {
    options.attach_seconds = 0.25;
    CHECK(penstock_attach_with(&options, &loader) == PENSTOCK_UNAVAILABLE);
    CHECK_THAT(penstock_last_error(), Catch::Contains("did not answer in 250 ms"));
  }
  SECTION("cancelled") {
    int questions_left = 2;
    options.cancel_context = &questions_left;
    options.is_cancelled = [](void* left) { return --*static_cast<int*>(left) == 0 ? 1 : 0; };
    CHECK(penstock_attach_with(&options, &loader) == PENSTOCK_CANCELLED);
    CHECK(questions_left == 0);
  }
  CHECK(loader == nullptr);
}

TEST_CASE("a daemon whose queue of connections is full is given up as well") {
  const penstock::test::ScratchFolder folder;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder / "socket").c_str());
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  const penstock::ring::Descriptor frozen(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(bind(frozen.get(), where, sizeof address) == 0);
  REQUIRE(listen(frozen.get(), 0) == 0);
  std::vector<penstock::ring::Descriptor> before;
  do {
    before.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  } while (connect(before.back().get(), where, sizeof address) == 0);

  penstock_loader* loader = nullptr;
  penstock_attach_options options;
  penstock_default_options(&options);
  options.pipeline = "counted";
  options.socket = address.sun_path;
  SECTION("in time") {
    options.attach_seconds = 0.25;
    CHECK(penstock_attach_with(&options, &loader) == PENSTOCK_UNAVAILABLE);
    CHECK_THAT(penstock_last_error(), Catch::Contains("cannot connect to penstockd at"));
  }
  SECTION("cancelled") {
    options.attach_seconds = 8;
    int questions_left = 2;
    options.cancel_context = &questions_left;
    options.is_cancelled = [](void* left) { return --*static_cast<int*>(left) == 0 ? 1 : 0; };
    CHECK(penstock_attach_with(&options, &loader) == PENSTOCK_CANCELLED);
    CHECK_THAT(penstock_last_error(), Catch::Contains("gave up waiting"));
    CHECK(questions_left == 0);
  }
  CHECK(loader == nullptr);
}

TEST_CASE("options of a program that knows fewer fields are not written beyond their end") {
  constexpr size_t kKnown = offsetof(penstock_attach_options, attach_seconds);
  penstock_attach_options options;
  for (const bool by_size : {false, true}) {
    std::memset(static_cast<void*>(&options), 0x5a, sizeof options);
    if (by_size) {
      penstock_default_options_of(&options, kKnown);
    } else {
      (penstock_default_options)(&options);
    }
    CHECK(options.bytes == kKnown);
    CHECK(options.reconnect_seconds == 60);
    for (size_t i = kKnown; i < sizeof options; ++i)
      REQUIRE(reinterpret_cast<const uint8_t*>(&options)[i] == 0x5a);
  }
  const ServerProcess server(RING_SERVER);
  const std::string path = server.socket();
  options.pipeline = "counted";
  options.socket = path.c_str();
  penstock_loader* loader = nullptr;
  CHECK(penstock_attach_with(&options, &loader) == PENSTOCK_OK);
  penstock_detach(loader);
}

// What `readelf`, with `option`, prints about the library.
std::string Readelf(const std::string& option) {
  FILE* output = popen(("readelf -W " + option + " " LIBPENSTOCK).c_str(), "r");
  std::string text;
  char buffer[4096];
  size_t count;
  while ((count = fread(buffer, 1, sizeof buffer, output)) > 0) text.append(buffer, count);
  REQUIRE(pclose(output) == 0);
  return text;
}

TEST_CASE("the library needs libc alone and shows penstock_* alone") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // the sanitizers' libraries are needed too
#endif
  const std::string dynamic = Readelf("-d");
  size_t needed = 0;
  for (size_t at = 0; (at = dynamic.find("(NEEDED)", at)) != std::string::npos; ++at) {
    const std::string line = dynamic.substr(at, dynamic.find('\n', at) - at);
    INFO(line);
    CHECK((line.find("[libc.so.6]") != std::string::npos ||
           line.find("[ld-linux") != std::string::npos));
    ++needed;
  }
  CHECK(needed >= 1);
  const std::string symbols = Readelf("--dyn-syms");
  size_t shown = 0;
  for (size_t line = 0; line < symbols.size();) {
    const size_t end = symbols.find('\n', line);
    const std::string text = symbols.substr(line, end - line);
    line = end + 1;
    if (text.find(" GLOBAL DEFAULT ") == std::string::npos ||
        text.find(" UND ") != std::string::npos || text.find(" ABS ") != std::string::npos) {
      continue;
    }
    INFO(text);
    CHECK(text.find(" penstock_") != std::string::npos);
    ++shown;
  }
  CHECK(shown >= 15);
}

}  // namespace
