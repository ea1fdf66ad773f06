// Files at addresses with a cache folder: the second time nobody asks the server.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/remote/remote_reads.h"
#include "tests/remote/small_http_server.h"
#include "tests/support/catch.h"
#include "tests/support/no_more_threads.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::AnswerRange;
using test::Awaited;
using test::Bytes;
using test::Cached;
using test::NoEnvironment;
using test::Options;
using test::ReadWhole;
using test::ScratchFolder;
using test::SmallHttpServer;
using test::SmallRequest;

TEST_CASE("a second pass, and a daemon that is started again, ask for no range") {
  const ScratchFolder folder;
  const std::string object = Bytes((40 << 20) + 123);
  std::atomic<int> ranges{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (request.Header("range") != "bytes=0-0") ++ranges;
    return AnswerRange(request, object, "\"one\"");
  });
  for (int start = 0; start < 2; ++start) {
    RemoteFileSystem files(LocalFileSystem(), Cached(folder), NoEnvironment());
    REQUIRE(files.status().ok());
    auto& counted = dynamic_cast<JoinedFileSystem&>(files.CountedFor("p"));
    CHECK(!counted.numbers());
    for (int pass = 0; pass < 2; ++pass) {
      const int before = ranges;
      auto file = counted.Open(server.url() + "/a");
      REQUIRE(file.ok());
      const absl::StatusOr<std::string> read = ReadWhole(**file, 1 << 20);
      REQUIRE(read.ok());
      CHECK(*read == object);
      if (start + pass > 0) CHECK(ranges == before);
    }
    REQUIRE(counted.numbers());
    CHECK(counted.numbers()->bytes == (start == 0 ? object.size() : 0));
    CHECK(counted.numbers()->cached_bytes == (start == 0 ? 1 : 2) * object.size());
  }
}

TEST_CASE(
    "with a folder for half of the data the second pass asks for half, and a plan says for what") {
  const ScratchFolder folder;
  constexpr int kObjects = 8;
  const std::string object = Bytes(4 << 20);
  std::atomic<int> ranges{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (request.Header("range") != "bytes=0-0") ++ranges;
    return AnswerRange(request, object, "\"one\"");
  });
  RemoteOptions options = Cached(folder);
  options.cache_bytes = 17 << 20;
  // As if it had taken two hours to read the last object. Some of it may still be written.
  const auto make_old = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(options.cache_folder)) {
      std::error_code is_gone;
      const auto used = std::filesystem::last_write_time(entry.path(), is_gone);
      if (is_gone) continue;
      std::filesystem::last_write_time(entry.path(), used - std::chrono::hours(2), is_gone);
    }
  };
  const auto pass = [&](FileSystem& files) {
    const int before = ranges;
    for (int i = 0; i < kObjects; ++i) {
      const auto listed = files.List(absl::StrCat(server.url(), "/", i));
      REQUIRE(listed.ok());
      const auto file = files.OpenListed(listed->front());
      REQUIRE(file.ok());
      REQUIRE(ReadWhole(**file, 1 << 20).value_or("") == object);
      make_old();
    }
    return ranges - before;
  };
  for (const bool is_planned : {true, false}) {
    std::filesystem::remove_all(options.cache_folder);
    RemoteFileSystem all(LocalFileSystem(), options, NoEnvironment());
    auto& files = dynamic_cast<JoinedFileSystem&>(all.CountedFor("p"));
    std::vector<ListedFile> planned;
    for (int i = 0; i < kObjects; ++i) {
      const auto listed = files.List(absl::StrCat(server.url(), "/", i));
      REQUIRE(listed.ok());
      planned.push_back(listed->front());
    }
    const std::shared_ptr<void> needed = is_planned ? files.Need(planned) : nullptr;
    CHECK((needed != nullptr) == is_planned);
    const int first = pass(files);
    const int second = pass(files);
    INFO(first << " requests, then " << second);
    // Some may have been asked for once more, because they were slow.
    CHECK(first >= 2 * kObjects);
    if (is_planned) CHECK(second <= first * 6 / 10);
    if (!is_planned) CHECK(second > first * 6 / 10);
  }
}

TEST_CASE("a strong tag stands for an object's ends where it is trusted, and nothing else does") {
  const std::string object = Bytes(1000);
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (request.target == "/weak") return AnswerRange(request, object, "W/\"one\"");
    return AnswerRange(request, object, absl::StrCat("\"", request.target.substr(1, 1), "\""));
  });
  for (const bool trusts : {true, false}) {
    RemoteOptions options = Options();
    options.trusts_etags = trusts;
    RemoteFileSystem all(LocalFileSystem(), options, NoEnvironment());
    auto& files = dynamic_cast<JoinedFileSystem&>(all.CountedFor("p"));
    const auto tag = [&](const std::string& name) {
      const auto listed = files.List(server.url() + name);
      REQUIRE(listed.ok());
      return files.TrustedTag(listed->front());
    };
    const std::optional<uint64_t> one = tag("/one");
    CHECK(one.has_value() == trusts);
    CHECK(one == tag("/other"));
    CHECK((one != tag("/third")) == trusts);
    CHECK(!tag("/weak"));
    CHECK(!files.TrustedTag({"/a/file", 10, {}}));
    CHECK(!files.TrustedTag({server.url() + "/unknown", 10, {}}));
  }
}

TEST_CASE("an object that was replaced is fetched, and one without a tag is never kept") {
  const ScratchFolder folder;
  std::string object = Bytes(3 << 20);
  std::string tag = "\"one\"";
  std::atomic<int> ranges{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (request.Header("range") != "bytes=0-0") ++ranges;
    std::string answer = AnswerRange(request, object, tag);
    if (request.target == "/untagged") {
      const size_t line = answer.find("ETag: ");
      answer.erase(line, answer.find("\r\n", line) + 2 - line);
    }
    return answer;
  });
  const auto read = [&](const std::string& name) {
    RemoteFileSystem files(LocalFileSystem(), Cached(folder), NoEnvironment());
    auto file = files.Open(server.url() + name);
    REQUIRE(file.ok());
    return ReadWhole(**file, 1 << 20).value_or("");
  };
  CHECK(read("/a") == object);
  const int first = ranges;
  CHECK(read("/a") == object);
  CHECK(ranges == first);
  object[5] = '?';
  tag = "\"two\"";
  CHECK(read("/a") == object);
  CHECK(ranges > first);
  const int untagged = ranges;
  CHECK(read("/untagged") == object);
  const int once = ranges - untagged;
  CHECK(read("/untagged") == object);
  CHECK(ranges - untagged == 2 * once);
}

// An object that is there at once.
class Object final : public RequestMaker {
 public:
  explicit Object(std::string address) : address_(std::move(address)) {
    state_.size = 1 << 20;
    state_.etag = "\"one\"";
  }
  std::optional<absl::StatusOr<HttpRequest>> Make(uint64_t, uint64_t, bool,
                                                  std::function<void()>) override {
    return std::nullopt;
  }
  const ObjectState& state() const override { return state_; }
  const std::string& shown() const override { return address_; }

 private:
  const std::string address_;
  ObjectState state_;
};

struct AtOnce final : RangeSource {
  void Fetch(RangeJob job) override { job.done(absl::OkStatus()); }
};

RangeJob PageOf(const std::shared_ptr<RequestMaker>& object, uint64_t page,
                std::function<void(absl::Status)> done) {
  RangeJob job;
  job.maker = object;
  job.offset = page * DiskCache::kPageBytes;
  job.bytes = DiskCache::kPageBytes;
  job.to = std::shared_ptr<uint8_t>(new uint8_t[job.bytes](), std::default_delete<uint8_t[]>());
  job.is_wanted = true;
  job.done = std::move(done);
  return job;
}

TEST_CASE("what has come is handed out though others read from the folder without an end") {
  const ScratchFolder folder;
  auto cache = DiskCache::Open(folder / "cache", 64 << 20);
  REQUIRE(cache.ok());
  AtOnce network;
  const auto known = std::make_shared<Object>("http://a/known");
  const auto other = std::make_shared<Object>("http://a/other");
  std::atomic<bool> is_over{false};
  std::atomic<int> fetched{0};
  constexpr int kPages = 4 * CachedRanges::kWritesMax;
  std::promise<void> all;
  {
    CachedRanges ranges(*std::move(cache), network);
    // More of them than there are threads: something to read is always there.
    const std::function<void(absl::Status)> again = [&](absl::Status) {
      if (!is_over) ranges.Fetch(PageOf(known, 0, again));
    };
    for (int i = 0; i < 16; ++i) again(absl::OkStatus());
    for (int page = 0; page < kPages; ++page) {
      ranges.Fetch(PageOf(other, page, [&](absl::Status) {
        if (++fetched == kPages) all.set_value();
      }));
    }
    CHECK(all.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    is_over = true;
  }
  CHECK(fetched == kPages);
}

TEST_CASE("a cache folder for which the system gives no threads is not looked at") {
  const ScratchFolder folder;
  auto cache = DiskCache::Open(folder / "cache", 64 << 20);
  REQUIRE(cache.ok());
  AtOnce network;
  std::unique_ptr<CachedRanges> ranges;
  {
    const test::NoMoreThreads none;
    ranges = std::make_unique<CachedRanges>(*std::move(cache), network);
  }
  bool is_done = false;
  ranges->Fetch(PageOf(std::make_shared<Object>("http://a/known"), 0,
                       [&is_done](const absl::Status& status) { is_done = status.ok(); }));
  CHECK(is_done);
}

TEST_CASE("an end while ranges are looked for and fetched tells all who wait") {
  const ScratchFolder folder;
  const std::string object = Bytes(20 << 20);
  const SmallHttpServer server(
      [&](const SmallRequest& request) { return AnswerRange(request, object, "\"one\""); });
  for (int round = 0; round < 20; ++round) {
    RemoteFileSystem files(LocalFileSystem(), Cached(folder), NoEnvironment());
    auto file = files.Open(server.url() + "/a");
    REQUIRE(file.ok());
    (*file)->WillNeed(0, 1 << 20);
    for (uint64_t at = 0; at < object.size(); at += 2 << 20) (*file)->WillNeed(at, 100'000);
  }
}

}  // namespace
}  // namespace penstock
