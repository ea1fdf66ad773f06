#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/run/order_walk.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr const char* kImages[] = {"rgb_420.jpg", "grey.jpg", "rgb_progressive.jpg", "cmyk.jpg",
                                   "rgb_420_odd.jpg"};

void WriteInFolder(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  WriteFile(path, bytes);
}

TEST_CASE("files: photographs in folders are decoded, with the numbers of their classes") {
  ScratchFolder folder;
  std::vector<std::string> records;
  for (int i = 0; i < 5; ++i) {
    records.push_back(testing::ReadGolden(absl::StrCat("images/", kImages[i])));
    WriteInFolder(folder / absl::StrCat(i < 2 ? "tulips/" : "roses/", 4 - i, ".jpg"),
                  records.back());
  }
  // The folders' order is roses, tulips; within one, that of the names.
  WriteRecords(folder / "same.tfrecord",
               {records[4], records[3], records[2], records[1], records[0]});
  const std::string image = "resize(decode_jpeg(bytes, channels=3), [24, 32])";
  const RunResult found = RunText(
      Stages(absl::StrCat("files { files: '", folder.path(),
                          "/*/*.jpg' class_from_folder: true } | map { out: 'image = ", image,
                          "' out: 'label = label' } | batch { batch_size: 3 }")));
  const RunResult expected = RunText(
      Stages(absl::StrCat("tfrecord { files: '", folder.path(),
                          "/same.tfrecord' } | map { let: 'bytes = value' out: 'image = ", image,
                          "' } | batch { batch_size: 3 }")));
  INFO(found.status.ToString() << expected.status.ToString());
  REQUIRE(expected.batches.size() == 2);
  REQUIRE(found.batches.size() == 2);
  for (int i = 0; i < 2; ++i) CHECK(found.batches[i].tensors[0] == expected.batches[i].tensors[0]);
  CHECK(Int64s(found, 1) == std::vector<int64_t>{0, 0, 0, 1, 1});
}

TEST_CASE("files: contents of any size come whole, whatever the workers") {
  ScratchFolder folder;
  std::vector<std::string> contents;
  for (const size_t size : {0, 1, 70, 5000, 100000, 3000000}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + (i >> 8));
    WriteFile(folder / absl::StrCat("f", contents.size()), bytes);
    contents.push_back(std::move(bytes));
  }
  for (const int workers : {1, 4}) {
    const RunResult result = RunText(
        Stages(absl::StrCat("files { files: '", folder.path(), "/f?' } | batch { batch_size: 4 }")),
        {.workers = workers});
    INFO(result.status.ToString());
    REQUIRE(result.batches.size() == 2);
    std::vector<std::string> found;
    for (const Batch& batch : result.batches) {
      const std::vector<std::string> values = batch.Strings(1);
      found.insert(found.end(), values.begin(), values.end());
    }
    CHECK(found == contents);
  }
}

TEST_CASE("fault 23: files: one that has changed since it was listed is an error with its path") {
  ScratchFolder folder;
  for (const char* name : {"a", "b", "c"}) WriteFile(folder / name, "12345");
  const std::string text =
      Stages(absl::StrCat("files { files: '", folder.path(), "/?' } | batch { batch_size: 1 }"));
  const auto after = [&](const auto& change) {
    for (const char* name : {"a", "b", "c"}) WriteFile(folder / name, "12345");
    const auto plan = PlanText(text);
    REQUIRE(plan.ok());
    change();
    const RunResult result = RunPlan(*plan);
    CHECK(result.batches.size() == 1);
    CHECK(absl::StrContains(result.status.message(), "stage files: "));
    CHECK(absl::StrContains(result.status.message(), folder / "b"));
    return result.status;
  };
  CHECK(absl::StrContains(after([&] { WriteFile(folder / "b", "1234567"); }).message(),
                          "5 bytes then, 7 now"));
  CHECK(absl::StrContains(after([&] {
                            WriteFile(folder / "new", "54321");
                            std::filesystem::rename(folder / "new", folder / "b");
                          }).message(),
                          "written to or replaced"));
}

TEST_CASE("files: a file that is no image is an error with its path") {
  ScratchFolder folder;
  WriteFile(folder / "a.jpg", testing::ReadGolden("images/grey.jpg"));
  WriteFile(folder / "b.jpg", "no image");
  const RunResult result = RunText(Stages(absl::StrCat(
      "files { files: '", folder.path(),
      "/*.jpg' } | map { out: 'x = resize(decode_jpeg(bytes, channels=1), [2, 2])' }")));
  CHECK(result.batches.size() == 1);
  INFO(result.status.ToString());
  CHECK(absl::EndsWith(result.status.message(), "(" + folder / "b.jpg" + ")"));
}

TEST_CASE("files: a row is found by its file, and the file by its row") {
  ScratchFolder folder;
  for (const char* name : {"a", "b", "c", "d"}) WriteFile(folder / name, name);
  const auto plan = PlanText(
      Stages(absl::StrCat("files { files: '", folder.path(),
                          "/?' } | shuffle { buffer_size: 4 seed: 1 } | batch { batch_size: 3 }")));
  REQUIRE(plan.ok());
  const auto row = FindRow(*plan, "c", 0, 0, 100);
  REQUIRE(row.ok());
  const auto places = FindRecords(*plan, row->step, row->row);
  REQUIRE(places.ok());
  REQUIRE(places->size() == 1);
  CHECK(places->front().file == folder / "c");
}

TEST_CASE("files: what is too long, or has no folder for a class, is refused") {
  ScratchFolder folder;
  WriteFile(folder / "long", "");
  std::filesystem::resize_file(folder / "long", (uint64_t{256} << 20) + 1);
  const auto plan = PlanText(absl::StrCat("stage { files { files: '", folder.path(), "/long' } }"));
  CHECK(absl::StrContains(plan.status().message(),
                          "file longer than a record may be: 268435457 > 268435456 bytes"));
  std::filesystem::resize_file(folder / "long", 5);
  const auto parent = PlanText(absl::StrCat("stage { files { files: '", folder.path(),
                                            "/./long' class_from_folder: true } }"));
  CHECK(absl::StrContains(parent.status().message(), "expected paths that name the file's folder"));
  CHECK(PlanText(absl::StrCat("stage { files { files: '", folder.path(),
                              "/long' class_from_folder: true } }"))
            .ok());
}

}  // namespace
}  // namespace penstock::test
