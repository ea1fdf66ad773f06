// Files at addresses against servers that do well, badly, or something else than they were asked
// for.
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "absl/strings/match.h"
#include "io/http/uri_encode.h"
#include "io/remote/remote_file.h"
#include "io/remote/remote_file_system.h"
#include "tests/remote/remote_reads.h"
#include "tests/remote/small_http_server.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::Answer;
using test::AnswerRange;
using test::Awaited;
using test::Bytes;
using test::NoEnvironment;
using test::Options;
using test::ReadWhole;
using test::SmallHttpServer;
using test::SmallRequest;

TEST_CASE("an object over HTTP is read in any pieces, and asked for in few requests") {
  const std::string object = Bytes((20 << 20) + 17);
  std::atomic<int> requests{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    ++requests;
    return AnswerRange(request, object, "\"one\"");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
  const absl::StatusOr<std::vector<ListedFile>> listed = files.List(server.url() + "/a.bin");
  REQUIRE(listed.ok());
  REQUIRE(listed->size() == 1);
  CHECK((*listed)[0].size_bytes == object.size());
  CHECK(requests == 1);
  auto file = files.OpenListed((*listed)[0]);
  REQUIRE(file.ok());
  CHECK(requests == 1);
  const absl::StatusOr<std::string> read = ReadWhole(**file, 100'000);
  REQUIRE(read.ok());
  CHECK(*read == object);
  // The first 256 KiB, and blocks of 8 MiB; the head was one.
  CHECK(requests <= 1 + 1 + 3);
  CHECK(files.stats().bytes == object.size());
}

TEST_CASE("bytes that have not arrived are asked for without waiting, and single records alone") {
  const std::string object = Bytes(20 << 20);
  std::mutex mutex;
  std::string last_range;
  const SmallHttpServer server([&](const SmallRequest& request) {
    std::lock_guard<std::mutex> lock(mutex);
    last_range = request.Header("range");
    return AnswerRange(request, object, "\"one\"");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
  auto file = files.Open(server.url() + "/a.bin");
  REQUIRE(file.ok());
  auto& far = dynamic_cast<FarFile&>(**file);
  std::string out(1000, '\0');
  const absl::Span<uint8_t> span(reinterpret_cast<uint8_t*>(out.data()), out.size());
  CHECK(!far.HasFetched(10'000'001, 1000));
  CHECK(!far.ReadFetched(10'000'001, span));
  Awaited arrived;
  far.FetchAlone(10'000'001, 1000, Completion(&arrived));
  REQUIRE(arrived.Wait().ok());
  CHECK(far.HasFetched(10'000'001, 1000));
  {
    std::lock_guard<std::mutex> lock(mutex);
    CHECK(last_range == "bytes=9998336-10002431");
  }
  const std::optional<absl::StatusOr<size_t>> read = far.ReadFetched(10'000'001, span);
  REQUIRE(read);
  REQUIRE(read->ok());
  CHECK(out == object.substr(10'000'001, 1000));
}

TEST_CASE("who cancels does not wait for the server") {
  std::mutex mutex;
  mutex.lock();
  const std::string object = Bytes(1 << 20);
  {
    const SmallHttpServer server([&](const SmallRequest& request) {
      if (request.Header("range") != "bytes=0-0") std::lock_guard<std::mutex> lock(mutex);
      return AnswerRange(request, object, "\"one\"");
    });
    RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
    auto file = files.Open(server.url() + "/a.bin");
    REQUIRE(file.ok());
    Awaited arrived;
    (*file)->Fetch(0, 1000, Completion(&arrived));
    arrived.Cancel();
    CHECK(absl::IsCancelled(arrived.Wait()));
    // As one that leaves while its pipeline is being stopped.
    Awaited stopped(/*is_stopped=*/true);
    (*file)->Fetch(0, 1000, Completion(&stopped));
    CHECK(absl::IsCancelled(stopped.Wait()));
    mutex.unlock();
  }
}

TEST_CASE(
    "fault 29: what passes is tried again from the byte that was reached, what does not is told") {
  const std::string object = Bytes(300'000);
  struct Case {
    const char* name;
    // The answer to the `number`th request for bytes; "": a sound one.
    std::function<std::string(int number, const SmallRequest& request)> answer;
    absl::StatusCode code;
    const char* message;
  };
  const auto good = absl::StatusCode::kOk;
  const auto first_only = [](std::string answer) {
    return [answer](int number, const SmallRequest&) { return number == 0 ? answer : ""; };
  };
  const auto always = [](std::string answer) {
    return [answer](int, const SmallRequest&) { return answer; };
  };
  const Case kCases[] = {
      {"sound", always(""), good, ""},
      {"500 once", first_only(Answer("500 Internal Server Error", "", "no")), good, ""},
      {"503 SlowDown once", first_only(Answer("503 Slow Down", "", "<Code>SlowDown</Code>")), good,
       ""},
      {"429 once", first_only(Answer("429 Too Many Requests", "", "")), good, ""},
      {"closed without an answer", first_only("HTTP/1.1"), good, ""},
      {"cut in the middle",
       [&](int number, const SmallRequest& request) {
         const std::string whole = AnswerRange(request, object, "\"one\"");
         return number == 0 ? whole.substr(0, whole.size() - 100'000) : "";
       },
       good, ""},
      {"reset in the middle",
       [&](int number, const SmallRequest& request) {
         const std::string whole = AnswerRange(request, object, "\"one\"");
         return number == 0 ? whole.substr(0, whole.size() - 100'000) + test::kReset : "";
       },
       good, ""},
      {"reset without an answer", first_only(test::kReset), good, ""},
      {"HTTP/1.0",
       [&](int, const SmallRequest& request) {
         std::string whole = AnswerRange(request, object, "\"one\"");
         return "HTTP/1.0" + whole.substr(sizeof("HTTP/1.0") - 1);
       },
       good, ""},
      // Of which only the connection's end would tell the length.
      {"a body too long",
       [&](int, const SmallRequest& request) {
         return absl::StrCat("HTTP/1.1 206 Partial Content\r\nConnection: close\r\n",
                             "ETag: \"one\"\r\nContent-Range: bytes ",
                             request.Header("range").substr(sizeof("bytes=") - 1), "/",
                             object.size(), "\r\n\r\n", object, "more");
       },
       absl::StatusCode::kDataLoss, "more bytes than it said"},
      {"a length that is not the range's",
       [&](int, const SmallRequest& request) {
         return Answer("206 Partial Content",
                       absl::StrCat("Content-Range: bytes ",
                                    request.Header("range").substr(sizeof("bytes=") - 1), "/",
                                    object.size(), "\r\n"),
                       object + "more");
       },
       absl::StatusCode::kDataLoss, "another range"},
      {"404", always(Answer("404 Not Found", "", "")), absl::StatusCode::kNotFound,
       "no such object"},
      {"412", always(Answer("412 Precondition Failed", "", "")),
       absl::StatusCode::kFailedPrecondition, "was replaced since"},
      {"416", always(Answer("416 Range Not Satisfiable", "", "")),
       absl::StatusCode::kFailedPrecondition, "shorter than when it was listed"},
      {"403", always(Answer("403 Forbidden", "", "<Code>AccessDenied</Code>")),
       absl::StatusCode::kPermissionDenied, "AccessDenied"},
      {"redirect", always(Answer("302 Found", "Location: http://169.254.169.254/\r\n", "")),
       absl::StatusCode::kFailedPrecondition, "elsewhere"},
      {"200 with the whole object",
       [&](int, const SmallRequest& request) {
         return request.Header("range") == "bytes=0-262143"
                    ? Answer("200 OK", "ETag: \"one\"\r\n", object)
                    : "";
       },
       absl::StatusCode::kUnimplemented, "gives no ranges"},
      {"200 with the right Content-Range",
       [&](int, const SmallRequest& request) {
         std::string whole = AnswerRange(request, object, "\"one\"");
         return "HTTP/1.1 200 OK" + whole.substr(whole.find("\r\n"));
       },
       good, ""},
      {"another range",
       always(Answer("206 Partial Content", "Content-Range: bytes 1-5/300000\r\n", "12345")),
       absl::StatusCode::kDataLoss, "another range"},
      {"another size",
       always(Answer("206 Partial Content", "Content-Range: bytes 0-4/77\r\n", "12345")),
       absl::StatusCode::kFailedPrecondition, "another size"},
      {"another tag",
       [&](int, const SmallRequest& request) {
         SmallRequest free = request;
         free.head = "\r\nrange: " + request.Header("range") + "\r\n";
         return AnswerRange(free, object, "\"two\"");
       },
       absl::StatusCode::kFailedPrecondition, "another ETag"},
      {"another tag from the second range on",
       [&](int number, const SmallRequest& request) {
         if (number == 0) return std::string();
         SmallRequest free = request;
         free.head = "\r\nrange: " + request.Header("range") + "\r\n";
         return AnswerRange(free, object, "\"two\"");
       },
       absl::StatusCode::kFailedPrecondition, "another ETag"},
      {"compressed",
       always(Answer("206 Partial Content",
                     "Content-Encoding: gzip\r\nContent-Range: bytes 0-4/300000\r\n", "12345")),
       absl::StatusCode::kUnimplemented, "compresses"},
  };
  for (const Case& one : kCases) {
    INFO(one.name);
    std::atomic<int> number{0};
    std::atomic<uint64_t> sent{0};
    const SmallHttpServer server([&](const SmallRequest& request) {
      if (request.Header("range") == "bytes=0-0") return AnswerRange(request, object, "\"one\"");
      std::string answer = one.answer(number++, request);
      if (answer.empty()) answer = AnswerRange(request, object, "\"one\"");
      sent += answer.size();
      return answer;
    });
    RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
    auto file = files.Open(server.url() + "/a.bin");
    REQUIRE(file.ok());
    const absl::StatusOr<std::string> read = ReadWhole(**file, 64 << 10);
    CHECK(read.status().code() == one.code);
    if (read.ok()) {
      CHECK(*read == object);
      // Nothing was sent twice.
      CHECK(files.stats().bytes == object.size());
    } else {
      INFO(read.status());
      CHECK(absl::StrContains(read.status().message(), one.message));
      CHECK(absl::StrContains(read.status().message(), "/a.bin"));
    }
  }
}

TEST_CASE("S3: lists by pages, held to tags, signed, and no secret in any message") {
  std::map<std::string, std::string> objects;
  for (int i = 0; i < 5; ++i) objects["train/part-" + std::to_string(i)] = Bytes(1000 + i);
  objects["train/x+y z"] = Bytes(10);
  objects["train/deeper/part-9"] = Bytes(10);
  std::mutex mutex;
  std::string heads;
  int lists = 0;
  std::atomic<bool> replaced{false};
  const SmallHttpServer server([&](const SmallRequest& request) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      heads += request.head;
      lists += absl::StrContains(request.target, "list-type=2");
    }
    if (!absl::StrContains(request.Header("authorization"), "akid/"))
      return Answer("403 Forbidden", "", "<Code>AccessDenied</Code>");
    if (absl::StrContains(request.target, "list-type=2")) {
      const size_t begin = request.target.find("prefix=") + 7;
      const std::string prefix = DecodeUri(request.target.substr(begin), false);
      const size_t token = request.target.find("continuation-token=");
      size_t skip = token == std::string::npos ? 0 : std::stoul(request.target.substr(token + 19));
      std::string body = "<ListBucketResult><EncodingType>url</EncodingType>";
      size_t shown = 0, at = 0;
      bool is_cut = false;
      for (const auto& [key, bytes] : objects) {
        if (!absl::StartsWith(key, prefix) || key.find('/', prefix.size()) != std::string::npos)
          continue;
        if (at++ < skip) continue;
        if (shown++ == 2) {
          is_cut = true;
          break;
        }
        body += "<Contents><Key>" + EncodePath(key) + "</Key><Size>" +
                std::to_string(bytes.size()) + "</Size><ETag>\"t\"</ETag></Contents>";
      }
      if (is_cut)
        body += "<IsTruncated>true</IsTruncated><NextContinuationToken>" +
                std::to_string(skip + 2) + "</NextContinuationToken>";
      return Answer("200 OK", "", body + "</ListBucketResult>");
    }
    const std::string key = DecodeUri(request.target.substr(std::string("/bucket/").size()), false);
    if (!objects.contains(key)) return Answer("404 Not Found", "", "");
    return AnswerRange(request, objects[key], replaced ? "\"other\"" : "\"t\"");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(server.url(), /*has_keys=*/true),
                         NoEnvironment());
  const auto listed = files.List("s3://bucket/train/part-*");
  INFO(listed.status());
  REQUIRE(listed.ok());
  REQUIRE(listed->size() == 5);
  CHECK(lists == 3);
  for (const ListedFile& one : *listed) {
    auto file = files.OpenListed(one);
    REQUIRE(file.ok());
    const auto read = ReadWhole(**file, 700);
    REQUIRE(read.ok());
    CHECK(*read == objects[one.path.substr(std::string("s3://bucket/").size())]);
  }
  const auto odd = files.List("s3://bucket/train/x+y z");
  REQUIRE(odd.ok());
  CHECK((*odd)[0].version == (*listed)[0].version);
  CHECK(absl::IsNotFound(files.List("s3://bucket/train/none-*").status()));
  // One that is replaced behind the list is an error and no mixture.
  replaced = true;
  RemoteFileSystem later(LocalFileSystem(), Options(server.url(), true), NoEnvironment());
  auto replaced_file = later.OpenListed((*listed)[0]);
  CHECK(absl::IsFailedPrecondition(replaced_file.status()));
  {
    std::lock_guard<std::mutex> lock(mutex);
    CHECK(absl::StrContains(heads, "x-amz-content-sha256: unsigned-payload"));
    CHECK(absl::StrContains(heads, "if-match: \"t\""));
    CHECK(!absl::StrContains(heads, "verysecretkey"));
  }
  RemoteFileSystem nobody(LocalFileSystem(), Options(server.url()), NoEnvironment());
  const absl::Status refused = nobody.List("s3://bucket/train/part-*").status();
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(!absl::StrContains(refused.message(), "VERYSECRETKEY"));
}

TEST_CASE("a server without ranges is told of before a long object has come") {
  for (const size_t size : {size_t{1000}, size_t{8} << 20}) {
    INFO(size);
    const std::string object = Bytes(size);
    const SmallHttpServer server([&](const SmallRequest&) { return Answer("200 OK", "", object); });
    RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
    const absl::Status refused = files.Open(server.url() + "/a").status();
    CHECK(absl::IsUnimplemented(refused));
    CHECK(absl::StrContains(refused.message(), "gives no ranges"));
  }
}

TEST_CASE("a spec's addresses do not reach this machine in a daemon of several users") {
  const SmallHttpServer server(
      [](const SmallRequest& request) { return AnswerRange(request, "secret", "\"one\""); });
  RemoteOptions options = Options();
  options.reach = Reach::kPublic;
  RemoteFileSystem files(LocalFileSystem(), options, NoEnvironment());
  for (std::string url :
       {server.url(), std::string("http://localhost") + server.url().substr(16)}) {
    const absl::Status refused = files.Open(url + "/a").status();
    INFO(refused);
    CHECK(absl::IsPermissionDenied(refused));
  }
  options.unguarded = {server.url() + "/"};
  RemoteFileSystem open(LocalFileSystem(), options, NoEnvironment());
  CHECK(open.Open(server.url() + "/a").ok());
}

TEST_CASE("memory stays within its limit, however long the object") {
  const std::string object = Bytes(60 << 20);
  const SmallHttpServer server(
      [&](const SmallRequest& request) { return AnswerRange(request, object, "\"one\""); });
  RemoteOptions options = Options();
  options.memory_bytes = 16 << 20;
  RemoteFileSystem files(LocalFileSystem(), options, NoEnvironment());
  auto file = files.Open(server.url() + "/a.bin");
  REQUIRE(file.ok());
  for (int pass = 0; pass < 2; ++pass) {
    uint64_t most = 0;
    std::string out(1 << 20, '\0');
    for (size_t at = 0; at < object.size(); at += out.size()) {
      const auto read = (*file)->ReadAt(at, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
      REQUIRE(read.ok());
      REQUIRE(out == object.substr(at, out.size()));
      most = std::max(most, files.pool_bytes());
    }
    CHECK(most <= options.memory_bytes + SpanPool::kBlockBytes);
  }
}

TEST_CASE("fault 29: more files than there is memory for a block of each are all read") {
  constexpr size_t kFiles = 100;
  const std::string object = Bytes(1 << 20);
  const SmallHttpServer server(
      [&](const SmallRequest& request) { return AnswerRange(request, object, "\"one\""); });
  RemoteOptions options = Options();
  options.memory_bytes = 16 << 20;
  RemoteFileSystem files(LocalFileSystem(), options, NoEnvironment());
  std::vector<std::shared_ptr<RandomAccessFile>> open;
  for (size_t i = 0; i < kFiles; ++i) {
    auto file = files.Open(absl::StrCat(server.url(), "/", i));
    REQUIRE(file.ok());
    open.push_back(*std::move(file));
  }
  std::string out(128 << 10, '\0');
  uint64_t most = 0;
  for (size_t at = 0; at < object.size(); at += out.size()) {
    for (const auto& file : open) {
      const auto read = file->ReadAt(at, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
      REQUIRE(read.ok());
      REQUIRE(out == object.substr(at, out.size()));
      most = std::max(most, files.pool_bytes());
    }
  }
  CHECK(most <= options.memory_bytes + SpanPool::kBlockBytes);
}

}  // namespace
}  // namespace penstock
