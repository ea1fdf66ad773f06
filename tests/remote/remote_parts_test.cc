// The parts that need no server: addresses, encoding, lists, globs, numbers of requests.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/http/aimd.h"
#include "io/http/first_bytes.h"
#include "io/http/http_message.h"
#include "io/http/retry_budget.h"
#include "io/http/uri_encode.h"
#include "io/remote/object_glob.h"
#include "io/remote/object_store.h"
#include "io/remote/remote_environment.h"
#include "io/remote/remote_places.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

bool May(const char* text, Reach reach) {
  sockaddr_storage storage{};
  auto* const in = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const in6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
    in->sin_family = AF_INET;
  } else {
    REQUIRE(inet_pton(AF_INET6, text, &in6->sin6_addr) == 1);
    in6->sin6_family = AF_INET6;
  }
  return MayConnect(reinterpret_cast<sockaddr&>(storage), reach);
}

TEST_CASE("an address names a scheme, a bucket or host, and an object") {
  struct Case {
    const char* text;
    const char* bucket;  // null: refused
    const char* key;     // or a part of the message
  };
  const Case kCases[] = {
      {"s3://bucket/a/b.tfrecord", "bucket", "a/b.tfrecord"},
      {"s3://bucket/a b?x#y%20", "bucket", "a b?x#y%20"},
      {"s3://bucket//../a", "bucket", "/../a"},
      {"gs://my_bucket.example/o", "my_bucket.example", "o"},
      {"https://host.example:8443/a%20b/c", "host.example:8443", "a%20b/c"},
      {"http://[::1]:80/a", "[::1]:80", "a"},
      {"s3://bucket", nullptr, "object's name"},
      {"s3://bucket/", nullptr, "object's name"},
      {"s3:///key", nullptr, "bucket's name"},
      {"s3://b^d/key", nullptr, "bucket's name"},
      {"https://user:secret@host/a", nullptr, "names no user"},
      {"https://host/a?X-Amz-Signature=secret", nullptr, "query"},
      {"https://host/a#secret", nullptr, "without #"},
      {"https://host/a b", nullptr, "encoded"},
      {"ftp://host/a", nullptr, "expected http://"},
      {"file:///a", nullptr, "write the path alone"},
      {"az://container/a", nullptr,
       "az:// is not read yet: Azure's storage is for a later release"},
      {"abfss://container@account.dfs.core.windows.net/a", nullptr, "abfss:// is not read yet"},
  };
  for (const Case& one : kCases) {
    INFO(one.text);
    const absl::StatusOr<RemoteUrl> url = ParseRemoteUrl(one.text);
    CHECK(url.ok() == (one.bucket != nullptr));
    if (url.ok()) {
      CHECK(url->bucket == one.bucket);
      CHECK(url->key == one.key);
      CHECK(url->text() == one.text);
    } else {
      CHECK(absl::StrContains(url.status().message(), one.key));
      CHECK(!absl::StrContains(url.status().message(), "secret"));
    }
  }
}

TEST_CASE("everything but letters, digits and -_.~ is encoded") {
  CHECK(EncodePath("a/b c+d=e&f*g%h\xc3\xbc~") == "a/b%20c%2Bd%3De%26f%2Ag%25h%C3%BC~");
  CHECK(EncodeQuery("a/b") == "a%2Fb");
  CHECK(DecodeUri("a%2Fb+c%zz%4", true) == "a/b c%zz%4");
  CHECK(DecodeUri("a+b", false) == "a+b");
}

TEST_CASE("what a spec names reaches no loopback, link-local or metadata address") {
  struct Case {
    const char* address;
    bool is_public, is_loopback;
  };
  const Case kCases[] = {
      {"93.184.216.34", true, true},
      {"10.0.0.5", true, true},
      {"2606:4700::1", true, true},
      {"127.0.0.1", false, true},
      {"127.255.0.9", false, true},
      {"::1", false, true},
      {"::ffff:127.0.0.1", false, true},
      {"169.254.169.254", false, false},
      {"::ffff:169.254.169.254", false, false},
      {"64:ff9b::a9fe:a9fe", false, false},
      {"2002:a9fe:a9fe::1", false, false},
      {"64:ff9b::7f00:1", false, true},
      {"64:ff9b:1::a9fe:a9fe", false, false},
      {"168.63.129.16", false, false},
      {"fd20:ce::254", false, false},
      {"fe80::1", false, false},
      {"fd00:ec2::254", false, false},
      {"0.0.0.0", false, false},
      {"::", false, false},
      {"224.0.0.1", false, false},
      {"255.255.255.255", false, false},
      {"100.100.100.200", false, false},
      {"ff02::1", false, false},
  };
  for (const Case& one : kCases) {
    INFO(one.address);
    CHECK(May(one.address, Reach::kPublic) == one.is_public);
    CHECK(May(one.address, Reach::kLoopback) == one.is_loopback);
    CHECK(May(one.address, Reach::kAnywhere));
  }
}

TEST_CASE("no address leads out of the prefix that has a server or credentials of its own") {
  RemoteOptions options;
  options.prefixes.resize(2);
  options.prefixes[0].prefix = "http://data.example/public/";
  options.prefixes[0].endpoint = "http://127.0.0.1:9000";
  options.prefixes[1].prefix = "s3://";
  Environment environment;
  environment.variable = [](const std::string&) { return std::string(); };
  RemotePlaces places(options, environment);
  const auto place_of = [&places](const std::string& address) {
    return places.PlaceOf(*ParseRemoteUrl(address));
  };
  REQUIRE(place_of("http://data.example/public/a").ok());
  CHECK((*place_of("http://data.example/public/a"))->endpoint == "http://127.0.0.1:9000");
  for (const char* const out :
       {"http://data.example/public/../secret", "http://data.example/public/%2e%2E/secret",
        "http://data.example/public/a/..%5c../secret"})
    CHECK(absl::IsPermissionDenied(place_of(out).status()));
  // Elsewhere dots are a key's own.
  CHECK(place_of("http://data.example/other/../a").ok());
  CHECK(place_of("s3://bucket/a/../b").ok());
}

TEST_CASE("a Content-Range is read strictly") {
  const std::optional<ContentRange> range = ParseContentRange("bytes 5-9/100");
  REQUIRE(range);
  CHECK(range->first == 5);
  CHECK(range->last == 9);
  CHECK(range->total == 100);
  CHECK(ParseContentRange("bytes */7")->is_unsatisfied);
  CHECK(!ParseContentRange("bytes 5-9/*")->total);
  for (const char* const bad :
       {"", "5-9/100", "bytes 9-5/100", "bytes 5-9", "bytes 5-100/100", "bytes a-b/c"})
    CHECK(!ParseContentRange(bad));
}

TEST_CASE("a head of very many headers is not kept whole") {
  HttpResponse response;
  TakeHeaderLine("etag: \"one\"\r\n", &response);
  for (int i = 0; i < 100'000; ++i) TakeHeaderLine("a:\r\n", &response);
  CHECK(response.headers.size() == 256);
  CHECK(response.Header("etag") == "\"one\"");
}

TEST_CASE("an object is as long as its head says, and not as a part of it is") {
  HttpResponse response;
  response.headers = {{"content-range", "bytes 0-0/300"}, {"content-length", "1"}};
  CHECK(DescribeHead(response, "a")->size == 300);
  response.headers = {{"content-range", "bytes 0-0/*"}, {"content-length", "1"}};
  CHECK(absl::IsUnimplemented(DescribeHead(response, "a").status()));
  response.headers = {{"content-length", "7"}};
  CHECK(DescribeHead(response, "a")->size == 7);
  // Behind such an end there is no number.
  response.headers = {{"content-range", "bytes 0-0/18446744073709551615"}};
  CHECK(absl::IsDataLoss(DescribeHead(response, "a").status()));
  response.headers = {{"content-length", "18446744073709551615"}};
  CHECK(absl::IsDataLoss(DescribeHead(response, "a").status()));
}

TEST_CASE("a region that a server names is a name") {
  HttpResponse response;
  response.headers = {{"x-amz-bucket-region", "eu-west-1"}};
  CHECK(S3Store().RegionIn(response) == "eu-west-1");
  response.headers = {{"x-amz-bucket-region", "x.host.example/"}};
  CHECK(S3Store().RegionIn(response).empty());
}

TEST_CASE("globs of objects are those of a shell, and ** goes through folders") {
  CHECK(MatchesGlob("a/*.gz", "a/b.gz"));
  CHECK(!MatchesGlob("a/*.gz", "a/b/c.gz"));
  CHECK(!MatchesGlob("a/*", "a/.hidden"));
  CHECK(MatchesGlob("a/[b-d]?", "a/c1"));
  CHECK(MatchesGlob("a/**/*.gz", "a/b/c/d.gz"));
  CHECK(MatchesGlob("a/**/*.gz", "a/d.gz"));
  CHECK(!MatchesGlob("a/**/*.gz", "b/d.gz"));
  CHECK(MatchesGlob("**/b/**/c", "a/b/b/d/c"));
  CHECK(!MatchesGlob("**/b/**/c", "a/b/.d/c"));
  CHECK(MatchesGlob("**/.d/**", ".d/c"));
  CHECK(!MatchesGlob("a/**", "a/.hidden"));
  // As many ways as there are to read it, it is over at once.
  std::string deep, many;
  for (int i = 0; i < 200; ++i) absl::StrAppend(&deep, "a/");
  for (int i = 0; i < 60; ++i) absl::StrAppend(&many, "**/a/");
  CHECK(MatchesGlob(many + "x", deep + "x"));
  CHECK(!MatchesGlob(many + "x", deep + "y"));
  CHECK(LiteralPrefix("a/b-*/c") == "a/b-");
  const absl::StatusOr<std::vector<std::string>> choices = ExpandBraces("{a,b{1,2}}-*");
  REQUIRE(choices.ok());
  CHECK(choices->size() == 3);
  CHECK(!ExpandBraces("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}").ok());
}

TEST_CASE("a list of S3 is XML with names that are encoded, and nothing else is taken for one") {
  const std::string list =
      "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>1/x=</NextContinuationToken>"
      "<Contents><Key>a%2Bb+c%0A</Key><Size>17</Size><ETag>&quot;t&quot;</ETag></Contents>"
      "<Contents><Key>e</Key><Size>1</Size><ETag>u</ETag></Contents>"
      "<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes></ListBucketResult>";
  const absl::StatusOr<ListPage> page = S3Store().ParseList(list, "s3://b/");
  REQUIRE(page.ok());
  REQUIRE(page->objects.size() == 2);
  CHECK(page->objects[1].state.etag == "\"u\"");
  CHECK(page->objects[0].key == "a+b c\n");
  CHECK(page->objects[0].state.size == 17);
  CHECK(page->objects[0].state.etag == "\"t\"");
  CHECK(page->folders == std::vector<std::string>{"d/"});
  CHECK(page->next == "1/x=");
  // Entities that grow are not even read.
  const std::string bomb =
      "<!DOCTYPE a [<!ENTITY x \"xxxxxxxx\"><!ENTITY y \"&x;&x;&x;\">]>"
      "<ListBucketResult><Contents><Key>&y;</Key><Size>1</Size></Contents></ListBucketResult>";
  const absl::StatusOr<ListPage> grown = S3Store().ParseList(bomb, "s3://b/");
  if (grown.ok()) CHECK(grown->objects[0].key == "&y;");
  for (const char* const bad :
       {"", "<html>hello</html>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        // Cut.
        "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents>",
        "<ListBucketResult><Contents><Key>a</Key><Size>18446744073709551615</Size></Contents>"
        "</ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>1</Size><ETag>t&#13;&#10;X: y</ETag>"
        "</Contents></ListBucketResult>"})
    CHECK(S3Store().ParseList(bad, "s3://b/").status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("a list of GCS is JSON") {
  const absl::StatusOr<ListPage> page = GcsStore().ParseList(
      R"({"items":[{"name":"a","size":"5","generation":"12"}],"prefixes":["d/"],"nextPageToken":"n"})",
      "gs://b/");
  REQUIRE(page.ok());
  CHECK(page->objects[0].state.size == 5);
  CHECK(page->objects[0].state.generation == "12");
  CHECK(page->next == "n");
  CHECK(!GcsStore().ParseList("<html>", "gs://b/").ok());
  CHECK(!GcsStore().ParseList(R"({"items":[{"name":"a"}]})", "gs://b/").ok());
  CHECK(!GcsStore()
             .ParseList(R"({"items":[{"name":"a","size":"18446744073709551615"}]})", "gs://b/")
             .ok());
  CHECK(
      !GcsStore()
           .ParseList(R"({"items":[{"name":"a","size":"5","generation":"1\r\nX: y"}]})", "gs://b/")
           .ok());
}

TEST_CASE("requests grow while that brings more, and are halved where the server says so") {
  Aimd aimd(16, 256);
  int64_t now_ns = 1;
  // A server whose rate grows with the requests.
  for (int window = 0; window < 40; ++window) {
    const int limit = aimd.limit();
    for (int i = 0; i < limit; ++i) aimd.Arrived(1 << 20, now_ns += 300'000'000 / limit, true);
  }
  CHECK(aimd.limit() == 256);
  aimd.TooMuch(now_ns);
  CHECK(aimd.limit() == 128);
  // Once for those that were under way together.
  aimd.TooMuch(now_ns + 1);
  CHECK(aimd.limit() == 128);
  for (int i = 0; i < 20; ++i) aimd.TooMuch(now_ns += 1'000'000'000);
  CHECK(aimd.limit() == Aimd::kLeast);
}

// What Aimd makes of a server: `latency_ns` to the first byte of each answer, `bytes_per_ns` for
// all together, the time that each takes drawn to within a fifth.
struct TriedServer {
  int limit = 0;
  int64_t all_ns = 0;  // when as many as there may be were allowed; 0: never
};
TriedServer TryServer(int begin, int64_t latency_ns, double bytes_per_ns, uint64_t bytes,
                      int64_t until_ns) {
  Aimd aimd(begin, Aimd::kMost);
  TriedServer tried;
  std::mt19937 dice(1);
  std::uniform_real_distribution<double> share(0.8, 1.2);
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> ends;
  double free_at_ns = 0;
  for (int64_t now_ns = 1; now_ns < until_ns;) {
    while (static_cast<int>(ends.size()) < aimd.limit()) {
      free_at_ns = std::max<double>(static_cast<double>(now_ns + latency_ns), free_at_ns) +
                   static_cast<double>(bytes) / bytes_per_ns * share(dice);
      ends.push(static_cast<int64_t>(free_at_ns));
    }
    now_ns = ends.top();
    const bool is_full = static_cast<int>(ends.size()) >= aimd.limit();
    ends.pop();
    aimd.Arrived(bytes, now_ns, is_full);
    if (tried.all_ns == 0 && aimd.limit() == Aimd::kMost) tried.all_ns = now_ns;
  }
  tried.limit = aimd.limit();
  return tried;
}

TEST_CASE("small requests to a far server are soon as many as there may be") {
  const TriedServer tried = TryServer(32, 50'000'000, 1, 4096, 10'000'000'000);
  CHECK(tried.limit == Aimd::kMost);
  CHECK(tried.all_ns > 0);
  CHECK(tried.all_ns < 1'500'000'000);
}

TEST_CASE("where a few requests bring all that there is they stay few") {
  for (const int begin : {8, 32}) {
    INFO(begin);
    const TriedServer tried = TryServer(begin, 300'000, 0.7, 8 << 20, 60'000'000'000);
    CHECK(tried.limit <= 2 * begin);
  }
}

TEST_CASE("retries are a tenth of what goes well, and pauses grow with full jitter") {
  RetryBudget budget(10);
  int taken = 0;
  while (budget.Take(1)) ++taken;
  CHECK(taken == 10);
  for (int i = 0; i < 25; ++i) budget.Good();
  CHECK(budget.Take(1));
  CHECK(budget.Take(1));
  CHECK(!budget.Take(1));
  CHECK(budget.Take(1'500'000'000));
  std::mt19937 dice(7);
  int64_t longest = 0;
  for (int i = 0; i < 1000; ++i) longest = std::max(longest, RetryPauseNs(1, dice));
  CHECK(longest <= 200'000'000);
  CHECK(longest > 150'000'000);
  CHECK(RetryPauseNs(40, dice) <= 10'000'000'000);
}

TEST_CASE(
    "a second request is sent after three times the median, and for 5 % of requests at most") {
  FirstBytes first;
  CHECK(first.HedgeAfterNs() == 0);
  for (int i = 0; i < 20; ++i) first.Took(50'000'000);
  CHECK(first.HedgeAfterNs() == 150'000'000);
  for (int i = 0; i < 64; ++i) first.Took(1'000'000);
  CHECK(first.HedgeAfterNs() == 100'000'000);
  CHECK(FirstBytes::MayHedge(0, 0));
  CHECK(!FirstBytes::MayHedge(1, 1));
  CHECK(FirstBytes::MayHedge(5, 100));
  CHECK(!FirstBytes::MayHedge(6, 100));
}

TEST_CASE(
    "a daemon of several users reads the addresses that its environment names, and no others") {
  std::string allow;
  Environment environment;
  environment.variable = [&allow](const std::string& name) {
    return name == "PENSTOCK_REMOTE_ALLOW" ? allow : "";
  };
  CHECK(RemoteOptionsOf(environment, /*has_owner=*/false)->is_off);
  CHECK(!RemoteOptionsOf(environment, /*has_owner=*/true)->is_off);
  CHECK(RemoteOptionsOf(environment, /*has_owner=*/true)->reach == Reach::kLoopback);
  allow = "s3://bucket/train";
  absl::StatusOr<RemoteOptions> options = RemoteOptionsOf(environment, false);
  REQUIRE(options.ok());
  CHECK(options->reach == Reach::kPublic);
  options->is_ambient = false;
  RemotePlaces places(*options, environment);
  CHECK(places.PlaceOf({Scheme::kS3, "bucket", "train/a"}).ok());
  CHECK(absl::IsPermissionDenied(places.PlaceOf({Scheme::kS3, "bucket", "training/a"}).status()));
  CHECK(absl::IsPermissionDenied(places.PlaceOf({Scheme::kHttp, "169.254.169.254", "a"}).status()));
  for (const char* const outside :
       {"train/../other/a", "train/%2e%2E/other/a", "train/..%2fother/a", "train/./a"}) {
    INFO(outside);
    CHECK(absl::IsPermissionDenied(places.PlaceOf({Scheme::kS3, "bucket", outside}).status()));
  }
  CHECK(places.PlaceOf({Scheme::kS3, "bucket", "train/a..b/.c"}).ok());
  allow = "bucket";
  CHECK(absl::IsInvalidArgument(RemoteOptionsOf(environment, false).status()));
}

TEST_CASE("a process' environment says whether ETags are trusted") {
  std::string trust;
  Environment environment;
  environment.variable = [&trust](const std::string& name) {
    return name == "PENSTOCK_REMOTE_TRUST_ETAGS" ? trust : "";
  };
  CHECK(!RemoteOptionsOf(environment, true)->trusts_etags);
  trust = "1";
  CHECK(RemoteOptionsOf(environment, true)->trusts_etags);
  trust = "0";
  CHECK(!RemoteOptionsOf(environment, true)->trusts_etags);
  trust = "yes";
  const absl::Status refused = RemoteOptionsOf(environment, true).status();
  CHECK(refused.message() == "PENSTOCK_REMOTE_TRUST_ETAGS: expected 0 or 1, found yes");
}

}  // namespace
}  // namespace penstock
