// Copies out of a mapped ring to a device, over a driver without one (tests/cuda/fake_driver.cc).
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client/c/penstock_cuda.h"
#include "tests/client/fake_cuda.h"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"

namespace {

using penstock::FakeCuda;
using penstock::ServerProcess;

struct Trainer {
  explicit Trainer(const ServerProcess& server) {
    penstock_attach_options options;
    penstock_default_options(&options);
    options.pipeline = "counted";
    const std::string socket = server.socket();
    options.socket = socket.c_str();
    options.reconnect_seconds = 0;
    REQUIRE(penstock_attach_with(&options, &loader) == PENSTOCK_OK);
    const int code = penstock_cuda_open(0, &cuda);
    INFO(penstock_last_error());
    REQUIRE(code == PENSTOCK_OK);
  }
  ~Trainer() {
    penstock_cuda_close(cuda);
    penstock_detach(loader);
  }

  penstock_batch* Next() {
    penstock_batch* batch = nullptr;
    const int code = penstock_next(loader, PENSTOCK_FOREVER, &batch);
    INFO(penstock_last_error());
    REQUIRE(code == PENSTOCK_OK);
    return batch;
  }

  // Copies "x" of a batch into new memory, and gives the batch to the stream.
  uint64_t Send(penstock_batch* batch) {
    const penstock_tensor* x = penstock_batch_find(batch, "x");
    uint64_t address = 0;
    REQUIRE(penstock_cuda_allocate(cuda, x->bytes, nullptr, &address) == PENSTOCK_OK);
    sent = penstock_cuda_copy(cuda, batch, x->data, x->bytes, address, nullptr);
    released = penstock_cuda_release(cuda, batch, nullptr);
    return address;
  }

  // Whether "x" of a step has arrived at the address.
  bool HasStep(uint64_t address, uint64_t step) {
    float found[32];
    REQUIRE(penstock_cuda_read(cuda, address, sizeof found, found, nullptr) == PENSTOCK_OK);
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 4; ++column) {
        if (found[row * 4 + column] != 1000.0f * step + 10.0f * row + column) return false;
      }
    }
    return true;
  }

  penstock_stats Stats() {
    penstock_stats stats;
    penstock_get_stats(loader, &stats);
    return stats;
  }
  penstock_cuda_stats CudaStats() {
    penstock_cuda_stats stats;
    penstock_cuda_get_stats(cuda, &stats);
    return stats;
  }

  penstock_loader* loader = nullptr;
  penstock_cuda* cuda = nullptr;
  int sent = PENSTOCK_OK;
  int released = PENSTOCK_OK;
};

TEST_CASE("copies go straight from the slots, each of which is pinned once") {
  FakeCuda fake;
  const ServerProcess server(RING_SERVER, {"--slots", "3", "--slots-max", "3"});
  {
    Trainer trainer(server);
    for (uint64_t step = 0; step < 20; ++step) {
      const uint64_t address = trainer.Send(trainer.Next());
      CHECK(trainer.sent == PENSTOCK_OK);
      CHECK(trainer.HasStep(address, step));
      penstock_cuda_free(trainer.cuda, address, nullptr);
    }
    const penstock_cuda_stats stats = trainer.CudaStats();
    CHECK(stats.copies == 20);
    CHECK(stats.copied_bytes == 20 * 128);
    CHECK(stats.staged_copies == 0);
    CHECK(fake["registered"] >= 2);
    CHECK(fake["registered"] <= 3);
    CHECK(stats.pinned_bytes == static_cast<uint64_t>(fake["registered"]) * 4096);
    CHECK(std::string(penstock_cuda_why_staged(trainer.cuda)).empty());
  }
  CHECK(fake["registered"] == 0);
  CHECK(fake["allocated"] == 0);
}

TEST_CASE("a device without memory pools gives plain memory") {
  FakeCuda fake;
  fake.Set("pools", 0);
  const ServerProcess server(RING_SERVER, {"--slots", "3", "--slots-max", "3"});
  Trainer trainer(server);
  const uint64_t address = trainer.Send(trainer.Next());
  CHECK(trainer.HasStep(address, 0));
  penstock_cuda_free(trainer.cuda, address, nullptr);
  CHECK(fake["allocated"] == 0);
}

TEST_CASE("a batch is held until its copy is done") {
  FakeCuda fake;
  const ServerProcess server(RING_SERVER, {"--slots", "3", "--slots-max", "3"});
  Trainer trainer(server);
  fake.Set("hold", 1);
  const uint64_t address = trainer.Send(trainer.Next());
  uint64_t pending = 0;
  CHECK(penstock_cuda_poll(trainer.cuda, &pending) == PENSTOCK_OK);
  CHECK(pending == 1);
  CHECK(trainer.Stats().leases == 1);
  fake.Set("hold", 0);
  CHECK(penstock_cuda_poll(trainer.cuda, &pending) == PENSTOCK_OK);
  CHECK(pending == 0);
  CHECK(trainer.Stats().leases == 0);
  CHECK(trainer.HasStep(address, 0));
  penstock_cuda_free(trainer.cuda, address, nullptr);
}

TEST_CASE("fault 65: what cannot be pinned is staged, and the statistics say why") {
  FakeCuda fake;
  const char* words = nullptr;
  SECTION("the device does not register read-only memory") {
    fake.Set("read_only", 0);
    words = "does not register memory that is mapped read-only";
  }
  SECTION("registration is refused") {
    fake.Set("register", 801);
    words = "memory cannot be registered (CUDA device 0): CUDA_ERROR_FAKE (801)";
  }
  const ServerProcess server(RING_SERVER, {"--wide", "300000"});
  Trainer trainer(server);
  for (uint64_t step = 0; step < 6; ++step) {
    penstock_batch* batch = trainer.Next();
    // More than all staging buffers together hold: 9.6 MB a batch.
    const penstock_tensor* wide = penstock_batch_find(batch, "wide");
    uint64_t large = 0;
    REQUIRE(penstock_cuda_allocate(trainer.cuda, wide->bytes, nullptr, &large) == PENSTOCK_OK);
    CHECK(penstock_cuda_copy(trainer.cuda, batch, wide->data, wide->bytes, large, nullptr) ==
          PENSTOCK_OK);
    penstock_cuda_free(trainer.cuda, large, nullptr);
    const uint64_t address = trainer.Send(batch);
    CHECK(trainer.HasStep(address, step));
    penstock_cuda_free(trainer.cuda, address, nullptr);
  }
  const penstock_cuda_stats stats = trainer.CudaStats();
  CHECK(stats.copies == 0);
  CHECK(stats.staged_copies == 12);
  CHECK(stats.pinned_bytes == 0);
  INFO(penstock_cuda_why_staged(trainer.cuda));
  CHECK(std::string(penstock_cuda_why_staged(trainer.cuda)).find(words) != std::string::npos);
}

TEST_CASE("a private copy of a batch is staged, and does not stop later ones from being pinned") {
  FakeCuda fake;
  const ServerProcess server(RING_SERVER, {"--slots", "2", "--slots-max", "2"});
  Trainer trainer(server);
  penstock_batch* held = trainer.Next();
  penstock_batch* copy = trainer.Next();
  REQUIRE(penstock_batch_is_copy(copy) == 1);
  const uint64_t first = trainer.Send(copy);
  CHECK(trainer.HasStep(first, 1));
  CHECK(trainer.CudaStats().staged_copies == 1);
  const uint64_t second = trainer.Send(held);
  CHECK(trainer.HasStep(second, 0));
  CHECK(trainer.CudaStats().copies == 1);
  penstock_cuda_free(trainer.cuda, first, nullptr);
  penstock_cuda_free(trainer.cuda, second, nullptr);
}

TEST_CASE("a device that never answers holds its batches and stops nobody") {
  FakeCuda fake;
  const ServerProcess server(RING_SERVER, {"--slots", "3", "--slots-max", "3"});
  Trainer trainer(server);
  fake.Set("never", 1);
  for (uint64_t step = 0; step < 10; ++step) {
    penstock_batch* batch = trainer.Next();
    CHECK(penstock_batch_step(batch) == step);
    if (step < 2) {
      trainer.Send(batch);
    } else {
      // Beyond the share: copies, so that the trainer does not wait for itself.
      CHECK(penstock_batch_is_copy(batch) == 1);
      penstock_batch_release(batch);
    }
  }
  CHECK(trainer.Stats().leases == 2);
  CHECK(trainer.CudaStats().pending == 2);
  fake.Set("never", 0);
  CHECK(penstock_cuda_poll(trainer.cuda, nullptr) == PENSTOCK_OK);
  CHECK(trainer.Stats().leases == 0);
}

TEST_CASE("fault 65: a lost device is an error, and lets go of all batches") {
  FakeCuda fake;
  const ServerProcess server(RING_SERVER, {"--slots", "3", "--slots-max", "3"});
  Trainer trainer(server);
  fake.Set("hold", 1);
  trainer.Send(trainer.Next());
  CHECK(trainer.Stats().leases == 1);
  fake.Set("lost_after", 0);
  CHECK(penstock_cuda_poll(trainer.cuda, nullptr) == PENSTOCK_UNAVAILABLE);
  CHECK(std::string(penstock_last_error()).find("CUDA_ERROR_ECC_UNCORRECTABLE") !=
        std::string::npos);
  CHECK(trainer.Stats().leases == 0);
  // The ring goes on; the next one is refused and released.
  penstock_batch* batch = trainer.Next();
  const penstock_tensor* x = penstock_batch_find(batch, "x");
  CHECK(penstock_cuda_copy(trainer.cuda, batch, x->data, x->bytes, 4096, nullptr) ==
        PENSTOCK_UNAVAILABLE);
  CHECK(penstock_cuda_release(trainer.cuda, batch, nullptr) == PENSTOCK_UNAVAILABLE);
  CHECK(trainer.Stats().leases == 0);
}

TEST_CASE("fault 65: without a driver there is a reason") {
  FakeCuda fake;
  setenv("PENSTOCK_CUDA_DRIVER", "/no/libcuda.so.1", 1);
  penstock_cuda* cuda = nullptr;
  CHECK(penstock_cuda_open(0, &cuda) == PENSTOCK_FAILED_PRECONDITION);
  CHECK(cuda == nullptr);
  CHECK(std::string(penstock_last_error()).find("no CUDA driver") == 0);
  setenv("PENSTOCK_CUDA_DRIVER", FAKE_CUDA, 1);
  CHECK(penstock_cuda_open(7, &cuda) == PENSTOCK_NOT_FOUND);
}

TEST_CASE("a ring that is not on a device is not taken from there") {
  FakeCuda fake;
  const ServerProcess server(RING_SERVER);
  Trainer trainer(server);
  penstock_batch* batch = trainer.Next();
  penstock_device_tensor tensor;
  CHECK(penstock_batch_on_device(batch, 0, nullptr, &tensor) == PENSTOCK_FAILED_PRECONDITION);
  penstock_batch_release(batch);
}

TEST_CASE("closing frees no buffer that the device still reads") {
  FakeCuda fake;
  const int64_t before = fake["host_buffers"];
  uint64_t address = 0;
  const std::vector<uint8_t> bytes(1000, 5);
  const auto copy = [&](penstock_cuda* cuda) {
    return penstock_cuda_copy(cuda, nullptr, bytes.data(), bytes.size(), address, nullptr);
  };
  penstock_cuda* cuda = nullptr;
  REQUIRE(penstock_cuda_open(0, &cuda) == PENSTOCK_OK);
  REQUIRE(penstock_cuda_allocate(cuda, bytes.size(), nullptr, &address) == PENSTOCK_OK);
  REQUIRE(copy(cuda) == PENSTOCK_OK);
  penstock_cuda_close(cuda);
  CHECK(fake["host_buffers"] == before);
  // One that does not answer keeps it.
  REQUIRE(penstock_cuda_open(0, &cuda) == PENSTOCK_OK);
  fake.Set("hold", 1);
  REQUIRE(copy(cuda) == PENSTOCK_OK);
  penstock_cuda_close(cuda);
  CHECK(fake["host_buffers"] == before + 1);
  fake.Set("hold", 0);
}

TEST_CASE("a stream is waited for") {
  FakeCuda fake;
  penstock_cuda* cuda = nullptr;
  REQUIRE(penstock_cuda_open(0, &cuda) == PENSTOCK_OK);
  uint64_t address = 0;
  const std::vector<uint8_t> bytes(1000, 5);
  REQUIRE(penstock_cuda_allocate(cuda, bytes.size(), nullptr, &address) == PENSTOCK_OK);
  fake.Set("hold", 1);
  REQUIRE(penstock_cuda_copy(cuda, nullptr, bytes.data(), bytes.size(), address, nullptr) ==
          PENSTOCK_OK);
  const auto* there = reinterpret_cast<const uint8_t*>(address);
  CHECK(there[999] == 0);
  CHECK(penstock_cuda_synchronize(cuda, nullptr) == PENSTOCK_OK);
  CHECK(there[999] == 5);
  fake.Set("lost_after", 0);
  CHECK(penstock_cuda_synchronize(cuda, nullptr) == PENSTOCK_UNAVAILABLE);
  fake.Set("lost_after", -1);
  fake.Set("hold", 0);
  penstock_cuda_free(cuda, address, nullptr);
  penstock_cuda_close(cuda);
}

}  // namespace
