// When the files of a source are read: what the front asks for.
#include "server/engine/stage/file_records.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/frames.h"
#include "tests/support/lone_front.h"
#include "tests/support/scratch_folder.h"

namespace penstock::testing {
namespace {

constexpr uint32_t kFiles = 4;

Manifest WriteFiles(const test::ScratchFolder& folder) {
  constexpr int kRecords = 2000;
  std::string frames;
  for (int i = 0; i < kRecords; ++i) frames += test::Frame(std::string(100, 'x'));
  Manifest manifest;
  for (uint32_t i = 0; i < kFiles; ++i) {
    FileEntry& file = manifest.emplace_back();
    file.path = folder / std::to_string(i);
    file.size_bytes = frames.size();
    file.indexed = TfrecordFormat();
    std::ofstream(file.path, std::ios::binary) << frames;
    file.version = (*LocalFileSystem().Open(file.path))->version();
  }
  return manifest;
}

// The op, whose files are mapped. Every read that it asks for is done at once.
struct Fixture {
  Fixture() {
    front.files.KeepMaps(std::make_shared<SharedMaps>(UINT64_MAX));
    for (uint32_t i = 0; i < kFiles; ++i) front.files.KeepMap(i, **front.files.Open(i));
    FileRecordsOptions options;
    options.cycle_length = kFiles;
    op = FileRecords({0, kFiles}, "tfrecord", options)(front.context, {});
  }

  // Pulls `count` elements. Returns how many reads there were.
  size_t Pull(uint64_t count) {
    size_t done = 0;
    uint64_t pulled = 0;
    RecordList out;
    while (op->Pull(count, out, &pulled) == Pulled::kBlocked) done += Read();
    REQUIRE(pulled == count);
    front.store.Release(out);
    return done + Read();
  }
  size_t Read() {
    size_t done = 0;
    for (; ReadRequest* const request = front.reads.Pop(); ++done) reader.Run(request);
    return done;
  }

  const test::ScratchFolder folder;
  test::LoneFront front{WriteFiles(folder)};
  ChunkReader reader{front.store};
  std::unique_ptr<OrderOp> op;
};

TEST_CASE("files that are read in turns do not want all of their chunks at once") {
  Fixture test;
  test.Pull(4 * 300);  // past the beginning
  size_t most = 0, reads = 0;
  for (int turn = 0; turn < 100; ++turn) {
    const size_t wanted = test.Pull(4 * 10);
    most = std::max(most, wanted);
    reads += wanted;
  }
  CHECK(reads >= 4);
  CHECK(most == 1);
}

}  // namespace
}  // namespace penstock::testing
