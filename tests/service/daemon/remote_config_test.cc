// remote { } of the configuration.
#include "server/service/daemon/remote_config.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "ring/memory_limit.h"
#include "server/service/daemon/daemon_config.h"
#include "server/service/socket/settings.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

Environment Allowing(const std::string& allow) {
  Environment environment;
  environment.variable = [allow](const std::string& name) {
    return name == "PENSTOCK_REMOTE_ALLOW" ? allow : "";
  };
  return environment;
}

TEST_CASE("the configuration says what is read, and the environment only where it says nothing") {
  const Environment environment = Allowing("s3://other/");
  const auto empty = ParseDaemonConfig("", "c");
  REQUIRE(empty.ok());
  CHECK(RemoteOptionsOf(*empty, environment, false)->allowed ==
        std::vector<std::string>{"s3://other/"});
  const auto off = ParseDaemonConfig("remote {}", "c");
  REQUIRE(off.ok());
  CHECK(RemoteOptionsOf(*off, environment, /*has_owner=*/false)->is_off);
  const auto config = ParseDaemonConfig(
      R"(remote {
        allow: "s3://bucket/" allow: "https://data.example/"
        allow_local: "http://127.0.0.1/"
        place { prefix: "s3://bucket/" endpoint: "https://minio.example:9000" region: "eu-west-1"
                aws_key { access_key_id: "AKID" secret_access_key_file: "/etc/secret" } }
        place { prefix: "gs://" google_file: "/etc/gcs.json" }
        place { prefix: "s3://mine/" environment: true }
        memory_bytes: 33554432 proxy: "http://proxy.example:3128" authorities: "/etc/ca.pem"
        max_requests: 32 give_up_ms: 5000 cache_folder: "/var/cache/x" cache_bytes: 100000000
        trust_etags: true
      })",
      "c");
  INFO(config.status());
  REQUIRE(config.ok());
  const auto options = RemoteOptionsOf(*config, environment, /*has_owner=*/false);
  REQUIRE(options.ok());
  CHECK(!options->is_off);
  // What fits no place is asked without credentials.
  CHECK(!options->is_ambient);
  CHECK(options->reach == Reach::kPublic);
  CHECK(options->allowed == std::vector<std::string>{"s3://bucket/", "https://data.example/"});
  CHECK(options->unguarded == std::vector<std::string>{"http://127.0.0.1/"});
  REQUIRE(options->prefixes.size() == 3);
  CHECK(options->prefixes[0].endpoint == "https://minio.example:9000");
  CHECK(options->prefixes[0].region == "eu-west-1");
  CHECK(options->prefixes[0].access_key_id == "AKID");
  CHECK(options->prefixes[0].secret_access_key_file == "/etc/secret");
  CHECK(!options->prefixes[0].is_ambient);
  CHECK(options->prefixes[1].google_file == "/etc/gcs.json");
  CHECK(options->prefixes[2].is_ambient);
  CHECK(options->memory_bytes == 33554432);
  CHECK(options->proxy == "http://proxy.example:3128");
  CHECK(options->authorities == "/etc/ca.pem");
  CHECK(options->requests_max == 32);
  CHECK(options->give_up_ms == 5000);
  CHECK(options->cache_folder == "/var/cache/x");
  CHECK(options->cache_bytes == 100000000);
  CHECK(options->trusts_etags);
  const auto all = ParseDaemonConfig(R"(remote { allow: "*" })", "c");
  REQUIRE(all.ok());
  CHECK(RemoteOptionsOf(*all, environment, false)->allowed.empty());
  CHECK(!RemoteOptionsOf(*all, environment, false)->is_off);
  CHECK(!RemoteOptionsOf(*all, environment, false)->trusts_etags);
}

TEST_CASE("who writes to addresses: the owner, or whoever is below cache { roots }") {
  const auto rights = [](const char* text, bool has_owner) {
    const auto config = ParseDaemonConfig(text, "c");
    INFO(text << " " << config.status());
    REQUIRE(config.ok());
    const auto options = RemoteOptionsOf(*config, Allowing("*"), has_owner);
    REQUIRE(options.ok());
    return options->writes;
  };
  for (const std::string remote : {"", R"( remote { allow: "*" })"}) {
    CHECK(rights(remote.c_str(), true).all);
    CHECK(!rights(remote.c_str(), false).all);
    const std::string data = R"(data_roots: "/data")" + remote;
    CHECK(!rights(data.c_str(), true).all);
    const std::string roots = R"(cache { roots: "/c" roots: "s3://bucket/made" })" + remote;
    for (const bool has_owner : {false, true}) {
      const WriteRights found = rights(roots.c_str(), has_owner);
      CHECK(!found.all);
      CHECK(found.folders == std::vector<std::string>{"s3://bucket/made"});
    }
  }
  for (const char* const wrong : {"https://host.example/a", "s3://", "s3:///a", "made"}) {
    const auto config = ParseDaemonConfig("cache { roots: '" + std::string(wrong) + "' }", "c");
    INFO(wrong << " " << config.status());
    CHECK(
        absl::StrContains(config.status().message(), "cache.roots[0]: expected an absolute path"));
  }
}

TEST_CASE("fault 54: what remote { } has wrong is refused with its place, and no secret is shown") {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {R"(allow: "bucket")", "remote.allow[0]: expected a prefix of addresses"},
      {R"(allow_local: "/data")", "remote.allow_local[0]: expected a prefix"},
      {R"(place { prefix: "ftp://x/" })", "remote.place[0].prefix: expected a prefix"},
      {R"(allow: "az://container/")", "remote.allow[0]: az:// is not read yet: Azure's storage"},
      {R"(place { prefix: "s3://b/" endpoint: "minio:9000" })",
       "remote.place[0].endpoint: expected http://HOST:PORT"},
      {R"(place { prefix: "s3://b/" region: "x.evil.example/" })", "remote.place[0].region"},
      {R"(place { prefix: "gs://b/" aws_profile: "p" })", "begins with s3://"},
      {R"(place { prefix: "s3://b/" google_file: "/f" })", "begins with gs://"},
      {R"(place { prefix: "s3://b/" aws_key { access_key_id: "A" secret_access_key_file: "VERYSECRET" } })",
       "expected the absolute path of a file with the secret"},
      {R"(place { prefix: "s3://b/" aws_key { secret_access_key_file: "/f" } })",
       "aws_key.access_key_id: expected the key's name"},
      {R"(memory_bytes: 1000)", "remote.memory_bytes out of range"},
      {R"(proxy: "user:VERYSECRET@proxy")", "remote.proxy: expected http://HOST:PORT"},
      {R"(authorities: "ca.pem")", "remote.authorities: expected an absolute path"},
      {R"(max_requests: 1000)", "remote.max_requests out of range"},
      {R"(give_up_ms: 10)", "remote.give_up_ms out of range"},
      {R"(cache_folder: "x")", "remote.cache_folder: expected an absolute path"},
      {R"(cache_bytes: 10)", "remote.cache_bytes out of range"},
  };
  for (const auto& one : kCases) {
    INFO(one.text);
    const absl::Status status =
        ParseDaemonConfig(std::string("\nremote { ") + one.text + " }", "c").status();
    INFO(status);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), one.message));
    CHECK(absl::StartsWith(status.message(), "c:2:"));
    CHECK(!absl::StrContains(status.message(), "VERYSECRET"));
  }
}

TEST_CASE("a running daemon cannot take another remote { }") {
  Settings settings(*ParseDaemonConfig(R"(remote { allow: "s3://a/" })", "c"));
  CHECK(settings.Replace(*ParseDaemonConfig(R"(remote { allow: "s3://a/" })", "c")).ok());
  const absl::Status refused =
      settings.Replace(*ParseDaemonConfig(R"(remote { allow: "s3://b/" })", "c"));
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(), "remote"));
}

TEST_CASE("what is fetched ahead fits the control group") {
  test::ScratchFolder root;
  const auto write = [&root](const std::string& name, const std::string& text) {
    const std::filesystem::path file = root.path() + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  write("/proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 99999999 kB\n");
  write("/proc/self/cgroup", "0::/inner\n");
  write("/sys/fs/cgroup/inner/memory.max", "268435456\n");
  write("/sys/fs/cgroup/inner/memory.current", "0\n");
  const uint64_t at_hand = ring::ReadMemoryAtHand(root.path()).bytes;
  CHECK(at_hand == uint64_t{256} << 20);
  const auto empty = ParseDaemonConfig("", "c");
  const auto all = ParseDaemonConfig(R"(remote { allow: "*" })", "c");
  const auto named = ParseDaemonConfig(R"(remote { allow: "*" memory_bytes: 67108864 })", "c");
  REQUIRE((empty.ok() && all.ok() && named.ok()));
  const Environment environment = Allowing("*");
  CHECK(RemoteOptionsOf(*empty, environment, false, at_hand)->memory_bytes == 32 << 20);
  CHECK(RemoteOptionsOf(*all, environment, false, at_hand)->memory_bytes == 32 << 20);
  CHECK(RemoteOptionsOf(*named, environment, false, at_hand)->memory_bytes == 64 << 20);
  CHECK(RemoteOptionsOf(*all, environment, false, 1 << 20)->memory_bytes == 16 << 20);
  CHECK(RemoteOptionsOf(*all, environment, false, uint64_t{1} << 40)->memory_bytes == 512 << 20);
}

}  // namespace
}  // namespace penstock
