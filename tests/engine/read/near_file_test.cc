#include "server/engine/read/near_file.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "io/inflate/byte_stream.h"
#include "io/record/tfrecord_reader.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/stream_pieces.h"

namespace penstock {
namespace {

// A file of gzip on a disk, of more bytes than a map is made for.
struct Fixture {
  Fixture() {
    std::mt19937 random(7);
    for (int i = 0; i < 3'000'000; ++i) plain += static_cast<char>(random() % 7);
    // In these codes zeros are the end of a block, and no beginning of one.
    const std::string packed = test::Deflate(plain, /*window_bits=*/31, /*level=*/6, Z_FIXED);
    REQUIRE(packed.size() > 2 * kChunkBytes);
    std::ofstream(path, std::ios::binary) << packed;
    FileEntry entry;
    entry.path = path;
    entry.size_bytes = packed.size();
    entry.version = (*LocalFileSystem().Open(path))->version();
    manifest.push_back(entry);
    table = std::make_unique<FileTable>(LocalFileSystem(), manifest);
  }

  test::StreamPieces Open() {
    const auto file = std::make_shared<NearFile>(*table->Open(0), *table, 0);
    return test::StreamPieces(*OpenStream(file, Compression::kGzip));
  }

  static absl::StatusOr<std::string> ReadAll(test::StreamPieces& pieces) {
    std::string all;
    while (true) {
      const absl::StatusOr<absl::string_view> piece = pieces.Read(100'000);
      if (!piece.ok()) return piece.status();
      if (piece->empty()) return all;
      all += std::string(*piece);
    }
  }

  const test::ScratchFolder folder;
  const std::string path = folder / "data.gz";
  std::string plain;
  Manifest manifest;
  std::unique_ptr<FileTable> table;
};

TEST_CASE("A compressed file is mapped where there is room for it, and read where there is none") {
  for (const bool has_room : {false, true}) {
    Fixture test;
    const auto maps = std::make_shared<SharedMaps>(has_room ? UINT64_MAX : 1000);
    test.table->KeepMaps(maps);
    test::StreamPieces pieces = test.Open();
    const absl::StatusOr<std::string> all = Fixture::ReadAll(pieces);
    REQUIRE(all.ok());
    CHECK((*all == test.plain));
    CHECK(maps->InUse().files == has_room);
  }
}

TEST_CASE("fault 24: a mapped file that is cut while it is inflated is shorter, and not damaged") {
  // At the end of a page, and within it.
  for (const uint64_t more : {0, 100}) {
    Fixture test;
    const auto maps = std::make_shared<SharedMaps>(UINT64_MAX);
    test.table->KeepMaps(maps);
    test::StreamPieces pieces = test.Open();
    REQUIRE(pieces.Read(100'000).ok());
    REQUIRE(maps->InUse().files == 1);
    // Behind what was inflated, in the piece that is looked at already.
    const uint64_t taken = pieces.stream().file_offset();
    std::filesystem::resize_file(test.path, (taken / 4096 + 1) * 4096 + more);
    const absl::Status status = Fixture::ReadAll(pieces).status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(status.message()), Catch::Contains("became shorter than its"));
  }
}

}  // namespace
}  // namespace penstock
