// Sources of credentials against answers of their servers, files and programs; and that no secret is told.
#include <atomic>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "io/credentials/aws_sources.h"
#include "io/credentials/credential_keeper.h"
#include "io/credentials/gcs_sources.h"
#include "tests/remote/small_http_server.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::Answer;
using test::SmallHttpServer;
using test::SmallRequest;

struct Given {
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> files;

  Environment environment() const {
    Environment environment;
    environment.variable = [given = *this](const std::string& name) {
      const auto found = given.variables.find(name);
      return found == given.variables.end() ? std::string() : found->second;
    };
    environment.read_file = [given =
                                 *this](const std::string& path) -> absl::StatusOr<std::string> {
      const auto found = given.files.find(path);
      if (found == given.files.end()) return absl::NotFoundError(path);
      return found->second;
    };
    return environment;
  }
};

constexpr char kKeys[] =
    R"({"Version":1,"AccessKeyId":"AKID","SecretAccessKey":"SECRET","SessionToken":"TOKEN","Expiration":"2126-01-02T03:04:05Z"})";

void CheckKeys(const absl::StatusOr<Credentials>& found, const std::string& source) {
  INFO(found.status());
  REQUIRE(found.ok());
  CHECK(found->source == source);
  CHECK(found->access_key_id == "AKID");
  CHECK(found->secret_access_key == "SECRET");
  CHECK(found->session_token == "TOKEN");
}

TEST_CASE("keys of AWS come from the environment, profiles and programs") {
  Given given;
  given.variables["HOME"] = "/home/u";
  CHECK(absl::IsNotFound(AwsFromEnvironment(given.environment()).status()));
  CHECK(absl::IsNotFound(AwsFromProfile(given.environment(), "").status()));
  given.variables["AWS_ACCESS_KEY_ID"] = "AKID";
  CHECK(absl::IsInvalidArgument(AwsFromEnvironment(given.environment()).status()));
  given.variables["AWS_SECRET_ACCESS_KEY"] = "SECRET";
  given.variables["AWS_SESSION_TOKEN"] = "TOKEN";
  CheckKeys(AwsFromEnvironment(given.environment()), "environment");
  given.files["/home/u/.aws/credentials"] =
      "# keys\n[default]\naws_access_key_id = "
      "AKID\naws_secret_access_key=SECRET\naws_session_token = TOKEN\n"
      "[other]\naws_access_key_id = X\n";
  given.files["/home/u/.aws/config"] =
      "[profile run]\nregion = eu-west-3\ncredential_process = printf '%s' '" + std::string(kKeys) +
      "'\n[profile sso]\nsso_start_url = https://x\n";
  CheckKeys(AwsFromProfile(given.environment(), ""), "profile default");
  CheckKeys(AwsFromProfile(given.environment(), "run"), "credential_process");
  CHECK(AwsRegion(given.environment(), "run") == "eu-west-3");
  CHECK(absl::IsInvalidArgument(AwsFromProfile(given.environment(), "none").status()));
  CHECK(absl::StrContains(AwsFromProfile(given.environment(), "sso").status().message(),
                          "export-credentials"));
}

TEST_CASE("a program that fails, or prints something else, is told of without what it printed") {
  for (const char* const command :
       {"echo SECRET; exit 3", "echo SECRET", "printf '{\"AccessKeyId\":\"SECRET\"}'", "kill -9 $$",
        "yes SECRET"}) {
    const absl::Status status = AwsFromProcess(command).status();
    INFO(status);
    CHECK(!status.ok());
    CHECK(!absl::IsNotFound(status));
    CHECK(!absl::StrContains(status.message(), "SECRET"));
  }
}

TEST_CASE("keys of AWS come from STS, a container's endpoint and the machine") {
  const SmallHttpServer server([](const SmallRequest& request) {
    if (request.method == "POST") {
      if (!absl::StrContains(request.body, "WebIdentityToken=JWT"))
        return Answer("403 Forbidden", "", "");
      return Answer(
          "200 OK", "",
          "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
          "<AccessKeyId>AKID</AccessKeyId><SecretAccessKey>SECRET</SecretAccessKey>"
          "<SessionToken>TOKEN</SessionToken><Expiration>2126-01-02T03:04:05Z</Expiration>"
          "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>");
    }
    if (request.target == "/container")
      return request.Header("authorization") == "pass" ? Answer("200 OK", "", kKeys)
                                                       : Answer("401 Unauthorized", "", "");
    if (request.method == "PUT") return Answer("200 OK", "", "imdstoken");
    if (request.Header("x-aws-ec2-metadata-token") != "imdstoken")
      return Answer("401 Unauthorized", "", "");
    if (absl::EndsWith(request.target, "/")) return Answer("200 OK", "", "role\n");
    return absl::EndsWith(request.target, "/role") ? Answer("200 OK", "", kKeys)
                                                   : Answer("404 Not Found", "", "");
  });
  Given given;
  given.files["token"] = "JWT\n";
  given.files["pass"] = "pass\n";
  CHECK(absl::IsNotFound(AwsFromWebIdentity(given.environment()).status()));
  CHECK(absl::IsNotFound(AwsFromContainer(given.environment()).status()));
  given.variables = {{"AWS_WEB_IDENTITY_TOKEN_FILE", "token"},
                     {"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"},
                     {"AWS_ENDPOINT_URL_STS", server.url()},
                     {"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/container"},
                     {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "pass"},
                     {"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url()}};
  CheckKeys(AwsFromWebIdentity(given.environment()), "web identity");
  CheckKeys(AwsFromContainer(given.environment()), "container credentials");
  CheckKeys(AwsFromMachine(given.environment()), "the machine's metadata service");
}

TEST_CASE("who gives credentials out is known by the authorities that are named") {
  const SmallHttpServer server([](const SmallRequest&) { return Answer("200 OK", "", "{}"); });
  const std::string url = "https" + server.url().substr(4);
  Given given;
  given.files["token"] = "JWT\n";
  given.files["user"] =
      R"({"type":"authorized_user","refresh_token":"r","token_uri":")" + url + R"("})";
  given.variables = {{"AWS_WEB_IDENTITY_TOKEN_FILE", "token"},
                     {"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"},
                     {"AWS_ENDPOINT_URL_STS", url},
                     {"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}};
  Environment environment = given.environment();
  // They are looked for before the server says a word.
  environment.authorities = "/nowhere/authorities.pem";
  for (const absl::Status& status :
       {AwsFromWebIdentity(environment).status(), AwsFromContainer(environment).status(),
        GcsFromFile(environment, "user").status()}) {
    INFO(status);
    CHECK(absl::IsPermissionDenied(status));
    CHECK(absl::StrContains(status.message(), "certificate does not hold"));
  }
}

TEST_CASE("a metadata service that answers with a page is an error without the page") {
  const SmallHttpServer server(
      [](const SmallRequest&) { return Answer("200 OK", "", "<html>SECRET</html>"); });
  Given given;
  given.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.url();
  const absl::Status status = AwsFromMachine(given.environment()).status();
  CHECK(absl::IsDataLoss(status));
  CHECK(!absl::StrContains(status.message(), "SECRET"));
}

TEST_CASE("tokens of Google come from the machine, a user and an account that signs") {
  std::string asked;
  const SmallHttpServer server([&asked](const SmallRequest& request) {
    if (absl::StrContains(request.target, "computeMetadata") &&
        request.Header("metadata-flavor") != "google")
      return Answer("403 Forbidden", "", "");
    asked = request.body;
    return Answer("200 OK", "", R"({"access_token":"BEARER","expires_in":3600})");
  });
  Given given;
  given.variables["GCE_METADATA_HOST"] = server.url().substr(7);
  absl::StatusOr<Credentials> found = GcsFromMachine(given.environment());
  REQUIRE(found.ok());
  CHECK(found->bearer == "BEARER");
  CHECK(found->expires_s > 0);
  given.variables["GOOGLE_APPLICATION_CREDENTIALS"] = "user";
  given.files["user"] =
      R"({"type":"authorized_user","client_id":"id","client_secret":"s","refresh_token":"r","token_uri":")" +
      server.url() + "\"}";
  found = GcsFromFile(given.environment(), "");
  REQUIRE(found.ok());
  CHECK(found->bearer == "BEARER");
  CHECK(asked == "grant_type=refresh_token&client_id=id&client_secret=s&refresh_token=r");
  given.files["user"] =
      R"({"type":"external_account","audience":"a","subject_token_type":"t","token_url":")" +
      server.url() + R"(","credential_source":{"file":"subject"}})";
  given.files["subject"] = "SUBJECT\n";
  found = GcsFromFile(given.environment(), "");
  REQUIRE(found.ok());
  CHECK(absl::StrContains(asked, "subject_token=SUBJECT"));
  given.files["user"] = R"({"type":"service_account","client_email":"e","private_key":"SECRET"})";
  const absl::Status status = GcsFromFile(given.environment(), "").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(!absl::StrContains(status.message(), "SECRET"));
}

TEST_CASE(
    "fault 29: credentials are renewed five minutes ahead, after a refusal, and not more often") {
  std::atomic<int> asked{0};
  std::atomic<int64_t> now_s{1000};
  CredentialKeeper keeper(
      [&]() -> absl::StatusOr<Credentials> {
        Credentials found;
        found.access_key_id = std::to_string(++asked);
        found.secret_access_key = "SECRET";
        found.expires_s = now_s + 3600;
        return found;
      },
      [&] { return now_s.load(); });
  CHECK((*keeper.Wait())->access_key_id == "1");
  CHECK((*keeper.Wait())->access_key_id == "1");
  now_s += 3600 - 299;
  // Those that end soon are given while others are fetched.
  const CredentialKeeper::Found old = keeper.Wait();
  REQUIRE(old.ok());
  while ((*keeper.Wait())->access_key_id == "1") std::this_thread::yield();
  CHECK(asked == 2);
  keeper.Refused(*old);
  CHECK((*keeper.Wait())->access_key_id == "2");
  keeper.Refused(*keeper.Wait());
  CHECK((*keeper.Wait())->access_key_id == "3");
}

TEST_CASE("who is nobody looks again after a while") {
  const absl::StatusOr<Credentials> nobody = Anonymous();
  REQUIRE(nobody.ok());
  CHECK(nobody->is_anonymous());
  CHECK(nobody->expires_s > 0);
}

TEST_CASE("credentials that have expired already are an error") {
  CredentialKeeper keeper(
      []() -> absl::StatusOr<Credentials> {
        Credentials found;
        found.access_key_id = "a";
        found.expires_s = 999;
        return found;
      },
      [] { return int64_t{1000}; });
  CHECK(absl::IsDeadlineExceeded(keeper.Wait().status()));
}

}  // namespace
}  // namespace penstock
