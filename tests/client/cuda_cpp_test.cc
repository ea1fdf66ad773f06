// The C++ objects over penstock_cuda.h, over a driver without a device (tests/cuda/fake_driver.cc).
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "client/cpp/penstock_cuda.hpp"
#include "tests/client/fake_cuda.h"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"

namespace {

using penstock::Batch;
using penstock::Cuda;
using penstock::DeviceMemory;
using penstock::Error;
using penstock::FakeCuda;
using penstock::Loader;
using penstock::ServerProcess;

int CodeOf(const std::function<void()>& call, std::string* message = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return PENSTOCK_OK;
}

TEST_CASE("C++: tensors are copied out of slots, which come back when the stream is done") {
  FakeCuda fake;
  const ServerProcess server(RING_SERVER, {"--slots", "3", "--slots-max", "3"});
  {
    Cuda cuda;
    Loader loader("counted", server.socket());
    for (uint64_t step = 0; step < 20; ++step) {
      std::optional<Batch> batch = loader.Next();
      REQUIRE(batch.has_value());
      const penstock::Tensor x = (*batch)["x"];
      DeviceMemory memory(cuda, x.bytes().size());
      CHECK(memory.bytes() == 128);
      cuda.Copy(*batch, x, memory.address());
      cuda.Release(std::move(*batch));
      std::array<float, 32> found;
      cuda.Read(memory.address(), std::as_writable_bytes(std::span(found)));
      CHECK(found[0] == 1000.0f * static_cast<float>(step));
      CHECK(found[31] == 1000.0f * static_cast<float>(step) + 73);
      DeviceMemory moved = std::move(memory);
      CHECK(memory.address() == 0);
      cuda.Copy(std::as_bytes(std::span(found)), moved.address());
    }
    CHECK(cuda.Poll() == 0);
    CHECK(loader.stats().leases == 0);
    CHECK(cuda.stats().copies == 20);
    CHECK(cuda.stats().staged_copies == 20);
    CHECK(cuda.device() == 0);
    CHECK(cuda.driver_version() == 12080);
    Cuda other = std::move(cuda);
    CHECK(other.why_staged().empty());
  }
  CHECK(fake["allocated"] == 0);
  CHECK(fake["registered"] == 0);
}

TEST_CASE("C++: a batch is held until the stream is done with it") {
  FakeCuda fake;
  const ServerProcess server(RING_SERVER, {"--slots", "3", "--slots-max", "3"});
  Cuda cuda;
  Loader loader("counted", server.socket());
  DeviceMemory memory(cuda, 128);
  fake.Set("hold", 1);
  std::optional<Batch> batch = loader.Next();
  cuda.Copy(*batch, (*batch)["x"], memory.address());
  cuda.Release(std::move(*batch));
  CHECK(cuda.Poll() == 1);
  CHECK(loader.stats().leases == 1);
  fake.Set("hold", 0);
  CHECK(cuda.Poll() == 0);
  CHECK(loader.stats().leases == 0);
}

TEST_CASE("C++: errors are objects with a code, and lose no batch") {
  FakeCuda fake;
  std::string message;
  CHECK(CodeOf([] { Cuda cuda(7); }, &message) == PENSTOCK_NOT_FOUND);
  CHECK(message.find("no such CUDA device: 7") != std::string::npos);
  const ServerProcess server(RING_SERVER, {"--slots", "3", "--slots-max", "3"});
  Cuda cuda;
  Loader loader("counted", server.socket());
  std::optional<Batch> batch = loader.Next();
  CHECK(CodeOf([&] { (void)cuda.OnDevice(*batch, "x"); }) == PENSTOCK_FAILED_PRECONDITION);
  CHECK(CodeOf([&] { (void)cuda.OnDevice(*batch, "there is none"); }, &message) ==
        PENSTOCK_NOT_FOUND);
  CHECK(message == "the batch has no tensor there is none");
  fake.Set("lost_after", 0);
  CHECK(CodeOf([&] { cuda.Copy(*batch, (*batch)["x"], 4096); }) == PENSTOCK_UNAVAILABLE);
  CHECK(CodeOf([&] { cuda.Release(std::move(*batch)); }) == PENSTOCK_UNAVAILABLE);
  CHECK(loader.stats().leases == 0);
}

}  // namespace
