// Objects that are fetched into a cache folder before anybody reads them.
#include "io/remote/fetch_to_disk.h"

#include <atomic>
#include <string>

#include "absl/strings/match.h"
#include "base/stop_flag.h"
#include "tests/remote/remote_reads.h"
#include "tests/remote/small_http_server.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::Answer;
using test::AnswerRange;
using test::Bytes;
using test::Cached;
using test::NoEnvironment;
using test::ReadWhole;
using test::ScratchFolder;
using test::SmallHttpServer;
using test::SmallRequest;

TEST_CASE("what was fetched is read without a range, and fetched once") {
  const ScratchFolder folder;
  const std::string object = Bytes((40 << 20) + 123);
  std::atomic<int> ranges{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (request.Header("range") != "bytes=0-0") ++ranges;
    return AnswerRange(request, request.target == "/empty" ? "" : object, "\"one\"");
  });
  for (const bool is_first : {true, false}) {
    uint64_t last = 0;
    const auto fetched = FetchToDisk(
        {server.url() + "/a", server.url() + "/empty", server.url() + "/a"}, Cached(folder),
        NoEnvironment(), [&](uint64_t done, uint64_t, uint64_t total, const std::string&) {
          CHECK(total == object.size());
          CHECK(done >= last);
          last = done;
        });
    INFO(fetched.status());
    REQUIRE(fetched.ok());
    REQUIRE(fetched->size() == 2);
    CHECK((*fetched)[0].bytes == object.size());
    CHECK((*fetched)[0].kept_bytes == object.size());
    CHECK((*fetched)[0].fetched_bytes == (is_first ? object.size() : 0));
    CHECK((*fetched)[0].status.ok());
    CHECK((*fetched)[1].kept_bytes == 0);
    CHECK((*fetched)[1].status.ok());
    CHECK(last == object.size());
  }
  CHECK(ranges == 6);
  RemoteFileSystem files(LocalFileSystem(), Cached(folder), NoEnvironment());
  auto file = files.Open(server.url() + "/a");
  REQUIRE(file.ok());
  CHECK(ReadWhole(**file, 1 << 20).value_or("") == object);
  CHECK(ranges == 6);
}

TEST_CASE("what has no room, no tag or no rights is told, and the others are fetched") {
  const ScratchFolder folder;
  const std::string object = Bytes(10 << 20);
  const SmallHttpServer server([&](const SmallRequest& request) {
    const bool is_head = request.Header("range") == "bytes=0-0";
    if (request.target == "/refused" && !is_head) return Answer("403 Forbidden", "", "");
    std::string answer = AnswerRange(request, object, "\"one\"");
    if (request.target == "/untagged") {
      const size_t line = answer.find("ETag: ");
      answer.erase(line, answer.find("\r\n", line) + 2 - line);
    }
    return answer;
  });
  RemoteOptions options = Cached(folder);
  options.cache_bytes = 14 << 20;
  const auto fetched = FetchToDisk({server.url() + "/a", server.url() + "/b",
                                    server.url() + "/refused", server.url() + "/untagged"},
                                   options, NoEnvironment(),
                                   [](uint64_t, uint64_t, uint64_t, const std::string&) {});
  INFO(fetched.status());
  REQUIRE(fetched.ok());
  REQUIRE(fetched->size() == 4);
  const uint64_t kept = (*fetched)[0].kept_bytes + (*fetched)[1].kept_bytes;
  CHECK(kept >= 8 << 20);
  CHECK(kept <= options.cache_bytes);
  CHECK((*fetched)[0].status.ok());
  CHECK((*fetched)[1].status.ok());
  CHECK(absl::IsPermissionDenied((*fetched)[2].status));
  CHECK(!(*fetched)[3].has_tag);
  CHECK((*fetched)[3].fetched_bytes == 0);
  // Where nothing matches, nothing is fetched.
  CHECK(!FetchToDisk({"s3://bucket/none"}, options, NoEnvironment(),
                     [](uint64_t, uint64_t, uint64_t, const std::string&) {})
             .ok());
}

TEST_CASE("who is stopped keeps what has come") {
  const ScratchFolder folder;
  const std::string object = Bytes(80 << 20);
  std::atomic<bool> stop{false};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (absl::StartsWith(request.Header("range"), "bytes=67108864-")) stop = true;
    return AnswerRange(request, object, "\"one\"");
  });
  {
    const StopFlag::Scope scope(&stop);
    const auto fetched = FetchToDisk({server.url() + "/a"}, Cached(folder), NoEnvironment(),
                                     [](uint64_t, uint64_t, uint64_t, const std::string&) {});
    CHECK(absl::IsCancelled(fetched.status()));
  }
  const auto fetched = FetchToDisk({server.url() + "/a"}, Cached(folder), NoEnvironment(),
                                   [](uint64_t, uint64_t, uint64_t, const std::string&) {});
  REQUIRE(fetched.ok());
  CHECK((*fetched)[0].kept_bytes == object.size());
  CHECK((*fetched)[0].fetched_bytes < object.size());
}

}  // namespace
}  // namespace penstock
