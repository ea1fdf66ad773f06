// Rings whose tables are forged, through everything that the C interface and the C++ wrapper show:
// an error, or bytes inside of the segment, and never a crash.
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "client/cpp/penstock.hpp"
#include "tests/ring/test_ring.h"
#include "tests/support/all_kinds.h"
#include "tests/support/attach_server.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace {

using penstock::Batch;
using penstock::Loader;
using penstock::Tensor;

// Reads all that a program can reach without a computation of its own.
uint64_t ReadAll(const Batch& batch) {
  uint64_t sum = batch.rows();
  for (const char byte : batch.cursor()) sum += static_cast<uint8_t>(byte);
  for (size_t i = 0; i < batch.size(); ++i) {
    const Tensor tensor = batch[i];
    for (const std::byte byte : tensor.bytes()) sum += static_cast<uint8_t>(byte);
    for (const int64_t size : tensor.shape()) sum += static_cast<uint64_t>(size);
    for (int axis = 0; axis < tensor.ragged_rank(); ++axis) {
      for (const int64_t split : tensor.row_splits(axis)) sum += static_cast<uint64_t>(split);
    }
    if (!tensor.is_string()) continue;
    for (const std::string_view text : tensor.strings()) {
      for (const char byte : text) sum += static_cast<uint8_t>(byte);
    }
  }
  return sum;
}

// Writes one word that is wrong, or wrong in an interesting way, into a table or a slot.
void Forge(uint8_t* segment, std::mt19937_64* dice) {
  auto* header = reinterpret_cast<penstock::ring::SegmentHeader*>(segment);
  const uint64_t regions[][2] = {
      {header->tensor_table_offset, header->slot_table_offset},
      {header->slot_table_offset,
       header->slot_table_offset + 2 * sizeof(penstock::ring::SlotEntry)},
      {header->extent_table_offset, header->structure_offset},
      {header->slot_data_offset, header->slot_data_offset + 4096}};
  const auto& region = regions[(*dice)() % 4];
  const uint64_t at = region[0] + (*dice)() % (region[1] - region[0] - 8) / 8 * 8;
  uint64_t old;
  std::memcpy(&old, segment + at, sizeof old);
  const uint64_t values[] = {(*dice)(), 0,        UINT64_MAX, old + 1,
                             old + 64,  old - 64, old * 2,    (*dice)() % 64};
  const uint64_t value = values[(*dice)() % 8];
  std::memcpy(segment + at, &value, sizeof value);
}

TEST_CASE("forged tables never crash a client, in place or copied") {
  const penstock::test::ScratchFolder folder;
  const std::string socket = folder / "socket";
  int refused = 0, failed = 0, batches = 0, copies = 0;
  uint64_t sum = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 dice(seed);
    penstock::ring::SegmentOptions options = penstock::AllKindsRing(4);
    auto writer = penstock::ring::MakeWriter(options);
    penstock::AttachServer server(writer.get(), options.pipeline, socket);
    REQUIRE(server.Start());
    for (uint64_t step = 0; step < 3; ++step) {
      penstock::PublishAllKinds(writer.get(), writer->TryClaim(), step, step == 2 ? 2 : 4);
    }
    writer->Finish(penstock::ring::Code::kOk, "");
    penstock::ring::ConsumerHandle handle;
    REQUIRE(writer->Attach("default", getpid(), &handle).ok());
    uint8_t* segment = penstock::ring::MappedAt(handle.segment_fd);
    const uint64_t changes = 1 + dice() % 12;
    for (uint64_t i = 0; i < changes; ++i) Forge(segment, &dice);
    std::optional<Loader> loader;
    try {
      loader.emplace("kinds", socket);
    } catch (const penstock::Error&) {
      ++refused;
      continue;
    }
    // Kept, so that the last one is a copy.
    std::vector<Batch> kept;
    try {
      while (std::optional<Batch> batch = loader->Next()) {
        kept.push_back(std::move(*batch));
        ++batches;
        copies += kept.back().is_copy();
        sum += ReadAll(kept.back());
      }
    } catch (const penstock::Error& error) {
      CHECK(error.code() == PENSTOCK_INTERNAL);
      ++failed;
    }
  }
  INFO(refused << " refused, " << failed << " failed, " << batches << " batches, " << copies
               << " copies, " << sum);
  CHECK(refused > 20);
  CHECK(failed > 40);
  CHECK(copies > 40);
}

}  // namespace
