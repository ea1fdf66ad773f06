// What goes wrong between a daemon and an object store, each thing by a server that does it.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/stop_flag.h"
#include "io/credentials/aws_sources.h"
#include "io/credentials/credential_keeper.h"
#include "io/http/perform.h"
#include "io/http/range_fetcher.h"
#include "io/http/uri_encode.h"
#include "tests/remote/remote_reads.h"
#include "tests/remote/small_http_server.h"
#include "tests/support/catch.h"
#include "tests/support/no_more_threads.h"

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

// Holds those who come until it is opened.
class Gate {
 public:
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

TEST_CASE(
    "fault 29: a range that is slow to begin is asked for once more, and the first is dropped") {
  const std::string object = Bytes(4 << 20);
  std::mutex mutex;
  std::map<std::string, int> asked;
  Gate gate;
  const SmallHttpServer server([&](const SmallRequest& request) {
    const std::string range = request.Header("range");
    int number;
    {
      std::lock_guard<std::mutex> lock(mutex);
      number = asked[range]++;
    }
    // One of them never begins, unless the test is over.
    if (range == "bytes=2097152-2101247" && number == 0) gate.Pass();
    return AnswerRange(request, object, "\"one\"");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
  auto& counted = dynamic_cast<JoinedFileSystem&>(files.CountedFor("p"));
  auto file = counted.Open(server.url() + "/a");
  REQUIRE(file.ok());
  auto& far = dynamic_cast<FarFile&>(**file);
  // Before the first ones nobody knows what is slow.
  for (uint64_t at = 0; at < 20; ++at) {
    Awaited arrived;
    far.FetchAlone(at * 65536, 4096, Completion(&arrived));
    REQUIRE(arrived.Wait().ok());
  }
  Awaited arrived;
  far.FetchAlone(2 << 20, 4096, Completion(&arrived));
  CHECK(arrived.Wait().ok());
  std::string out(4096, '\0');
  const auto read = far.ReadFetched(2 << 20, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
  REQUIRE(read);
  CHECK(out == object.substr(2 << 20, 4096));
  CHECK(files.stats().hedges == 1);
  REQUIRE(counted.numbers());
  CHECK(counted.numbers()->hedges == 1);
  CHECK(counted.numbers()->requests == 22);
  CHECK(counted.numbers()->misses == 21);
  CHECK(counted.numbers()->waiting == 0);
  gate.Open();
}

TEST_CASE("fault 29: files end while their server hangs, and nobody waits for it") {
  const std::string object = Bytes(1 << 20);
  Gate gate;
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (request.Header("range") != "bytes=0-0") gate.Pass();
    return AnswerRange(request, object, "\"one\"");
  });
  Awaited arrived;
  {
    RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
    auto file = files.Open(server.url() + "/a");
    REQUIRE(file.ok());
    (*file)->Fetch(0, 1000, Completion(&arrived));
  }
  CHECK(absl::IsCancelled(arrived.Wait()));
  gate.Open();
}

TEST_CASE("fault 29: credentials whose source hangs hold up no end") {
  Gate gate;
  const SmallHttpServer server([&](const SmallRequest&) {
    gate.Pass();
    return Answer("200 OK", "", "{}");
  });
  Environment environment = NoEnvironment();
  environment.variable = [url = server.url()](const std::string& name) {
    const bool is_named =
        name == "AWS_CONTAINER_CREDENTIALS_FULL_URI" || name == "AWS_EC2_METADATA_SERVICE_ENDPOINT";
    return is_named ? url : "";
  };
  const CredentialSource kSources[] = {
      [&environment] { return AwsFromContainer(environment); },
      [] { return AwsFromProcess("sleep 1000"); },
      [&environment] { return AwsFromMachine(environment); },
      // It closes its output, and lives on.
      [] { return AwsFromProcess("exec >&-; sleep 1000"); },
  };
  for (const CredentialSource& source : kSources) {
    std::atomic<int> told{0};
    {
      CredentialKeeper keeper(source);
      CHECK(!keeper.Ask([&told] { ++told; }));
    }
    CHECK(told == 1);
  }
  gate.Open();
}

TEST_CASE("fault 29: who is stopped does not wait for credentials whose source hangs") {
  Gate gate;
  CredentialKeeper keeper([&gate]() -> absl::StatusOr<Credentials> {
    gate.Pass();
    return Anonymous();
  });
  {
    std::atomic<bool> stop{true};
    const StopFlag::Scope scope(&stop);
    CHECK(absl::IsCancelled(keeper.Wait().status()));
  }
  gate.Open();
  CHECK(keeper.Wait().ok());
}

// Requests for an object, and of which it was told that the one before was refused.
class Asks final : public RequestMaker {
 public:
  Asks(std::string url, uint64_t size) : url_(std::move(url)) { state_.size = size; }
  std::optional<absl::StatusOr<HttpRequest>> Make(uint64_t offset, uint64_t bytes, bool refused,
                                                  std::function<void()>) override {
    told.push_back(refused);
    HttpRequest request;
    request.url = url_;
    request.reach = Reach::kLoopback;
    request.headers.push_back(absl::StrCat("Range: bytes=", offset, "-", offset + bytes - 1));
    return absl::StatusOr<HttpRequest>(std::move(request));
  }
  const ObjectState& state() const override { return state_; }
  const std::string& shown() const override { return url_; }

  std::vector<bool> told;

 private:
  const std::string url_;
  ObjectState state_;
};

absl::Status FetchWhole(const std::shared_ptr<Asks>& maker, uint64_t bytes, std::string* found) {
  const std::shared_ptr<uint8_t> memory(new uint8_t[bytes], std::default_delete<uint8_t[]>());
  std::promise<absl::Status> fetched;
  RangeFetcher fetcher;
  RangeJob job;
  job.maker = maker;
  job.bytes = bytes;
  job.to = memory;
  job.is_wanted = true;
  job.done = [&fetched](absl::Status status) { fetched.set_value(std::move(status)); };
  fetcher.Fetch(std::move(job));
  absl::Status status = fetched.get_future().get();
  found->assign(reinterpret_cast<const char*>(memory.get()), bytes);
  return status;
}

TEST_CASE("fault 29: a range whose bytes are all there is not asked for again, however it ends") {
  const std::string object = Bytes(100);
  std::atomic<int> asked{0};
  const SmallHttpServer server([&](const SmallRequest&) {
    ++asked;
    // The last chunk does not come.
    return absl::StrCat(
        "HTTP/1.1 206 Partial Content\r\nConnection: close\r\nContent-Range: bytes 0-99/100\r\n"
        "Transfer-Encoding: chunked\r\n\r\n64\r\n",
        object, "\r\n");
  });
  std::string found;
  const absl::Status status =
      FetchWhole(std::make_shared<Asks>(server.url() + "/a", 100), 100, &found);
  INFO(status);
  CHECK(status.ok());
  CHECK(found == object);
  CHECK(asked == 1);
}

TEST_CASE("small ranges are asked for together from the beginning on, and of long ones a few") {
  constexpr uint64_t kSmall = 4096, kLong = 300'000;
  const std::string object = Bytes(40 * kLong);
  for (const auto& [bytes, together] : {std::pair{kSmall, 32}, std::pair{kLong, 4}}) {
    INFO(bytes);
    Gate gate;
    const SmallHttpServer server([&](const SmallRequest& request) {
      gate.Pass();
      return AnswerRange(request, object, "");
    });
    const auto maker = std::make_shared<Asks>(server.url() + "/a", object.size());
    RangeFetcher fetcher;
    std::atomic<int> good{0}, ended{0};
    for (uint64_t i = 0; i < 40; ++i) {
      RangeJob job;
      job.maker = maker;
      job.offset = i * bytes;
      job.bytes = bytes;
      job.to.reset(new uint8_t[bytes], std::default_delete<uint8_t[]>());
      job.done = [&](const absl::Status& status) {
        good += status.ok();
        ++ended;
      };
      fetcher.Fetch(std::move(job));
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto is_so = [&, many = static_cast<uint64_t>(together)] {
      const FetcherStats stats = fetcher.stats();
      return stats.under_way == many && stats.queued == 40 - many;
    };
    while (!is_so() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    CHECK(is_so());
    gate.Open();
    while (ended < 40) std::this_thread::yield();
    CHECK(good == 40);
  }
}

TEST_CASE("fault 29: that credentials were refused is told once, and others are not dropped") {
  const std::string object = Bytes(100);
  std::atomic<int> asked{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    switch (asked++) {
      case 0:
        return Answer("403 Forbidden", "", "");
      case 1:
        return Answer("503 Service Unavailable", "", "");
      default:
        return AnswerRange(request, object, "\"one\"");
    }
  });
  const auto maker = std::make_shared<Asks>(server.url() + "/a", 100);
  std::string found;
  const absl::Status status = FetchWhole(maker, 100, &found);
  INFO(status);
  CHECK(status.ok());
  CHECK(found == object);
  CHECK(maker->told == std::vector<bool>{false, true, false});
}

TEST_CASE("fault 29: an empty object of which there is no range is empty") {
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (request.target == "/short")
      return Answer("416 Range Not Satisfiable", "Content-Range: bytes */7\r\n", "");
    return Answer("416 Range Not Satisfiable", "Content-Range: bytes */0\r\n", "<html>");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
  const auto listed = files.List(server.url() + "/empty");
  INFO(listed.status());
  REQUIRE(listed.ok());
  CHECK((*listed)[0].size_bytes == 0);
  auto file = files.OpenListed((*listed)[0]);
  REQUIRE(file.ok());
  uint8_t byte;
  const auto read = (*file)->ReadAt(0, {&byte, 1});
  REQUIRE(read.ok());
  CHECK(*read == 0);
  CHECK(absl::IsFailedPrecondition(files.Open(server.url() + "/short").status()));
}

TEST_CASE("fault 29: a bucket in another region is asked there, also for ranges") {
  const std::string object = Bytes(400'000);
  for (const char* const refusal : {"400 Bad Request", "301 Moved Permanently"}) {
    INFO(refusal);
    std::atomic<int> wrong{0};
    const SmallHttpServer server([&](const SmallRequest& request) {
      if (!absl::StrContains(request.Header("authorization"), "/eu-west-1/s3/")) {
        ++wrong;
        return Answer(refusal, "x-amz-bucket-region: eu-west-1\r\n",
                      "<Code>AuthorizationHeaderMalformed</Code>");
      }
      return AnswerRange(request, object, "\"one\"");
    });
    RemoteFileSystem files(LocalFileSystem(), Options(server.url(), /*has_keys=*/true),
                           NoEnvironment());
    auto file = files.Open("s3://bucket/a");
    INFO(file.status());
    REQUIRE(file.ok());
    const auto read = ReadWhole(**file, 100'000);
    REQUIRE(read.ok());
    CHECK(*read == object);
    CHECK(wrong == 1);
  }
  // Nobody is sent round in a circle.
  const SmallHttpServer server([&](const SmallRequest&) {
    return Answer("400 Bad Request", "x-amz-bucket-region: us-east-1\r\n", "<Code>Other</Code>");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(server.url(), true), NoEnvironment());
  const absl::Status refused = files.Open("s3://bucket/a").status();
  INFO(refused);
  // The answer to a question for the head alone has no text.
  CHECK(absl::StrContains(refused.message(), "another region: HTTP 400"));
}

TEST_CASE("fault 29: a redirect to another host is told, and that host is never asked") {
  const std::string object = Bytes(100'000);
  std::atomic<int> asked{0};
  const SmallHttpServer other([&](const SmallRequest& request) {
    ++asked;
    return AnswerRange(request, object, "\"one\"");
  });
  for (const bool is_looked_at_first : {true, false}) {
    const SmallHttpServer server([&](const SmallRequest& request) {
      const bool is_look = request.method == "HEAD" || request.Header("range") == "bytes=0-0";
      if (is_look && !is_looked_at_first) return AnswerRange(request, object, "\"one\"");
      return Answer("307 Temporary Redirect",
                    absl::StrCat("Location: ", other.url(), request.target, "\r\n"), "");
    });
    for (const bool is_s3 : {true, false}) {
      RemoteFileSystem files(LocalFileSystem(), Options(server.url(), /*has_keys=*/true),
                             NoEnvironment());
      const auto file = files.Open(is_s3 ? "s3://bucket/a" : server.url() + "/a");
      CHECK(file.ok() != is_looked_at_first);
      const absl::Status status = file.ok() ? ReadWhole(**file, 100'000).status() : file.status();
      INFO(status);
      CHECK(absl::IsFailedPrecondition(status));
      CHECK(absl::StrContains(status.message(), "elsewhere"));
    }
  }
  CHECK(asked == 0);
}

TEST_CASE("fault 29: a page of a list that is cut is asked for again, and no list is endless") {
  std::atomic<int> lists{0};
  std::atomic<bool> is_circle{false};
  const SmallHttpServer server([&](const SmallRequest& request) {
    const int number = lists++;
    const bool is_second = absl::StrContains(request.target, "continuation-token=B");
    const std::string next = is_second ? "C" : "B";
    std::string body = absl::StrCat("<ListBucketResult><Contents><Key>a", is_second,
                                    "</Key><Size>5</Size><ETag>\"t\"</ETag>"
                                    "</Contents>");
    if (is_circle || !is_second)
      absl::StrAppend(&body, "<IsTruncated>true</IsTruncated><NextContinuationToken>", next,
                      "</NextContinuationToken>");
    const std::string answer = Answer("200 OK", "", body + "</ListBucketResult>");
    return number == 1 ? answer.substr(0, answer.size() - 30) : answer;
  });
  RemoteFileSystem files(LocalFileSystem(), Options(server.url(), /*has_keys=*/true),
                         NoEnvironment());
  const auto listed = files.List("s3://bucket/*");
  INFO(listed.status());
  REQUIRE(listed.ok());
  CHECK(listed->size() == 2);
  CHECK(lists == 3);
  is_circle = true;
  const absl::Status endless = files.List("s3://bucket/*").status();
  INFO(endless);
  CHECK(absl::IsDataLoss(endless));
  CHECK(absl::StrContains(endless.message(), "round in a circle"));
  // B, C, and B again.
  CHECK(lists == 6);
}

TEST_CASE("fault 29: with a proxy the daemon asks that, and names the object there") {
  const std::string object = Bytes(300'000);
  std::mutex mutex;
  std::string targets;
  const SmallHttpServer proxy([&](const SmallRequest& request) {
    std::lock_guard<std::mutex> lock(mutex);
    targets += request.target + " ";
    return AnswerRange(request, object, "\"one\"");
  });
  RemoteOptions options = Options();
  options.reach = Reach::kPublic;
  options.proxy = proxy.url();
  RemoteFileSystem files(LocalFileSystem(), options, NoEnvironment());
  // A name that no resolver has.
  auto file = files.Open("http://data.invalid/a");
  INFO(file.status());
  REQUIRE(file.ok());
  CHECK(ReadWhole(**file, 100'000).value_or("") == object);
  std::lock_guard<std::mutex> lock(mutex);
  CHECK(absl::StartsWith(targets, "http://data.invalid/a "));
}

TEST_CASE("fault 29: a proxy that is not there is told of without its password") {
  RemoteOptions options = Options();
  options.proxy = "http://user:VERYSECRETKEY@127.0.0.1:1";
  RemoteFileSystem files(LocalFileSystem(), options, NoEnvironment());
  const absl::Status refused = files.Open("http://data.invalid/a").status();
  CHECK(!refused.ok());
  CHECK(!absl::StrContains(refused.ToString(), "VERYSECRETKEY"));
}

TEST_CASE("fault 29: a clock that is off is told once, with how far") {
  const std::string object = Bytes(1 << 20);
  const auto date = [](int64_t ahead_s) {
    return absl::StrCat("Date: ",
                        absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT",
                                         absl::Now() - absl::Seconds(ahead_s), absl::UTCTimeZone()),
                        "\r\n");
  };
  const std::string skewed = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
  std::atomic<int> requests{0};
  // An answer to HEAD has no body: the server's time alone tells.
  const SmallHttpServer server([&](const SmallRequest& request) {
    ++requests;
    return Answer("403 Forbidden", date(3600), request.method == "HEAD" ? "" : skewed);
  });
  RemoteFileSystem files(LocalFileSystem(), Options(server.url(), /*has_keys=*/true),
                         NoEnvironment());
  const absl::Status opened = files.Open("s3://bucket/a").status();
  CHECK(absl::IsPermissionDenied(opened));
  CHECK(absl::StrContains(opened.message(), "the server refuses it: this machine's clock is 360"));
  CHECK(absl::StrContains(opened.message(), " seconds ahead of the server's: set it: HTTP 403"));
  requests = 0;
  const absl::Status listed = files.List("s3://bucket/*").status();
  INFO(listed);
  CHECK(absl::IsPermissionDenied(listed));
  CHECK(absl::StartsWith(listed.message(), "this machine's clock is 360"));
  CHECK(absl::StrContains(listed.message(), "RequestTimeTooSkewed"));
  // Two heads, as of any refusal, and a list, which is not tried with other credentials.
  CHECK(requests == 3);
  // A clock of a minute is no reason.
  const SmallHttpServer right([&](const SmallRequest&) {
    return Answer("403 Forbidden", date(-60), "<Error><Code>AccessDenied</Code></Error>");
  });
  RemoteFileSystem other(LocalFileSystem(), Options(right.url(), true), NoEnvironment());
  const absl::Status refused = other.Open("s3://bucket/a").status();
  CHECK(absl::StrContains(refused.message(), "look at the credentials, the clock and the rights"));
}

TEST_CASE("fault 29: credentials that end in the middle are asked for anew") {
  const std::string object = Bytes(20 << 20);
  std::atomic<int> ended{0}, heads{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (request.method == "HEAD" && heads++ == 0) return Answer("400 Bad Request", "", "");
    // The second block's.
    if (absl::StartsWith(request.Header("range"), "bytes=8388608-") && ended++ == 0)
      return Answer("400 Bad Request", "", "<Error><Code>ExpiredToken</Code></Error>");
    return AnswerRange(request, object, "\"one\"");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(server.url(), /*has_keys=*/true),
                         NoEnvironment());
  auto file = files.Open("s3://bucket/a");
  REQUIRE(file.ok());
  const auto read = ReadWhole(**file, 100'000);
  INFO(read.status());
  REQUIRE(read.ok());
  CHECK(*read == object);
  CHECK(ended == 2);
  CHECK(heads == 2);
}

TEST_CASE("fault 29: a name that no name server knows is told, for lists and in the middle") {
  HttpRequest request;
  request.url = "https://data.invalid/a";
  const absl::Status unknown = PerformOnce(request, "https://data.invalid/a").status();
  INFO(unknown);
  CHECK(absl::IsUnavailable(unknown));
  CHECK(absl::StartsWith(unknown.message(), "no name server knows the server's name"));
  CHECK(absl::StrContains(unknown.message(), "(https://data.invalid/a)"));
  // A name server that is away for a moment costs further tries only, until it is given up.
  class Requests final : public RequestMaker {
   public:
    std::optional<absl::StatusOr<HttpRequest>> Make(uint64_t, uint64_t, bool,
                                                    std::function<void()>) override {
      HttpRequest made;
      made.url = ++asked < 3 ? "http://data.invalid/a" : address;
      made.headers = {"Range: bytes=0-4095"};
      made.reach = Reach::kLoopback;
      return made;
    }
    const ObjectState& state() const override { return object_state; }
    const std::string& shown() const override { return name; }

    std::string address;
    std::atomic<int> asked{0};
    ObjectState object_state{4096, "\"one\"", "", ""};
    std::string name = "http://data.invalid/a";
  };
  const std::string object = Bytes(4096);
  const SmallHttpServer server(
      [&](const SmallRequest& asked) { return AnswerRange(asked, object, "\"one\""); });
  for (const bool comes_back : {true, false}) {
    RangeFetcher::Options options;
    options.give_up_ns = comes_back ? 60'000'000'000 : 1'000'000;
    RangeFetcher fetcher(options);
    auto maker = std::make_shared<Requests>();
    maker->address = comes_back ? server.url() + "/a" : "http://data.invalid/a";
    std::promise<absl::Status> done;
    RangeJob job;
    job.maker = maker;
    job.bytes = 4096;
    job.to = std::shared_ptr<uint8_t>(new uint8_t[4096], std::default_delete<uint8_t[]>());
    job.done = [&](absl::Status status) { done.set_value(std::move(status)); };
    fetcher.Fetch(std::move(job));
    const absl::Status status = done.get_future().get();
    INFO(status);
    CHECK(status.ok() == comes_back);
    if (!comes_back) CHECK(absl::StrContains(status.message(), "no name server knows"));
  }
}

TEST_CASE("fault 29: a server that fails for a while costs further tries, until it is given up") {
  const std::string object = Bytes(100);
  for (const bool comes_back : {true, false}) {
    std::atomic<int> asked{0};
    const SmallHttpServer server([&](const SmallRequest& request) {
      if (++asked <= 6 || !comes_back) return Answer("500 Internal Server Error", "", "");
      return AnswerRange(request, object, "\"one\"");
    });
    RangeFetcher::Options options;
    options.give_up_ns = comes_back ? 60'000'000'000 : 1'000'000;
    RangeFetcher fetcher(options);
    std::promise<absl::Status> done;
    RangeJob job;
    job.maker = std::make_shared<Asks>(server.url() + "/a", 100);
    job.bytes = 100;
    job.to = std::shared_ptr<uint8_t>(new uint8_t[100], std::default_delete<uint8_t[]>());
    job.is_wanted = true;
    job.done = [&](absl::Status status) { done.set_value(std::move(status)); };
    fetcher.Fetch(std::move(job));
    const absl::Status status = done.get_future().get();
    INFO(status);
    CHECK(status.ok() == comes_back);
    CHECK((asked == 7) == comes_back);
    if (!comes_back) CHECK(absl::StrContains(status.message(), "500"));
    if (!comes_back) CHECK(absl::StrContains(status.message(), "; given up after "));
  }
}

TEST_CASE("fault 29: keys with every odd byte are listed, and read by the name that they have") {
  std::map<std::string, std::string> objects;  // by their keys
  for (int byte = 1; byte < 256; ++byte)
    objects[absl::StrCat("train/", std::string(1, static_cast<char>(byte)), ".x")] = Bytes(10);
  for (const char* const key : {"train/../x", "train//x", "train/./x", "train/%2e%2e/x",
                                "train/a?b#c.x", "train/\xff\xfe.x"})
    objects[key] = Bytes(20);
  // No address names it.
  objects[std::string("train/\0.x", 10)] = Bytes(30);
  std::mutex mutex;
  std::map<std::string, int> read;
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (absl::StrContains(request.target, "list-type=2")) {
      std::string body = "<ListBucketResult><EncodingType>url</EncodingType>";
      for (const auto& [key, bytes] : objects) {
        absl::StrAppend(&body, "<Contents><Key>", EncodePath(key), "</Key><Size>", bytes.size(),
                        "</Size><ETag>\"t\"</ETag></Contents>");
      }
      return Answer("200 OK", "", body + "</ListBucketResult>");
    }
    const std::string key = DecodeUri(request.target.substr(std::string("/bucket/").size()), false);
    if (!objects.contains(key)) return Answer("404 Not Found", "", "");
    std::lock_guard<std::mutex> lock(mutex);
    ++read[key];
    return AnswerRange(request, objects[key], "\"t\"");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(server.url(), /*has_keys=*/true),
                         NoEnvironment());
  const auto listed = files.List("s3://bucket/train/**");
  INFO(listed.status());
  REQUIRE(listed.ok());
  size_t found = 0;
  for (const ListedFile& one : *listed) {
    const std::string key = one.path.substr(std::string("s3://bucket/").size());
    INFO(EncodePath(key));
    REQUIRE(objects.contains(key));
    auto file = files.OpenListed(one);
    if (absl::StrContains(key, '\0')) {
      CHECK(absl::IsInvalidArgument(file.status()));
      continue;
    }
    REQUIRE(file.ok());
    CHECK(ReadWhole(**file, 100).value_or("") == objects[key]);
    CHECK(read[key] == 1);
    ++found;
  }
  // A hidden one is none that a glob stands for, and is named.
  CHECK(found >= 250);
  const auto hidden = files.Open("s3://bucket/train/../x");
  REQUIRE(hidden.ok());
  CHECK(ReadWhole(**hidden, 100).value_or("") == objects["train/../x"]);
}

TEST_CASE("a list of 100,000 keys is 100 requests, and each object stands in it once") {
  constexpr size_t kKeys = 100'000, kOfPage = 1000;
  std::atomic<size_t> lists{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (!absl::StrContains(request.target, "list-type=2")) return Answer("404 Not Found", "", "");
    ++lists;
    const size_t token = request.target.find("continuation-token=");
    const size_t first =
        token == std::string::npos ? 0 : std::stoul(request.target.substr(token + 19));
    std::string body = "<ListBucketResult><EncodingType>url</EncodingType>";
    for (size_t i = first; i < first + kOfPage; ++i) {
      absl::StrAppend(&body, "<Contents><Key>train/", absl::Dec(i, absl::kZeroPad6), "</Key><Size>",
                      i, "</Size><ETag>\"t\"</ETag></Contents>");
    }
    if (first + kOfPage < kKeys) {
      absl::StrAppend(&body, "<IsTruncated>true</IsTruncated><NextContinuationToken>",
                      first + kOfPage, "</NextContinuationToken>");
    }
    return Answer("200 OK", "", body + "</ListBucketResult>");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(server.url(), /*has_keys=*/true),
                         NoEnvironment());
  const auto listed = files.List("s3://bucket/train/*");
  INFO(listed.status());
  REQUIRE(listed.ok());
  REQUIRE(listed->size() == kKeys);
  CHECK(lists == kKeys / kOfPage);
  for (size_t i = 0; i < kKeys; ++i) REQUIRE((*listed)[i].size_bytes == i);
  CHECK(listed->back().path == "s3://bucket/train/099999");
  // What was listed is opened without asking.
  CHECK(files.OpenListed(listed->front()).ok());
  CHECK(lists == kKeys / kOfPage);
}

TEST_CASE(
    "many addresses are asked for at a time, each once, and the first that is missing is told") {
  constexpr int kAtATime = 16;
  Gate gate;
  std::atomic<int> waiting{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    // Whoever asks one by one never gets here twice.
    if (++waiting == kAtATime) gate.Open();
    gate.Pass();
    if (absl::StartsWith(request.target, "/none")) return Answer("404 Not Found", "", "");
    return AnswerRange(request, request.target, "\"one\"");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
  std::vector<std::string> patterns;
  for (int i = 0; i < kAtATime; ++i) patterns.push_back(absl::StrCat(server.url(), "/", i));
  // One that stands there twice is asked for once, and told twice.
  patterns.push_back(patterns[3]);
  auto& joined = dynamic_cast<JoinedFileSystem&>(files.CountedFor("p"));
  auto listed = joined.ListEach(patterns);
  REQUIRE(listed.size() == patterns.size());
  for (size_t i = 0; i < patterns.size(); ++i) {
    REQUIRE(listed[i].ok());
    REQUIRE(listed[i]->size() == 1);
    CHECK((*listed[i])[0].path == patterns[i]);
  }
  CHECK(waiting == kAtATime);
  for (int i = 0; i < 200; ++i) patterns.push_back(absl::StrCat(server.url(), "/none", i));
  listed = joined.ListEach(patterns);
  for (int i = 0; i <= kAtATime; ++i) CHECK(listed[static_cast<size_t>(i)].ok());
  CHECK(absl::IsNotFound(listed[kAtATime + 1].status()));
  CHECK(absl::IsCancelled(listed.back().status()));
}

TEST_CASE("an index that is not there is looked for once, until its object is listed again") {
  std::atomic<int> looks{0};
  std::atomic<bool> is_there{false};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (!absl::EndsWith(request.target, kIndexSuffix))
      return AnswerRange(request, request.target, "\"one\"");
    ++looks;
    return is_there ? AnswerRange(request, "index", "\"two\"") : Answer("404 Not Found", "", "");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
  const std::string index = server.url() + "/folder/.a" + kIndexSuffix;
  for (int i = 0; i < 3; ++i) CHECK(absl::IsNotFound(files.Open(index).status()));
  CHECK(looks == 1);
  is_there = true;
  // The object beside it says nothing of this one.
  REQUIRE(files.List(server.url() + "/folder/b").ok());
  CHECK(absl::IsNotFound(files.Open(index).status()));
  REQUIRE(files.List(server.url() + "/folder/a").ok());
  CHECK(files.Open(index).ok());
  CHECK(looks == 2);
}

TEST_CASE("an index that comes while it is looked for is found by the next look") {
  Gate asked, listed;
  std::atomic<int> looks{0};
  const SmallHttpServer server([&](const SmallRequest& request) {
    if (!absl::EndsWith(request.target, kIndexSuffix))
      return AnswerRange(request, request.target, "\"one\"");
    if (looks++ > 0) return AnswerRange(request, "index", "\"two\"");
    asked.Open();
    listed.Pass();
    return Answer("404 Not Found", "", "");
  });
  RemoteFileSystem files(LocalFileSystem(), Options(), NoEnvironment());
  const std::string index = server.url() + "/folder/.a" + kIndexSuffix;
  auto first = std::async(std::launch::async, [&] { return files.Open(index).status(); });
  asked.Pass();
  // The object is listed before the answer comes that there is none.
  const bool is_listed = files.List(server.url() + "/folder/a").ok();
  listed.Open();
  CHECK(is_listed);
  CHECK(absl::IsNotFound(first.get()));
  CHECK(files.Open(index).ok());
  CHECK(looks == 2);
}

TEST_CASE("fault 29: a refusal is told once to who makes a request that is waited for") {
  std::atomic<int> asked{0};
  const SmallHttpServer server([&](const SmallRequest&) {
    switch (asked++) {
      case 0:
        return Answer("403 Forbidden", "", "");
      case 1:
        return Answer("503 Service Unavailable", "", "");
      default:
        return Answer("200 OK", "", "a");
    }
  });
  std::vector<bool> told;
  const auto answer = PerformPatiently("a", [&](bool refused) -> absl::StatusOr<HttpRequest> {
    told.push_back(refused);
    HttpRequest request;
    request.url = server.url() + "/a";
    request.reach = Reach::kLoopback;
    return request;
  });
  INFO(answer.status());
  CHECK(answer.ok());
  // Credentials that have come since are not thrown away with those that were refused.
  CHECK(told == std::vector<bool>{false, true, false});
}

TEST_CASE("a fetcher that gets no thread says so, and tries again when it is asked again") {
  const std::string object = Bytes(100);
  const SmallHttpServer server(
      [&](const SmallRequest& request) { return AnswerRange(request, object, "\"one\""); });
  const auto maker = std::make_shared<Asks>(server.url() + "/a", 100);
  const std::shared_ptr<uint8_t> memory(new uint8_t[100], std::default_delete<uint8_t[]>());
  RangeFetcher fetcher;
  const auto fetch = [&] {
    auto fetched = std::make_shared<std::promise<absl::Status>>();
    RangeJob job;
    job.maker = maker;
    job.bytes = 100;
    job.to = memory;
    job.is_wanted = true;
    job.done = [fetched](absl::Status status) { fetched->set_value(std::move(status)); };
    fetcher.Fetch(std::move(job));
    return fetched->get_future().get();
  };
  {
    const test::NoMoreThreads none;
    const absl::Status status = fetch();
    CHECK(absl::IsResourceExhausted(status));
    CHECK(absl::StrContains(status.message(), "no more threads"));
  }
  CHECK(fetch().ok());
}

}  // namespace
}  // namespace penstock
