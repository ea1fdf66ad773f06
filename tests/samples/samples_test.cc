#include "client/samples/samples.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/samples/drawn_photos.h"
#include "client/samples/photo.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tree.h"

namespace penstock::samples {
namespace {

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("Chess shards depend on the options alone") {
  test::ScratchFolder folder;
  SampleOptions options{1000, folder / "one", 3, 1};
  REQUIRE(MakeChess(options).ok());
  options.directory = folder / "two";
  REQUIRE(MakeChess(options).ok());
  const std::string shard = "/chess-00002-of-00003.tfrecord";
  CHECK(BytesOf(folder / "one" + shard) == BytesOf(folder / "two" + shard));
  CHECK(BytesOf(folder / "one" + shard).size() > 333 * 210);
  options.shards = 2;
  const absl::Status mixed = MakeChess(options);
  CHECK(mixed.code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("Chess shards have the bytes of every release") {
  test::ScratchFolder folder;
  REQUIRE(MakeChess({64, folder.path(), 1, 1}).ok());
  const std::string made = BytesOf(folder / "chess-00000-of-00001.tfrecord");
  CHECK(made == BytesOf(testing::InTree("tests/golden/chess.tfrecord")));
  CHECK(made.size() > 64 * 210);
}

TEST_CASE("Drawn flowers differ by kind and do not change") {
  const std::vector<Photo> one = DrawFlowers(), two = DrawFlowers();
  REQUIRE(one.size() == 5);
  for (size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].rgb.size() == size_t{3} * one[i].width * one[i].height);
    CHECK(one[i].rgb == two[i].rgb);
    CHECK(one[i].rgb != one[(i + 1) % one.size()].rgb);
  }
}

TEST_CASE("A photograph that is no JPEG is named") {
  test::ScratchFolder folder;
  const std::string photo = folder / "photo.jpg";
  std::ofstream(photo) << "not a JPEG";
  const absl::Status status = MakeFlowers({10, folder / "out", 1, 1}, {photo});
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK(status.message() ==
        "cannot decode: Not a JPEG file: starts with 0x6e 0x6f (" + photo + ")");
}

}  // namespace
}  // namespace penstock::samples
