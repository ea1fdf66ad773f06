// Elements that are kept in files: what disks and crashes do to them never shows in the stream.
#include "server/engine/keep/file_kept.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/local_file.h"
#include "io/file/crc32c.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/recorded_disk.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// Elements of several sizes, some of them in memory of their own, in an order that one pass does
// not tell.
std::string Spec(const std::string& keep) {
  return Stages(absl::StrCat(
      "range { stop: 60 } | shuffle { buffer_size: 20 seed: 1 } | map { out: 'n = value' out: 'x = "
      "float32(value) + random_uniform([300], seed=1)' } | batch { batch_size: 3 } | ",
      keep,
      " | unbatch {} | shuffle { buffer_size: 9 seed: 2 } | repeat { count: 3 } | batch { "
      "batch_size: 8 }"));
}

std::string CacheIn(const std::string& folder, const std::string& options = "") {
  return absl::StrCat("cache { filename: '", folder, "' ", options, " }");
}

std::vector<Batch> RunOn(FileSystem& files, const std::string& spec, int workers = 2) {
  auto plan = PlanText(spec, files);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  RunResult result = RunPlan(*plan, {.workers = workers});
  INFO(result.status.ToString());
  CHECK(result.status.ok());
  return std::move(result.batches);
}

std::vector<Batch> RunOn(Disk& disk, const std::string& spec, int workers = 2) {
  const auto files = MakeLocalFileSystem(disk);
  return RunOn(*files, spec, workers);
}

// The files of a folder that are called as whole ones are.
std::vector<std::string> Entries(const std::string& folder) {
  std::vector<std::string> paths;
  if (!std::filesystem::exists(folder)) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (absl::EndsWith(entry.path().string(), kElementFileSuffix))
      paths.push_back(entry.path().string());
  }
  return paths;
}

uint64_t KeptElementsIn(const std::string& folder) {
  uint64_t elements = 0;
  for (const std::string& path : Entries(folder)) {
    const auto file = ElementFile::Map(path);
    if (file.ok()) elements += (*file)->size();
  }
  return elements;
}

// Whether the files of a folder go on behind each other from the first element to the last.
bool HoldsAll(const std::string& folder) {
  std::map<uint64_t, std::shared_ptr<const ElementFile>> parts;
  for (const std::string& path : Entries(folder)) {
    const auto file = ElementFile::Map(path);
    if (!file.ok()) return false;
    parts[(*file)->first()] = *file;
  }
  uint64_t next = 0;
  bool whole = false;
  for (const auto& [first, file] : parts) {
    if (first != next || whole) return false;
    next += file->size();
    whole = file->whole();
  }
  return whole;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

const std::vector<Batch>& Reference() {
  static const std::vector<Batch> batches = RunText(Spec("cache {}")).batches;
  return batches;
}

// Four pipelines of this spec that begin together; each makes the reference.
void RunTogether(const std::string& spec) {
  std::vector<std::vector<Batch>> results(4);
  std::vector<std::thread> threads;
  // Nothing of Catch's in a thread: it is made for one.
  for (std::vector<Batch>& result : results) {
    threads.emplace_back([&spec, &result] {
      auto plan = PlanText(spec);
      if (!plan.ok()) return;
      auto run = TryRunPlan(*plan, {.workers = 1});
      if (run.ok()) result = std::move(run->batches);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Batch>& result : results) CHECK((result == Reference()));
}

TEST_CASE("cache in a file: written once, and then taken from there") {
  ScratchFolder folder;
  const std::string spec = Spec(CacheIn(folder / "a/b"));
  CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
  REQUIRE(Entries(folder / "a/b").size() == 1);
  CHECK(KeptElementsIn(folder / "a/b") == 20);
  RecordedDisk disk;
  CHECK((RunOn(disk, spec) == Reference()));
  CHECK(disk.calls() == 0);
  // Other stages before it, or another limit, are another file.
  RunOn(LocalFileSystem(), Stages(absl::StrCat("range { stop: 61 } | ", CacheIn(folder / "a/b"))));
  RunOn(LocalFileSystem(), Spec(CacheIn(folder / "a/b", "max_bytes: 1000000")));
  CHECK(Entries(folder / "a/b").size() == 3);
}

TEST_CASE("cache in a file: as many elements as the limit allows stay, and the data is served") {
  for (const uint64_t bytes : {0, 500, 4000, 30'000, 60'000, 90'000}) {
    INFO(bytes);
    ScratchFolder folder;
    const std::string spec = Spec(CacheIn(folder.path(), absl::StrCat("max_bytes: ", bytes)));
    for (int run = 0; run < 3; ++run) CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
    for (const std::string& path : Entries(folder.path()))
      CHECK(std::filesystem::file_size(path) <= bytes);
    CHECK((KeptElementsIn(folder.path()) > 0) == (bytes >= 4000));
    CHECK((KeptElementsIn(folder.path()) == 20) == (bytes == 90'000));
  }
  // The same for all files of a folder.
  ScratchFolder folder;
  RecordedDisk disk;
  disk.SetFolderBytesMax(100'000);
  const std::string other = Stages(absl::StrCat(
      "range { stop: 9 } | map { out: 'x = value + random_uniform([500], seed=1)' } | ",
      CacheIn(folder.path())));
  RunOn(disk, other);
  CHECK((RunOn(disk, Spec(CacheIn(folder.path()))) == Reference()));
  uint64_t sum = 0;
  for (const std::string& path : Entries(folder.path())) sum += std::filesystem::file_size(path);
  CHECK(Entries(folder.path()).size() == 2);
  CHECK(sum <= 100'000);
}

TEST_CASE("fault 30: the disk of a cache is full: what it took stays, and the data is served") {
  std::vector<uint64_t> kept;
  for (const uint64_t room : {0, 70, 3000, 4000, 5000, 20'000, 50'000, 74'000, 200'000}) {
    INFO(room);
    ScratchFolder folder;
    RecordedDisk disk;
    disk.SetDiskBytes(room);
    const std::string spec = Spec(CacheIn(folder.path()));
    CHECK((RunOn(disk, spec) == Reference()));
    kept.push_back(KeptElementsIn(folder.path()));
    // Statistics say why.
    ScratchFolder another;
    RecordedDisk full;
    full.SetDiskBytes(room);
    const auto files = MakeLocalFileSystem(full);
    const auto plan = PlanText(Spec(CacheIn(another.path())), *files);
    REQUIRE(plan.ok());
    std::string state;
    for (const StageStats& stage : RunPlan(*plan).stats.stages) {
      if (!stage.kept.state.empty()) state = stage.kept.state;
    }
    CHECK(state == (room == 200'000 ? "whole" : "disk full"));
    CHECK((RunOn(disk, spec) == Reference()));
    CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
  }
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  CHECK(kept.front() == 0);
  CHECK(kept.back() == 20);
  CHECK(std::count_if(kept.begin(), kept.end(), [](uint64_t n) { return n > 0 && n < 20; }) > 1);
}

TEST_CASE("fault 30: a disk that fails at any call costs the cache and nothing else") {
  for (const absl::Status& error : {absl::ResourceExhaustedError("full"), absl::UnknownError("EIO"),
                                    absl::PermissionDeniedError("no")}) {
    INFO(error.ToString());
    uint64_t call = 0;
    for (bool failed = true; failed; ++call) {
      INFO("from call " << call);
      REQUIRE(call < 100);
      ScratchFolder folder;
      RecordedDisk disk;
      disk.FailFrom(call, error);
      CHECK((RunOn(disk, Spec(CacheIn(folder.path())), 1) == Reference()));
      failed = disk.calls() > call;
      CHECK((RunOn(LocalFileSystem(), Spec(CacheIn(folder.path()))) == Reference()));
    }
    CHECK(call > 5);
  }
}

TEST_CASE("faults 31 and 68: a crash at any write leaves a cache that is whole or made again") {
  ScratchFolder folder;
  RecordedDisk disk;
  REQUIRE((RunOn(disk, Spec(CacheIn(folder / "first")), 1) == Reference()));
  REQUIRE(disk.changes().size() >= 8);
  uint64_t whole = 0;
  for (const Loss loss : {Loss::kNothing, Loss::kLastWrite, Loss::kUnsynced, Loss::kEveryOther}) {
    for (size_t count = 0; count <= disk.changes().size(); ++count) {
      INFO("loss " << static_cast<int>(loss) << " behind change " << count);
      // The names within the folder do not depend on the folder.
      Replay(disk.changes(), count, loss, folder / "later");
      whole += KeptElementsIn(folder / "later") == 20;
      RecordedDisk later;
      CHECK((RunOn(later, Spec(CacheIn(folder / "later")), 1) == Reference()));
      CHECK(KeptElementsIn(folder / "later") == 20);
    }
  }
  // Behind the last change, whatever was lost.
  CHECK(whole >= 4);
}

TEST_CASE("fault 31: a flipped bit anywhere in a cache is not served, and the file is made again") {
  ScratchFolder folder;
  const std::string spec = Spec(CacheIn(folder.path()));
  RunOn(LocalFileSystem(), spec);
  const std::string path = Entries(folder.path()).at(0);
  const std::string bytes = ReadAll(path);
  for (size_t at = 0; at < bytes.size(); at += at < 300 || at + 1000 > bytes.size() ? 37 : 3989) {
    INFO("offset " << at << " of " << bytes.size());
    std::string hurt = bytes;
    hurt[at] ^= 0x10;
    std::filesystem::remove(path);
    WriteAll(path, hurt);
    CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
    // Bytes between elements belong to nobody.
    const std::string now = ReadAll(path);
    CHECK((now == bytes || now == hurt));
  }
  // In an element: found when it is dealt, and written again in the next pass.
  std::string hurt = bytes;
  hurt[bytes.size() / 2] ^= 1;
  std::filesystem::remove(path);
  WriteAll(path, hurt);
  CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
  CHECK(ReadAll(path) == bytes);
}

TEST_CASE(
    "fault 31: a cache that was cut, is of another version or of other elements is made again") {
  ScratchFolder folder;
  const std::string spec = Spec(CacheIn(folder.path()));
  RunOn(LocalFileSystem(), spec);
  const std::string path = Entries(folder.path()).at(0);
  const std::string bytes = ReadAll(path);
  std::vector<std::string> cases;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{130},
                            bytes.size() / 2, bytes.size() - 64, bytes.size() - 1})
    cases.push_back(bytes.substr(0, size));
  cases.push_back(bytes + "x");
  std::string other_version = bytes;
  other_version[8] = 2;
  const uint32_t crc =
      MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(other_version.data()), 60));
  other_version.replace(60, 4, reinterpret_cast<const char*>(&crc), 4);
  cases.push_back(other_version);
  {
    ScratchFolder other;
    RunOn(LocalFileSystem(), Stages("range { stop: 4 } | " + CacheIn(other.path())));
    cases.push_back(ReadAll(Entries(other.path()).at(0)));
  }
  {
    // Of elements that look alike.
    ScratchFolder other;
    std::string another = Spec(CacheIn(other.path()));
    another.replace(another.find("seed: 1"), 7, "seed: 5");
    RunOn(LocalFileSystem(), another);
    cases.push_back(ReadAll(Entries(other.path()).at(0)));
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO("case " << i);
    WriteAll(path, cases[i]);
    CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
    CHECK(ReadAll(path) == bytes);
  }
}

TEST_CASE("cache in a file: data of another time or with another end has elements of its own") {
  ScratchFolder folder;
  const std::string path = folder / "data";
  std::string bytes(30'000, 'x');
  WriteAll(path, bytes);
  const auto written = std::filesystem::last_write_time(path);
  const std::string spec =
      Stages(absl::StrCat("fixed_length_record { files: '", path, "' record_bytes: 1000 } | ",
                          CacheIn(folder / "kept"), " | batch { batch_size: 30 }"));
  const auto read = [&] {
    const std::vector<Batch> batches = RunOn(LocalFileSystem(), spec);
    std::string all;
    for (const std::string& piece : batches.at(0).Strings(0)) all += piece;
    return all;
  };
  CHECK((read() == bytes));
  CHECK((read() == bytes));
  CHECK(Entries(folder / "kept").size() == 1);
  // Sizes are the same throughout. Each byte is of a place that tells, and none of its neighbours
  // does.
  const struct {
    size_t at;
    int seconds;
  } changes[] = {{15'000, 1}, {0, 1}, {29'999, 1}, {16'000, 2}};
  size_t files = 1;
  for (const auto& change : changes) {
    INFO("byte " << change.at);
    bytes[change.at] = 'y';
    WriteAll(path, bytes);
    std::filesystem::last_write_time(path, written + std::chrono::seconds(change.seconds));
    CHECK((read() == bytes));
    CHECK(Entries(folder / "kept").size() == ++files);
  }
}

TEST_CASE(
    "cache in a file: one that leaves out failures is none of a pipeline that ends with them") {
  ScratchFolder folder;
  WriteAll(folder / "data", "1\n2\nx\n4\n");
  const std::string spec =
      absl::StrCat("text_line { files: '", folder / "data",
                   "' } | map { out: 'n = string_to_number(value)' } | ", CacheIn(folder / "kept"));
  const auto ignored = RunOn(LocalFileSystem(), Stages(spec + " | ignore_errors {}"));
  CHECK(ignored.size() == 3);
  REQUIRE(Entries(folder / "kept").size() == 1);
  auto plan = PlanText(Stages(spec));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  const RunResult result = RunPlan(*plan, {});
  CHECK_FALSE(result.status.ok());
  CHECK(result.batches.size() == 2);
}

TEST_CASE("cache in a file: what stands behind it draws and counts as behind one in memory") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 40);
  WriteShard(folder / "b", 1000, 30);
  const auto spec = [&](const std::string& cache) {
    return Stages(absl::StrCat(
        "tfrecord { files: '", folder.path(), "/?' } | shuffle { global: true seed: 1 } | ", cache,
        " | repeat { count: 3 } | parse_example { feature { key: 'n' int64 {} } } | map { out: 'n "
        "= n' out: 'r = random_uniform([2], seed=4)' } | batch { batch_size: 9 }"));
  };
  const std::vector<Batch> expected = RunOn(LocalFileSystem(), spec("cache {}"));
  for (int run = 0; run < 2; ++run)
    CHECK((RunOn(LocalFileSystem(), spec(CacheIn(folder / "kept"))) == expected));
  CHECK(Entries(folder / "kept").size() == 1);
}

TEST_CASE("fault 32: while another one writes the file, elements are computed") {
  ScratchFolder folder;
  const std::string spec = Spec(CacheIn(folder.path()));
  RunOn(LocalFileSystem(), spec);
  const std::string path = Entries(folder.path()).at(0);
  std::filesystem::remove(path);
  {
    auto other = ElementFileWriter::Create(LocalDisk(), path, {}, {});
    REQUIRE(other.ok());
    CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
    CHECK(Entries(folder.path()).empty());
  }
  CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
  CHECK(Entries(folder.path()).size() == 1);
}

TEST_CASE("fault 32: pipelines that begin together write one file") {
  ScratchFolder folder;
  const std::string spec = Spec(CacheIn(folder.path()));
  RunTogether(spec);
  CHECK(Entries(folder.path()).size() == 1);
  CHECK(KeptElementsIn(folder.path()) == 20);
}

TEST_CASE("fault 30: where room returns, a cache goes on behind what it has") {
  ScratchFolder folder;
  RecordedDisk disk;
  const std::string spec = Spec(CacheIn(folder.path()));
  uint64_t kept = 0;
  std::map<std::string, std::string> files;
  for (const uint64_t bytes : {20'000, 35'000, 60'000, 200'000}) {
    INFO(bytes);
    disk.SetDiskBytes(bytes);
    CHECK((RunOn(disk, spec) == Reference()));
    CHECK(KeptElementsIn(folder.path()) > kept);
    kept = KeptElementsIn(folder.path());
    // What was there is as it was.
    for (const auto& [path, content] : files) CHECK(ReadAll(path) == content);
    for (const std::string& path : Entries(folder.path())) files[path] = ReadAll(path);
  }
  CHECK(files.size() >= 4);
  CHECK(HoldsAll(folder.path()));
  // Now it is all there, and nothing more is written.
  RecordedDisk later;
  CHECK((RunOn(later, spec) == Reference()));
  CHECK(later.calls() == 0);
}

TEST_CASE("fault 30: room that returns between two passes is found by the next one") {
  for (const int workers : {1, 3}) {
    INFO(workers);
    ScratchFolder folder;
    RecordedDisk disk;
    disk.SetDiskBytes(20'000, 30'000);
    CHECK((RunOn(disk, Spec(CacheIn(folder.path())), workers) == Reference()));
    CHECK(Entries(folder.path()).size() >= 2);
    CHECK(KeptElementsIn(folder.path()) > 5);
  }
}

TEST_CASE("fault 30: a cache does not go on for little, nor try in each pass where it cannot") {
  ScratchFolder folder;
  RecordedDisk disk;
  const std::string spec = Spec(CacheIn(folder.path()));
  disk.SetDiskBytes(60'000);
  CHECK((RunOn(disk, spec) == Reference()));
  const size_t changes = disk.changes().size();
  const uint64_t kept = KeptElementsIn(folder.path());
  REQUIRE(kept > 10);
  disk.SetDiskBytes(61'000);
  CHECK((RunOn(disk, spec) == Reference()));
  CHECK(disk.changes().size() == changes);
  // A quota, which nobody tells of: tried again behind 1, 2, 4, … passes.
  RecordedDisk quota;
  quota.SetRoom(0);
  const std::string passes = Stages(
      absl::StrCat("range { stop: 5 } | ", CacheIn(folder / "quota"), " | repeat { count: 100 }"));
  CHECK(RunOn(quota, passes).size() == 500);
  const auto creates = std::count_if(
      quota.changes().begin(), quota.changes().end(),
      [](const auto& change) { return change.kind == RecordedDisk::Change::Kind::kCreate; });
  CHECK(creates == 7);
  CHECK(KeptElementsIn(folder.path()) == kept);
}

TEST_CASE("fault 30: what comes to less than a sixteenth is given up, and what is there stays") {
  ScratchFolder folder;
  std::string lines;
  // Forty elements that take little, and then some that are larger than all of those together.
  for (int i = 0; i < 40; ++i) absl::StrAppend(&lines, "line ", i, "\n");
  for (int i = 0; i < 10; ++i) absl::StrAppend(&lines, std::string(12'000, 'a' + i), "\n");
  WriteAll(folder / "lines.txt", lines);
  const std::string kept = folder / "cache";
  const std::string lined =
      Stages(absl::StrCat("text_line { files: '", folder / "lines.txt", "' } | ", CacheIn(kept),
                          " | repeat { count: 2 } | batch { batch_size: 10 }"));
  RecordedDisk disk;
  disk.SetFolderBytesMax(6'000);
  RunOn(disk, lined);
  CHECK(KeptElementsIn(kept) == 40);
  // Room for one of ten.
  disk.SetFolderBytesMax(20'000);
  RunOn(disk, lined);
  CHECK(KeptElementsIn(kept) == 40);
  CHECK(Entries(kept).size() == 1);
  // For six.
  disk.SetFolderBytesMax(80'000);
  RunOn(disk, lined);
  CHECK(KeptElementsIn(kept) == 46);
}

TEST_CASE("faults 31 and 68: a crash at any write while a cache goes on leaves what it had") {
  ScratchFolder folder;
  RecordedDisk disk;
  disk.SetDiskBytes(30'000);
  const std::string first = folder / "first";
  REQUIRE((RunOn(disk, Spec(CacheIn(first)), 1) == Reference()));
  const size_t before = disk.changes().size();
  const uint64_t kept = KeptElementsIn(first);
  REQUIRE(kept > 0);
  disk.SetDiskBytes(UINT64_MAX);
  REQUIRE((RunOn(disk, Spec(CacheIn(first)), 1) == Reference()));
  REQUIRE(disk.changes().size() >= before + 6);
  REQUIRE(HoldsAll(first));
  for (const Loss loss : {Loss::kNothing, Loss::kLastWrite, Loss::kUnsynced, Loss::kEveryOther}) {
    for (size_t count = before; count <= disk.changes().size(); ++count) {
      INFO("loss " << static_cast<int>(loss) << " behind change " << count);
      Replay(disk.changes(), count, loss, folder / "later");
      CHECK(KeptElementsIn(folder / "later") == (count == disk.changes().size() ? 20 : kept));
      RecordedDisk later;
      CHECK((RunOn(later, Spec(CacheIn(folder / "later")), 1) == Reference()));
      CHECK(HoldsAll(folder / "later"));
      // The first ones are not written again.
      for (const auto& change : later.changes())
        CHECK((change.kind != RecordedDisk::Change::Kind::kPublish ||
               absl::StrContains(change.name, absl::StrCat("-", kept, "."))));
    }
  }
}

TEST_CASE("fault 31: damage in any file of a cache that went on costs that one and those behind") {
  ScratchFolder folder;
  RecordedDisk disk;
  const std::string spec = Spec(CacheIn(folder.path()));
  for (const uint64_t bytes : {20'000, 50'000, 200'000}) {
    disk.SetDiskBytes(bytes);
    RunOn(disk, spec);
  }
  std::map<uint64_t, std::string> parts;
  for (const std::string& path : Entries(folder.path()))
    parts[(*ElementFile::Map(path))->first()] = path;
  REQUIRE(parts.size() >= 3);
  std::map<std::string, std::string> contents;
  for (const auto& [first, path] : parts) contents[path] = ReadAll(path);
  for (const auto& [victim, path] : parts) {
    // In its middle, in its footer, and not there at all.
    for (const int damage : {0, 1, 2}) {
      INFO("damage " << damage << " of the file from element " << victim);
      for (const auto& entry : Entries(folder.path())) std::filesystem::remove(entry);
      for (const auto& [name, content] : contents) WriteAll(name, content);
      std::string hurt = contents[path];
      hurt[damage == 0 ? hurt.size() / 2 : hurt.size() - 3] ^= 4;
      std::filesystem::remove(path);
      if (damage < 2) WriteAll(path, hurt);
      CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
      CHECK(HoldsAll(folder.path()));
      for (const auto& [first, name] : parts)
        if (first < victim) CHECK(ReadAll(name) == contents[name]);
    }
  }
  // A file under the name of another one is none of them.
  for (const auto& entry : Entries(folder.path())) std::filesystem::remove(entry);
  for (const auto& [first, path] : parts) WriteAll(path, contents[parts.begin()->second]);
  CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
  CHECK(HoldsAll(folder.path()));
}

TEST_CASE("fault 32: who goes on while another one does computes, and takes what that one wrote") {
  ScratchFolder folder;
  RecordedDisk disk;
  disk.SetDiskBytes(30'000);
  const std::string spec = Spec(CacheIn(folder.path()));
  RunOn(disk, spec);
  const uint64_t kept = KeptElementsIn(folder.path());
  REQUIRE(kept > 0);
  const std::vector<std::string> files = Entries(folder.path());
  // The first one's name is the shortest.
  std::string path = *std::min_element(
      files.begin(), files.end(),
      [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  path.insert(path.rfind('.'), absl::StrCat("-", kept));
  {
    auto other = ElementFileWriter::Create(LocalDisk(), path, {}, {}, kept);
    REQUIRE(other.ok());
    CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
    CHECK(KeptElementsIn(folder.path()) == kept);
  }
  RunTogether(spec);
  CHECK(HoldsAll(folder.path()));
  CHECK(Entries(folder.path()).size() == files.size() + 1);
}

TEST_CASE("fault 32: a file that another one ends while the lock is waited for is taken") {
  ScratchFolder folder;
  const std::string spec = Spec(CacheIn(folder / "mine"));
  RecordedDisk disk;
  disk.SetDiskBytes(30'000);
  RunOn(disk, spec);
  REQUIRE(!Entries(folder / "mine").empty());
  std::filesystem::copy(folder / "mine", folder / "theirs");
  RunOn(LocalFileSystem(), Spec(CacheIn(folder / "theirs")));
  REQUIRE(HoldsAll(folder / "theirs"));
  RecordedDisk later;
  later.OnCreate([&](const std::string&) {
    std::filesystem::copy(
        folder / "theirs", folder / "mine",
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::skip_existing);
  });
  CHECK((RunOn(later, spec) == Reference()));
  CHECK(HoldsAll(folder / "mine"));
  for (const auto& change : later.changes())
    CHECK(change.kind != RecordedDisk::Change::Kind::kPublish);
}

TEST_CASE(
    "cache in a file: another content under the old size and time is never served the old "
    "elements") {
  ScratchFolder folder;
  const std::string path = folder / "lines.txt";
  const auto lines = [](char middle) {
    std::string text;
    for (int i = 0; i < 3'000; ++i)
      absl::StrAppend(&text, i == 1'500 ? std::string(6, middle) : absl::StrCat(100'000 + i), "\n");
    return text;
  };
  WriteAll(path, lines('a'));
  const std::string spec =
      Stages(absl::StrCat("text_line { files: '", path, "' } | ", CacheIn(folder / "cache"),
                          " | batch { batch_size: 1000 }"));
  const auto middle = [](const std::vector<Batch>& batches) {
    return batches.at(1).Strings(0).at(500);
  };
  CHECK(middle(RunOn(LocalFileSystem(), spec)) == "aaaaaa");
  CHECK(KeptElementsIn(folder / "cache") == 3'000);
  const auto time = std::filesystem::last_write_time(path);
  SECTION("written over") {
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << lines('b');
  }
  SECTION("replaced") {
    WriteAll(path + ".new", lines('b'));
    std::filesystem::rename(path + ".new", path);
  }
  std::filesystem::last_write_time(path, time);
  auto plan = PlanText(spec);
  REQUIRE(plan.ok());
  std::vector<std::string> notices;
  RunOptions options;
  options.notice = [&](const std::string& notice) { notices.push_back(notice); };
  CHECK(middle(RunPlan(*plan, options).batches) == "bbbbbb");
  REQUIRE(notices.size() == 1);
  CHECK_THAT(notices[0], Catch::StartsWith("what was kept is removed and computed anew"));
  // In the place of the old one, and taken from then on.
  CHECK(Entries(folder / "cache").size() == 1);
  RecordedDisk disk;
  CHECK(middle(RunOn(disk, spec)) == "bbbbbb");
  CHECK(disk.calls() == 0);
  // chmod costs a computation.
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  CHECK(middle(RunOn(disk, spec)) == "bbbbbb");
  CHECK(disk.calls() > 0);
}

// Counts what is read of the files, but for their ends.
class CountedFiles final : public FileSystem {
 public:
  Disk* disk() override { return &LocalDisk(); }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    auto file = LocalFileSystem().Open(path);
    if (!file.ok()) return file.status();
    return std::make_shared<File>(*this, *std::move(file));
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return LocalFileSystem().List(pattern);
  }
  uint64_t reads() const { return reads_; }

 private:
  class File final : public RandomAccessFile {
   public:
    File(CountedFiles& files, std::shared_ptr<RandomAccessFile> file)
        : files_(files), file_(std::move(file)) {}
    const std::string& path() const override { return file_->path(); }
    uint64_t size() const override { return file_->size(); }
    FileVersion version() const override { return file_->version(); }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
      if (out.size() > 4096) ++files_.reads_;
      return file_->ReadAt(offset, out);
    }

   private:
    CountedFiles& files_;
    const std::shared_ptr<RandomAccessFile> file_;
  };
  std::atomic<uint64_t> reads_{0};
};

TEST_CASE("cache in a file: with a whole one, a cursor seeks and no record is read") {
  ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&lines, "line ", i, "\n");
  WriteAll(folder / "lines.txt", lines);
  const std::string spec = Stages(absl::StrCat(
      "text_line { files: '", folder / "lines.txt", "' } | ", CacheIn(folder / "cache"),
      " | repeat { count: 2 } | batch { batch_size: 1000 }"));
  const RunResult all = RunText(spec);
  REQUIRE(all.batches.size() == 40);
  CountedFiles files;
  auto plan = PlanText(spec, files);
  REQUIRE(plan.ok());
  const RunResult tail = RunPlan(*plan, {.cursor = all.batches[26].info.cursor});
  REQUIRE(tail.batches.size() == 13);
  for (size_t i = 0; i < 13; ++i) CHECK((tail.batches[i] == all.batches[27 + i]));
  CHECK(files.reads() == 0);
  // Without it the same cursor goes on to the same bytes, and reads.
  std::filesystem::remove_all(folder / "cache");
  const RunResult again = RunPlan(*plan, {.cursor = all.batches[26].info.cursor});
  REQUIRE(again.batches.size() == 13);
  for (size_t i = 0; i < 13; ++i) CHECK((again.batches[i] == all.batches[27 + i]));
  CHECK(files.reads() > 0);
}

TEST_CASE("save and load: the same elements in the same order") {
  ScratchFolder folder;
  const std::string before =
      "range { stop: 500 } | shuffle { buffer_size: 50 seed: 3 } | map { out: 'a = value' out: 's "
      "= "
      "float32(value) * 2' }";
  const RunResult saved = RunText(Stages(absl::StrCat(before, " | save { path: '", folder / "saved",
                                                      "' } | batch { batch_size: 9 }")));
  REQUIRE(saved.status.ok());
  const std::string load = absl::StrCat("load { path: '", folder / "saved", "' }");
  const RunResult loaded = RunText(Stages(load + " | batch { batch_size: 9 }"));
  CHECK((loaded.batches == RunText(Stages(before + " | batch { batch_size: 9 }")).batches));
  CHECK((saved.batches == loaded.batches));
  // All of them permuted, without a buffer.
  const RunResult permuted = RunText(Stages(
      load +
      " | shuffle { global: true seed: 5 } | repeat { count: 2 } | batch { batch_size: 500 }"));
  REQUIRE(permuted.batches.size() == 2);
  std::vector<int64_t> first = permuted.batches[0].As<int64_t>(0);
  std::vector<int64_t> second = permuted.batches[1].As<int64_t>(0);
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  for (int64_t i = 0; i < 500; ++i) CHECK((first[i] == i && second[i] == i));
  // Where files can only be read.
  CountedFiles read_only;
  CHECK((RunOn(read_only, Stages(load + " | batch { batch_size: 9 }")) == loaded.batches));
}

TEST_CASE("save: nothing is there before all of it is, and a failure is the stream's") {
  ScratchFolder folder;
  const std::string spec =
      Stages(absl::StrCat("range { stop: 50 } | map { out: 'x = value + "
                          "random_uniform([500], seed=1)' } | save { path: '",
                          folder.path(), "' }"));
  RecordedDisk disk;
  disk.SetRoom(50'000);
  const auto files = MakeLocalFileSystem(disk);
  auto plan = PlanText(spec, *files);
  REQUIRE(plan.ok());
  const RunResult result = RunPlan(*plan);
  CHECK(absl::IsResourceExhausted(result.status));
  CHECK(std::filesystem::is_empty(folder.path()));
  const auto load = PlanText(Stages(absl::StrCat("load { path: '", folder.path(), "' }")));
  CHECK(absl::IsNotFound(load.status()));
  CHECK(RunText(spec).status.ok());
  CHECK(RunText(Stages(absl::StrCat("load { path: '", folder.path(), "' }"))).batches.size() == 50);
  // An empty dataset is one too.
  CHECK(RunText(Stages(absl::StrCat("range { stop: 0 } | save { path: '", folder.path(), "' }")))
            .status.ok());
  CHECK(RunText(Stages(absl::StrCat("load { path: '", folder.path(), "' }"))).batches.empty());
}

TEST_CASE("fault 31: a cache whose elements name a file that there is not is made again") {
  ScratchFolder folder;
  const std::string spec = Spec(CacheIn(folder.path()));
  RunOn(LocalFileSystem(), spec);
  const std::string path = Entries(folder.path()).at(0);
  const std::string bytes = ReadAll(path);
  for (const uint32_t number : {1u << 30, ~0u}) {
    INFO("file " << number);
    {
      const std::shared_ptr<const ElementFile> file = *ElementFile::Map(path);
      std::filesystem::remove(path);
      auto writer = ElementFileWriter::Create(LocalDisk(), path, file->key(), file->schema());
      REQUIRE(writer.ok());
      for (uint64_t i = 0; i < file->size(); ++i) {
        ElementFile::Element element = file->element(i);
        const uint8_t* const data = file->data() + element.at;
        element.file = number;
        element = (*writer)->Add(element);
        REQUIRE((*writer)->Write(i, {&element, 1}, {&data, 1}).ok());
      }
      REQUIRE((*writer)->Finish(file->size(), true).ok());
    }
    CHECK((RunOn(LocalFileSystem(), spec) == Reference()));
    CHECK(ReadAll(path) == bytes);
  }
}

TEST_CASE("load: a file with sound checksums whose elements are none is an error and no crash") {
  ScratchFolder folder;
  const std::string path = folder / "elements.penstock-elements";
  const ElementSchema schema{{{"s", {DType::kString, {kUnknownSize}}}}, R"({"s":null})"};
  // The path, then where the strings lie, how many bytes and how many strings they are.
  const std::vector<std::vector<uint64_t>> kCells = {{0, 0, 48, 12, 1},
                                                     {0, 0, ~uint64_t{0}, 12, 1},
                                                     {0, 0, 64, ~uint64_t{0}, 1},
                                                     {0, 0, 64, 12, 1u << 31},
                                                     {0, 0, 64, 12, ~uint64_t{0}},
                                                     {0, 0, 64, 3, 1},
                                                     {0, 0, 64, 4000, 1},
                                                     {0}};
  for (const std::vector<uint64_t>& words : kCells) {
    std::vector<uint64_t> cell = words;
    if (words.size() > 1) cell.resize(10, 0x0101010101010101);
    auto writer = ElementFileWriter::Create(LocalDisk(), path, {}, schema);
    REQUIRE(writer.ok());
    ElementFile::Element element;
    element.length = static_cast<uint32_t>(cell.size() * sizeof(uint64_t));
    element = (*writer)->Add(element);
    const auto* const data = reinterpret_cast<const uint8_t*>(cell.data());
    REQUIRE((*writer)->Write(0, {&element, 1}, {&data, 1}).ok());
    REQUIRE((*writer)->Finish(1, true).ok());
    const RunResult result = RunText(Stages(absl::StrCat("load { path: '", folder.path(), "' }")));
    INFO(result.status.ToString());
    CHECK(absl::IsDataLoss(result.status));
  }
}

}  // namespace
}  // namespace penstock::test
