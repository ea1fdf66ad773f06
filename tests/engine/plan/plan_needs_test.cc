// What a plan says to those who hold its files: which of them it needs, as long as it lives; and
// whose tags stand for what they begin and end with (fault 29).
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/far_file.h"
#include "penstock/v1/cursor.pb.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/plan/plan.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

// One object of another machine, whatever its address is; and who needs it.
class NotedFiles final : public JoinedFileSystem {
 public:
  explicit NotedFiles(std::string object) : object_(std::move(object)) {}

  FileSystem& local() const override { return LocalFileSystem(); }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string&) override {
    ++opened;
    return InMemory(object_);
  }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenListed(const ListedFile& file) override {
    return Open(file.path);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    if (pattern[0] == '/') return LocalFileSystem().List(pattern);
    ListedFile file{pattern, object_.size(), {}};
    file.version.object = version;
    return std::vector<ListedFile>{file};
  }
  std::vector<absl::StatusOr<std::vector<ListedFile>>> ListEach(
      const std::vector<std::string>& patterns) override {
    std::vector<absl::StatusOr<std::vector<ListedFile>>> listed;
    for (const std::string& pattern : patterns) listed.push_back(List(pattern));
    return listed;
  }
  std::shared_ptr<void> Need(const std::vector<ListedFile>& files) override {
    ++plans;
    needed = files;
    return {static_cast<void*>(this), [this](void*) { --plans; }};
  }
  std::optional<uint64_t> TrustedTag(const ListedFile& file) override {
    return trusts ? std::optional(file.version.object) : std::nullopt;
  }

  std::atomic<int> opened{0};
  int plans = 0;
  std::vector<ListedFile> needed;
  uint64_t version = 1;
  bool trusts = false;

 private:
  const std::string object_;
};

std::string Shard(const ScratchFolder& folder) {
  WriteShard(folder / "a", 0, 100);
  return ReadFile(folder / "a");
}

TEST_CASE("fault 29: a plan needs its files on other machines as long as it lives, and no others") {
  const ScratchFolder folder;
  NotedFiles files(Shard(folder));
  {
    const auto plan = PlanText("stage { tfrecord { files: 'test://b/1' files: '" + folder / "a" +
                                   "' files: 'test://b/2' } }",
                               files);
    INFO(plan.status());
    REQUIRE(plan.ok());
    CHECK(files.plans == 1);
    REQUIRE(files.needed.size() == 2);
    CHECK(files.needed[0].path == "test://b/1");
    CHECK(files.needed[1].path == "test://b/2");
    CHECK(files.needed[0].version.object == 1);
    CHECK(files.needed[0].size_bytes > 0);
    {
      const auto another = PlanText("stage { list_files { files: 'test://b/1' } }", files);
      REQUIRE(another.ok());
      CHECK(files.plans == 2);
      CHECK(files.needed.size() == 1);
    }
    CHECK(files.plans == 1);
  }
  CHECK(files.plans == 0);
  REQUIRE(PlanText("stage { tfrecord { files: '" + folder / "a" + "' } }", files).ok());
  CHECK(files.needed.size() == 1);
}

TEST_CASE("tags that are trusted stand for the ends of files, which nobody looks at then") {
  const ScratchFolder folder;
  NotedFiles files(Shard(folder));
  struct Seen {
    uint64_t ends;
    int opened;
  };
  const auto seen = [&](bool trusts, uint64_t version) -> Seen {
    files.trusts = trusts;
    files.version = version;
    const auto plan = PlanText("stage { tfrecord { files: 'test://b/1' } }", files);
    REQUIRE(plan.ok());
    const int before = files.opened;
    const auto fingerprint = FingerprintOf(**plan);
    INFO(fingerprint.status());
    REQUIRE(fingerprint.ok());
    return {fingerprint->ends(), files.opened - before};
  };
  const Seen looked = seen(false, 1);
  CHECK(seen(false, 2).ends == looked.ends);
  const Seen trusted = seen(true, 1);
  CHECK(trusted.ends != looked.ends);
  CHECK(trusted.ends == seen(true, 1).ends);
  CHECK(trusted.ends != seen(true, 2).ends);
  // The index of the first file is looked for in both cases.
  CHECK(trusted.opened < looked.opened);
}

}  // namespace
}  // namespace penstock::test
