// Files of elements that are written as objects: the same bytes as on a disk, and whole or not at
// all.
#include "io/remote/object_disk.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/stop_flag.h"
#include "io/element/element_file_writer.h"
#include "tests/remote/remote_reads.h"
#include "tests/remote/small_object_store.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::Answer;
using test::Bytes;
using test::NoEnvironment;
using test::Options;
using test::ScratchFolder;
using test::SmallObjectStore;
using test::SmallRequest;

constexpr char kFolder[] = "s3://bucket/made";
constexpr char kObject[] = "/bucket/made/elements.penstock-elements";

// Blocks of elements of many lengths, some with bytes of nobody around them: 16 MB.
std::vector<std::vector<std::string>> Blocks() {
  const std::string bytes = Bytes(3'000'000);
  std::vector<std::vector<std::string>> blocks;
  for (const size_t longest : {size_t{40}, size_t{3000}, size_t{300'000}, size_t{3'000'000}}) {
    for (int i = 0; i < 3; ++i) {
      blocks.emplace_back();
      for (const size_t part : {size_t{1}, size_t{2}, size_t{7}, size_t{50}})
        blocks.back().push_back(bytes.substr(0, longest / part + static_cast<size_t>(i)));
      blocks.back().emplace_back();
    }
  }
  return blocks;
}

struct Placed {
  uint64_t first;
  uint64_t from;
  std::vector<ElementFile::Element> places;
  std::vector<const uint8_t*> data;
};

// Writes the blocks from the last to the first, as far as that goes, and ends the file.
absl::Status WriteElements(Disk& disk, const std::string& folder, bool compressed,
                           bool ends = true) {
  if (absl::Status status = disk.MakeFolder(folder); !status.ok()) return status;
  ElementSchema schema;
  schema.structure = "null";
  schema.compressed = compressed;
  schema.signature = {{"value", {DType::kString, {}}}};
  auto writer = ElementFileWriter::Create(
      disk, absl::StrCat(folder, "/elements", kElementFileSuffix), ElementKey{1, 2, 3}, schema);
  if (!writer.ok()) return writer.status();
  const std::vector<std::vector<std::string>> blocks = Blocks();
  std::vector<Placed> placed;
  for (const std::vector<std::string>& block : blocks) {
    placed.push_back(
        {(*writer)->elements(), (*writer)->writes_each_byte() ? (*writer)->end() : 0, {}, {}});
    for (const std::string& element : block) {
      placed.back().places.push_back(
          (*writer)->Add({.length = static_cast<uint32_t>(element.size())}));
      placed.back().data.push_back(reinterpret_cast<const uint8_t*>(element.data()));
    }
  }
  for (size_t i = placed.size(); i-- > 0;) {
    Placed& block = placed[i];
    absl::Status status =
        (*writer)->Write(block.first, absl::MakeSpan(block.places), block.data, block.from);
    if (!status.ok()) return status;
    (*writer)->Place(block.first, block.places);
  }
  return ends ? (*writer)->Finish((*writer)->elements(), true) : absl::OkStatus();
}

WriteRights All() {
  WriteRights rights;
  rights.all = true;
  return rights;
}

TEST_CASE("elements are written to an object as they are to a file") {
  const ScratchFolder folder;
  for (const bool compressed : {false, true}) {
    SmallObjectStore store;
    RemoteClient client(Options(store.url(), /*has_keys=*/true), NoEnvironment());
    ObjectDisk disk(client, LocalDisk(), All());
    // What is no address goes to the disk.
    REQUIRE(WriteElements(disk, folder / "near", compressed).ok());
    const absl::Status status = WriteElements(disk, kFolder, compressed);
    INFO(status);
    REQUIRE(status.ok());
    std::ifstream in(folder / "near/elements.penstock-elements", std::ios::binary);
    const std::string near(std::istreambuf_iterator<char>(in), {});
    CHECK(near.size() > 1'000'000);
    CHECK((store.objects[kObject] == near));
    CHECK(store.bad_sums == 0);
    CHECK(store.uploads.empty());
    CHECK(store.objects.size() == 1);
  }
}

TEST_CASE("fault 29: elements that are not ended, or refused, leave what was there") {
  constexpr int kAlways = 1'000'000;
  const std::string refusal =
      Answer("403 Forbidden", "", "<Error><Code>AccessDenied</Code></Error>");
  const auto at = [&](const char* what, int times) {
    return [=](const SmallRequest& request, int number) -> std::optional<std::string> {
      const bool is_it = absl::StrContains(request.target, what) && request.method != "DELETE";
      return is_it && number < times ? std::optional<std::string>(refusal) : std::nullopt;
    };
  };
  const struct {
    const char* name;
    SmallObjectStore::Change before;
    bool ends;
  } cases[] = {
      {"the writer goes", {}, false},
      {"the upload is refused", at("uploads=", kAlways), true},
      {"a part is refused", at("partNumber=", kAlways), true},
      {"the end is refused", at("uploadId=", kAlways), true},
  };
  for (const auto& one : cases) {
    SmallObjectStore store(one.before);
    store.objects[kObject] = "before";
    RemoteClient client(Options(store.url(), /*has_keys=*/true), NoEnvironment());
    absl::Status status;
    {
      ObjectDisk disk(client, LocalDisk(), All());
      status = WriteElements(disk, kFolder, /*compressed=*/false, one.ends);
      // It is written again at once, by another upload.
      CHECK(disk.Create(absl::StrCat(kFolder, "/elements", kElementFileSuffix, ".partial")).ok());
    }
    INFO(one.name << ": " << status);
    CHECK(status.ok() == !one.ends);
    CHECK(store.objects[kObject] == "before");
    CHECK(store.objects.size() == 1);
    CHECK(store.uploads.empty());
    CHECK(!absl::StrContains(status.message(), "VERYSECRET"));
  }
}

TEST_CASE("fault 29: who is stopped while a server hangs waits for no part") {
  std::atomic<bool> stop{false};
  std::atomic<bool> is_over{false};
  SmallObjectStore store([&](const SmallRequest& request, int) -> std::optional<std::string> {
    if (!absl::StrContains(request.target, "partNumber=")) return std::nullopt;
    stop = true;
    while (!is_over) std::this_thread::yield();
    return Answer("503 Slow Down", "", "");
  });
  RemoteClient client(Options(store.url(), /*has_keys=*/true), NoEnvironment());
  {
    ObjectDisk disk(client, LocalDisk(), All());
    const StopFlag::Scope scope(&stop);
    CHECK(absl::IsCancelled(WriteElements(disk, kFolder, /*compressed=*/false)));
  }
  // The parts were thrown away although one hangs.
  CHECK(std::count(store.asked.begin(), store.asked.end(), "abort") == 1);
  is_over = true;
  CHECK(store.objects.empty());
}

TEST_CASE("one object has one writer, and what has been an object is not removed") {
  SmallObjectStore store;
  store.objects[kObject] = "before";
  RemoteClient client(Options(store.url(), /*has_keys=*/true), NoEnvironment());
  ObjectDisk disk(client, LocalDisk(), All());
  const std::string name = absl::StrCat(kFolder, "/elements", kElementFileSuffix);
  const std::string partial = absl::StrCat(name, ".partial");
  auto file = disk.Create(partial);
  REQUIRE(file.ok());
  CHECK(absl::IsUnavailable(disk.Create(partial).status()));
  CHECK(absl::IsNotFound(disk.Remove(name)));
  CHECK(disk.Remove(partial).ok());
  CHECK(!(*file)->WriteAt(0, {}).ok());
  CHECK(!disk.Publish(partial, name).ok());
  auto other = disk.Create(partial);
  REQUIRE(other.ok());
  // The first one takes nothing of the second with it.
  file->reset();
  CHECK((*other)->WriteAt(0, {reinterpret_cast<const uint8_t*>("new"), 3}).ok());
  CHECK(!disk.Publish(partial, name + "2").ok());
  REQUIRE(disk.Publish(partial, name).ok());
  CHECK(store.objects[kObject] == "new");
  // A byte that is missing, or is there twice, is no whole object.
  for (const uint64_t at : {uint64_t{1}, uint64_t{4}}) {
    other->reset();
    other = disk.Create(partial);
    REQUIRE(other.ok());
    CHECK((*other)->WriteAt(0, {reinterpret_cast<const uint8_t*>("abc"), 3}).ok());
    CHECK((*other)->WriteAt(at, {reinterpret_cast<const uint8_t*>("abc"), 3}).ok() == (at > 3));
    CHECK(!disk.Publish(partial, name).ok());
    CHECK(store.objects[kObject] == "new");
  }
}

TEST_CASE("fault 54: a daemon writes to the addresses that its configuration names, and no other") {
  RemoteClient client(Options("http://127.0.0.1:1", /*has_keys=*/true), NoEnvironment());
  WriteRights rights;
  rights.folders = {"s3://bucket/made", "gs://other/"};
  ObjectDisk disk(client, LocalDisk(), rights);
  for (const char* const folder : {"s3://bucket/made", "s3://bucket/made/a/b", "gs://other/a"})
    CHECK(disk.CheckFolder(folder).ok());
  for (const char* const folder :
       {"s3://bucket/made2", "s3://bucket", "s3://bucket2/made", "gs://otherwise/a"}) {
    const absl::Status status = disk.CheckFolder(folder);
    INFO(status);
    CHECK(absl::IsPermissionDenied(status));
    CHECK(absl::StrContains(status.message(), "cache { roots }"));
    CHECK(
        absl::IsPermissionDenied(disk.Create(absl::StrCat(folder, "/elements.partial")).status()));
  }
  ObjectDisk all(client, LocalDisk(), All());
  CHECK(all.CheckFolder("s3://any").ok());
  CHECK(absl::IsUnimplemented(all.CheckFolder("https://host.example/a")));
  CHECK(!all.CheckFolder("s3://").ok());
  CHECK(!all.CheckFolder("relative").ok());
  ObjectDisk none(client, LocalDisk(), {});
  CHECK(absl::IsPermissionDenied(none.CheckFolder("s3://bucket/made")));
}

}  // namespace
}  // namespace penstock
