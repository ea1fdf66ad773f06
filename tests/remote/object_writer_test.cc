// Objects that are written: whole or not at all, whatever the server does.
#include "io/remote/object_writer.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "base/stop_flag.h"
#include "io/record/record_index.h"
#include "io/record/tfrecord_access.h"
#include "io/record/tfrecord_writer.h"
#include "io/remote/object_index_store.h"
#include "io/remote/object_upload.h"
#include "io/remote/remote_file_system.h"
#include "tests/remote/remote_reads.h"
#include "tests/remote/small_object_store.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::Answer;
using test::Bytes;
using test::NoEnvironment;
using test::Options;
using test::SmallObjectStore;
using test::SmallRequest;

constexpr size_t kPart = ObjectWriter::PartBytes(1);

absl::Status WriteObject(RemoteClient& client, const std::string& bytes, size_t piece = 1'000'003) {
  const auto object = ObjectWriter::Create(client, "s3://bucket/a b/c");
  if (!object.ok()) return object.status();
  for (size_t at = 0; at < bytes.size(); at += piece) {
    absl::Status status = (*object)->Write(absl::string_view(bytes).substr(at, piece));
    if (!status.ok()) return status;
  }
  return (*object)->Close();
}

size_t Count(const SmallObjectStore& store, const std::string& kind) {
  return static_cast<size_t>(std::count(store.asked.begin(), store.asked.end(), kind));
}

TEST_CASE("an object is one request up to a part, and parts of 8 MiB beyond") {
  for (const size_t size : {size_t{0}, size_t{5}, kPart, kPart + 1, 3 * kPart + 7}) {
    SmallObjectStore store;
    RemoteClient client(Options(store.url(), /*has_keys=*/true), NoEnvironment());
    const std::string bytes = Bytes(size);
    const absl::Status status = WriteObject(client, bytes);
    INFO(size << " " << status);
    REQUIRE(status.ok());
    CHECK(store.objects["/bucket/a%20b/c"] == bytes);
    CHECK(store.bad_sums == 0);
    CHECK(store.uploads.empty());
    const bool is_one = size <= kPart;
    CHECK(Count(store, "PUT") == (is_one ? 1 : 0));
    CHECK(Count(store, "part") == (is_one ? 0 : (size + kPart - 1) / kPart));
    CHECK(Count(store, "end") == (is_one ? 0 : 1));
    CHECK(Count(store, "abort") == 0);
  }
}

TEST_CASE("parts grow, so that a thousand times ten of them are enough") {
  uint64_t bytes = 0;
  for (int number = 1; number <= ObjectWriter::kPartsMax; ++number)
    bytes += ObjectWriter::PartBytes(number);
  CHECK(ObjectWriter::PartBytes(1000) == kPart);
  CHECK(ObjectWriter::PartBytes(1001) == 2 * kPart);
  CHECK(ObjectWriter::PartBytes(ObjectWriter::kPartsMax) <= uint64_t{5} << 30);
  CHECK(bytes >= uint64_t{5} << 40);
}

// Whether what is changed at one kind of request ends well.
struct Fault {
  const char* name;
  SmallObjectStore::Change before;
  SmallObjectStore::Change behind;
  bool ends_well;
};

bool IsPart(const SmallRequest& request) {
  return absl::StrContains(request.target, "partNumber=");
}
bool IsEnd(const SmallRequest& request) {
  return request.method == "POST" && absl::StrContains(request.target, "uploadId=");
}

TEST_CASE(
    "fault 29: an upload that is cut, refused or answered badly leaves a whole object or none") {
  using Answered = std::optional<std::string>;
  const auto at = [](bool (*is_it)(const SmallRequest&), std::string answer, int times = 1) {
    return [=](const SmallRequest& request, int number) -> Answered {
      return is_it(request) && number < times ? Answered(answer) : std::nullopt;
    };
  };
  const std::string refusal =
      Answer("403 Forbidden", "", "<Error><Code>AccessDenied</Code></Error>");
  const std::string failure = Answer("200 OK", "", "\n<Error><Code>InternalError</Code></Error>");
  constexpr int kAlways = 1'000'000;
  const Fault faults[] = {
      {"a part's connection is cut", at(IsPart, ""), {}, true},
      {"a part's answer is lost", {}, at(IsPart, ""), true},
      {"a part is too much", at(IsPart, Answer("503 Slow Down", "", "")), {}, true},
      {"a part has no tag", at(IsPart, Answer("200 OK", "", "")), {}, false},
      {"parts are refused", at(IsPart, refusal, kAlways), {}, false},
      {"the end's connection is cut", at(IsEnd, ""), {}, true},
      {"the end's answer is lost", {}, at(IsEnd, ""), true},
      {"the end fails with 200", at(IsEnd, failure), {}, true},
      {"the end always fails with 200", at(IsEnd, failure, kAlways), {}, false},
      {"the end is no answer", at(IsEnd, Answer("200 OK", "", "<html/>"), kAlways), {}, false},
      {"the end is refused", at(IsEnd, refusal, kAlways), {}, false},
  };
  for (const Fault& fault : faults) {
    SmallObjectStore store(fault.before, fault.behind);
    store.objects["/bucket/a%20b/c"] = "before";
    RemoteClient client(Options(store.url(), /*has_keys=*/true), NoEnvironment());
    const std::string bytes = Bytes(2 * kPart + 5);
    const absl::Status status = WriteObject(client, bytes);
    INFO(fault.name << ": " << status);
    CHECK(status.ok() == fault.ends_well);
    CHECK(store.objects["/bucket/a%20b/c"] == (fault.ends_well ? bytes : "before"));
    // Nothing stays that somebody pays for.
    CHECK(store.uploads.empty());
    if (!status.ok()) CHECK(absl::StrContains(status.message(), "cannot write: "));
    CHECK(!absl::StrContains(status.message(), "VERYSECRET"));
  }
}

TEST_CASE("who gives an object up, or is stopped, leaves none and no parts") {
  for (const bool is_stopped : {false, true}) {
    SmallObjectStore store;
    RemoteClient client(Options(store.url(), /*has_keys=*/true), NoEnvironment());
    std::atomic<bool> stop{false};
    const StopFlag::Scope scope(&stop);
    {
      const auto object = ObjectWriter::Create(client, "s3://bucket/a");
      REQUIRE(object.ok());
      REQUIRE((*object)->Write(Bytes(2 * kPart + 1)).ok());
      stop = is_stopped;
      if (is_stopped) CHECK(absl::IsCancelled((*object)->Write("more")));
      if (is_stopped) CHECK(absl::IsCancelled((*object)->Close()));
    }
    CHECK(store.objects.empty());
    CHECK(store.uploads.empty());
    CHECK(Count(store, "abort") == 1);
    CHECK(Count(store, "end") == 0);
  }
}

TEST_CASE("what is no object's name, or cannot be written to, is told at once") {
  RemoteClient client(Options("http://127.0.0.1:1", /*has_keys=*/true), NoEnvironment());
  CHECK(absl::IsUnimplemented(ObjectWriter::Create(client, "https://host/a").status()));
  CHECK(absl::IsInvalidArgument(ObjectWriter::Create(client, "s3://bucket/folder/").status()));
  CHECK(!ObjectWriter::Create(client, "s3://bucket").ok());
}

TEST_CASE("the tag of parts is that of S3, and of no other tags") {
  // hashlib.md5(hashlib.md5(b"a").digest() + hashlib.md5(b"b").digest()).hexdigest()
  CHECK(TagOfParts({"\"0cc175b9c0f1b6a831c399e269772661\"", "92eb5ffee6ae2fec3ad71c777531578f"}) ==
        "\"96e024ba2074fe77e8e965ba43a704be-2\"");
  CHECK(TagOfParts({"\"short\""}).empty());
  CHECK(TagOfParts({"\"zzc175b9c0f1b6a831c399e269772661\""}).empty());
}

TEST_CASE("an index beside an object is found by who reads it") {
  SmallObjectStore store;
  const RemoteOptions options = Options(store.url(), /*has_keys=*/true);
  RemoteClient client(options, NoEnvironment());
  {
    auto object = ObjectWriter::Create(client, "s3://bucket/train/a");
    REQUIRE(object.ok());
    TfrecordWriter records("s3://bucket/train/a", *std::move(object));
    for (int i = 0; i < 1000; ++i) REQUIRE(records.Write(Bytes(static_cast<size_t>(i))).ok());
    REQUIRE(records.Close().ok());
  }
  RemoteFileSystem files(LocalFileSystem(), options, NoEnvironment());
  ObjectIndexStore beside(files, client);
  for (const bool is_built : {true, false}) {
    auto file = files.Open("s3://bucket/train/a");
    REQUIRE(file.ok());
    IndexReport report;
    const auto index = LoadOrBuildIndex(*file, TfrecordAccess(), beside, {}, &report);
    INFO(index.status() << report.unwritten << report.rejected);
    REQUIRE(index.ok());
    CHECK((*index)->size() == 1000);
    CHECK(report.built == is_built);
    CHECK(report.path == "s3://bucket/train/.a.penstock-index");
  }
  CHECK(store.objects.contains("/bucket/train/.a.penstock-index"));
}

}  // namespace
}  // namespace penstock
