// Records for shards that several threads make: each in its place, whatever the system gives.
#include "client/samples/fill_shards.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "io/record/example_builder.h"
#include "tests/support/catch.h"
#include "tests/support/no_more_threads.h"
#include "tests/support/scratch_folder.h"

namespace penstock::samples {
namespace {

constexpr int kShards = 5;
constexpr int64_t kRecords = 203;

absl::Status Fill(const std::string& folder, int64_t fails_at = -1) {
  absl::StatusOr<ctl::ShardSet> shards = ctl::ShardSet::Create(folder, "s", kShards);
  if (!shards.ok()) return shards.status();
  return FillShards(*shards, kRecords, "s", [&](int64_t ordinal, ExampleBuilder* example) {
    if (ordinal == fails_at) return absl::DataLossError("not this one");
    example->AddInt64("n", ordinal);
    return absl::OkStatus();
  });
}

std::string BytesIn(const std::string& folder) {
  std::string bytes;
  for (int i = 0; i < kShards; ++i) {
    std::ifstream file(folder + "/s-0000" + std::to_string(i) + "-of-00005.tfrecord",
                       std::ios::binary);
    bytes.append(std::istreambuf_iterator<char>(file), {});
  }
  return bytes;
}

TEST_CASE("shards are the same however many threads the system gives") {
  const test::ScratchFolder folder;
  REQUIRE(Fill(folder / "many").ok());
  {
    const test::NoMoreThreads none;
    REQUIRE(Fill(folder / "one").ok());
  }
  CHECK(BytesIn(folder / "many").size() > static_cast<size_t>(kRecords) * 16);
  CHECK((BytesIn(folder / "many") == BytesIn(folder / "one")));
}

TEST_CASE("the first record that cannot be made is told, and no shard stays") {
  const test::ScratchFolder folder;
  for (const int64_t record : {int64_t{0}, int64_t{100}, kRecords - 1}) {
    const absl::Status status = Fill(folder / "failed", record);
    INFO(status);
    CHECK(status.message() == "not this one");
    CHECK(std::filesystem::is_empty(folder / "failed"));
  }
}

}  // namespace
}  // namespace penstock::samples
