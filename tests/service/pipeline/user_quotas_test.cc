// What users may have at a time.
#include "server/service/pipeline/user_quotas.h"

#include <google/protobuf/text_format.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/support/catch.h"

namespace penstock {
namespace {

using Catch::Contains;

// Nobody's number here, and another one's.
constexpr uid_t kUser = 54321;
constexpr uid_t kOther = 54322;

std::shared_ptr<UserQuotas> Quotas(const std::string& text) {
  v1::DaemonConfig config;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &config));
  auto quotas = std::make_shared<UserQuotas>();
  quotas->SetQuotas(config.user_quota());
  return quotas;
}

std::string MessageOf(const absl::Status& status) {
  CHECK(absl::IsResourceExhausted(status));
  return std::string(status.message());
}

TEST_CASE("a user has as many pipelines as its quota allows, or the one for all") {
  const auto quotas =
      Quotas("user_quota { uids: 54321 max_pipelines: 2 } user_quota { max_pipelines: 0 }");
  CHECK(quotas->CheckPipelines(kUser, 1).ok());
  CHECK(MessageOf(quotas->CheckPipelines(kUser, 2)) ==
        "user 54321 has 2 pipelines, and may have at most 2 (user_quota[0].max_pipelines of the "
        "daemon's configuration): delete one (penstock list shows whose they are), or have the "
        "quota raised");
  CHECK_THAT(MessageOf(quotas->CheckPipelines(kOther, 0)), Contains("user_quota[1].max_pipelines"));
  // For whom the daemon works, who may change the configuration, and nobody.
  CHECK(quotas->CheckPipelines(geteuid(), 100).ok());
  CHECK(quotas->CheckPipelines(0, 100).ok());
  CHECK(quotas->CheckPipelines(static_cast<uid_t>(-1), 100).ok());
  CHECK(Quotas("user_quota { uids: 54321 max_workers: 2 }")->CheckPipelines(kUser, 100).ok());
}

TEST_CASE("the daemon's own user has a quota where one names it") {
  v1::DaemonConfig config;
  config.add_user_quota()->add_uids(geteuid());
  config.mutable_user_quota(0)->set_max_pipelines(1);
  UserQuotas quotas;
  quotas.SetQuotas(config.user_quota());
  CHECK_FALSE(quotas.CheckPipelines(geteuid(), 1).ok());
}

TEST_CASE("workers come out of one number for all pipelines of a user") {
  const auto quotas = Quotas("user_quota { uids: [54321, 54322] max_workers: 5 }");
  WorkerShare first(quotas, kUser);
  REQUIRE(first.Have(3).ok());
  WorkerShare second(quotas, kUser);
  CHECK(MessageOf(second.Have(3)) ==
        "workers: user 54321 may have at most 5 (user_quota[0].max_workers of the daemon's "
        "configuration), of which other pipelines have 3; found 3: ask for at most 2 (workers, "
        "--workers), delete a pipeline (penstock list shows whose they are), give another fewer "
        "(penstock update NAME --workers N), or have the quota raised");
  CHECK(second.workers() == 0);
  CHECK(second.Most(8) == 2);
  // Another user has a number of its own.
  WorkerShare others(quotas, kOther);
  CHECK(others.Have(5).ok());
  // What the daemon chooses is what is left, and nothing where nothing is.
  CHECK(*second.HaveUpTo(8) == 2);
  WorkerShare third(quotas, kUser);
  CHECK_THAT(MessageOf(third.HaveUpTo(8).status()),
             Contains("of which other pipelines have 5; found 8: delete a pipeline"));
  // Fewer are always had, and the others may take them.
  REQUIRE(first.Have(1).ok());
  CHECK(*third.HaveUpTo(8) == 2);
}

TEST_CASE("what a share has is given back when it goes") {
  const auto quotas = Quotas("user_quota { uids: 54321 max_workers: 2 }");
  {
    WorkerShare share(quotas, kUser);
    REQUIRE(share.Have(2).ok());
  }
  CHECK(WorkerShare(quotas, kUser).Have(2).ok());
}

TEST_CASE("a quota that becomes smaller takes nothing away") {
  const auto quotas = Quotas("");
  WorkerShare share(quotas, kUser);
  REQUIRE(share.Have(8).ok());
  v1::DaemonConfig config;
  config.add_user_quota()->set_max_workers(4);
  quotas->SetQuotas(config.user_quota());
  CHECK(share.Have(8).ok());
  CHECK(*share.HaveUpTo(10) == 8);
  CHECK(share.Have(6).ok());
  CHECK_FALSE(share.Have(7).ok());
  // What comes back after a restart has what it had.
  share.Keep(8);
  CHECK(share.workers() == 8);
  CHECK_FALSE(WorkerShare(quotas, kUser).Have(1).ok());
}

TEST_CASE("without quotas there is no limit, and nobody's pipelines count for nobody") {
  WorkerShare alone(nullptr, kUser);
  CHECK(alone.Have(1000).ok());
  CHECK(*alone.HaveUpTo(2000) == 2000);
  CHECK(alone.Most(7) == 7);
  const auto quotas = Quotas("user_quota { max_workers: 1 }");
  WorkerShare nobodys(quotas, static_cast<uid_t>(-1));
  CHECK(nobodys.Have(64).ok());
}

}  // namespace
}  // namespace penstock
