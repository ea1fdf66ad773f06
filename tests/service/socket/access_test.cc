#include "server/service/socket/access.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "server/service/daemon/daemon_config.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

constexpr uid_t kStranger = 54321;

Settings MakeSettings(const std::string& text) {
  const auto config = ParseDaemonConfig(text, "c");
  REQUIRE(config.ok());
  return Settings(*config);
}

TEST_CASE("a certificate has what the rules for its names say, whatever its number") {
  const Settings settings = MakeSettings(
      "allowed_uids: 0 allowed_uids: 4294967295 "
      "access_rule { uids: 4294967295 gids: 0 rights: RIGHT_CONTROL } "
      "access_rule { certificate_names: 'a.example' pipelines: 'eval-*' rights: RIGHT_READ }");
  Access access(settings);
  const auto by = [](std::vector<std::string> names) {
    Identity who{UINT32_MAX, {0}};
    who.by_certificate = true;
    who.certificate_names = std::move(names);
    return who;
  };
  CHECK(access.Has(by({"a.example"}), v1::RIGHT_READ, "eval-1"));
  CHECK(access.Has(by({"b.example", "a.example"}), v1::RIGHT_READ, "eval-1"));
  CHECK_FALSE(access.Has(by({"a.example"}), v1::RIGHT_READ, "train"));
  CHECK_FALSE(access.Has(by({"a.example"}), v1::RIGHT_CONTROL, "eval-1"));
  CHECK_FALSE(access.Has(by({"A.example"}), v1::RIGHT_READ, "eval-1"));
  CHECK_FALSE(access.Has(by({}), v1::RIGHT_READ, "eval-1"));
  Identity root = by({"b.example"});
  root.uid = 0;
  CHECK_FALSE(access.Has(root, v1::RIGHT_READ, "eval-1"));
  // A user is no certificate.
  CHECK_FALSE(access.Has({8, {}}, v1::RIGHT_READ, "eval-1"));
  const absl::Status refused = access.Admit(by({"b.example"}), v1::RIGHT_READ, "eval-1");
  CHECK(refused.message().find("certificate b.example may not see") != std::string::npos);
}

TEST_CASE("rules add up by user, group and pipeline") {
  const Settings settings = MakeSettings(
      "allowed_uids: 7 "
      "access_rule { uids: 8 pipelines: 'eval-*' rights: RIGHT_ATTACH } "
      "access_rule { gids: 90 rights: RIGHT_READ } "
      "access_rule { gids: 91 pipelines: 'train' rights: [RIGHT_CONTROL, RIGHT_READ] }");
  const Access access(settings);
  const struct {
    Identity who;
    std::string pipeline;
    bool attach, read, control;
  } kCases[] = {
      {{0, {}}, "x", true, true, true},
      {{geteuid(), {}}, "x", true, true, true},
      {{7, {}}, "x", true, true, true},
      {{8, {}}, "eval-1", true, false, false},
      {{8, {}}, "train", false, false, false},
      {{8, {90}}, "eval-1", true, true, false},
      {{kStranger, {1, 90}}, "x", false, true, false},
      {{kStranger, {91}}, "train", false, true, true},
      {{kStranger, {91}}, "x", false, false, false},
      {{kStranger, {1}}, "x", false, false, false},
  };
  for (const auto& c : kCases) {
    CAPTURE(c.who.uid, c.pipeline);
    CHECK(access.Has(c.who, v1::RIGHT_ATTACH, c.pipeline) == c.attach);
    CHECK(access.Has(c.who, v1::RIGHT_READ, c.pipeline) == c.read);
    CHECK(access.Has(c.who, v1::RIGHT_CONTROL, c.pipeline) == c.control);
  }
  CHECK(access.MayConnect({8, {}}));
  CHECK(access.MayConnect({kStranger, {91}}));
  CHECK_FALSE(access.MayConnect({kStranger, {1}}));
}

TEST_CASE("fault 45: a refusal names the user, the pipeline and the right") {
  const Settings settings = MakeSettings("access_rule { uids: 54321 rights: RIGHT_READ }");
  Access access(settings);
  CHECK(access.Admit({kStranger, {}}, v1::RIGHT_READ, "p").ok());
  const absl::Status status = access.Admit({kStranger, {}}, v1::RIGHT_ATTACH, "p");
  CHECK(status.code() == absl::StatusCode::kPermissionDenied);
  CHECK(std::string(status.message()) ==
        "user 54321 may not attach to the pipeline \"p\": no access_rule of the daemon's "
        "configuration gives RIGHT_ATTACH");
}

TEST_CASE("fault 45: what is turned away is counted by its reason") {
  const Settings settings = MakeSettings(
      "access_rule { uids: 54321 rights: RIGHT_READ } connection_limits { max_requests_per_s: 4 }");
  Access access(settings);
  for (int i = 0; i < 7; ++i) {
    const absl::Status status = access.Admit({kStranger, {}}, v1::RIGHT_ATTACH, "p");
    CHECK_FALSE(status.ok());
  }
  access.CountNoRule();
  access.CountNoPlace();
  const Refusals refused = access.Refused();
  CHECK(refused.no_right == 4);
  CHECK(refused.too_often == 3);
  CHECK(refused.no_rule == 1);
  CHECK(refused.no_descriptors == 0);
  CHECK(refused.no_place == 1);
}

TEST_CASE("another configuration holds at once") {
  Settings settings = MakeSettings("");
  const Access access(settings);
  CHECK_FALSE(access.MayConnect({kStranger, {}}));
  REQUIRE(settings.Replace(*ParseDaemonConfig("allowed_uids: 54321", "c")).ok());
  CHECK(access.MayConnect({kStranger, {}}));
}

TEST_CASE("fault 52: settings that need a restart refuse the whole configuration") {
  for (const std::string text :
       {"socket: '/x'", "log_format: LOG_FORMAT_JSON", "http { port: 1 }", "data_roots: '/srv'",
        "connection_limits { max_message_bytes: 65536 }",
        "connection_limits { max_consumers: 1 }"}) {
    CAPTURE(text);
    Settings settings = MakeSettings("");
    const absl::Status status =
        settings.Replace(*ParseDaemonConfig(text + " allowed_uids: 54321", "c"));
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(settings.Get()->allowed_uids().empty());
  }
}

TEST_CASE("fault 57: each user has a budget of his own, which time fills up") {
  int64_t now_ns = 0;
  RequestBudget budget([&now_ns] { return now_ns; });
  for (int i = 0; i < 10; ++i) CHECK(budget.Take(1, 10));
  CHECK_FALSE(budget.Take(1, 10));
  CHECK(budget.Take(2, 10));
  now_ns += 99'999'999;
  CHECK_FALSE(budget.Take(1, 10));
  now_ns += 1;
  CHECK(budget.Take(1, 10));
  CHECK_FALSE(budget.Take(1, 10));
  // No more than a second's worth is saved up.
  now_ns += int64_t{3'600'000'000'000};
  int taken = 0;
  while (budget.Take(1, 10)) ++taken;
  CHECK(taken == 10);
}

TEST_CASE("many users do not make the budget grow") {
  int64_t now_ns = 0;
  RequestBudget budget([&now_ns] { return now_ns; });
  for (uid_t uid = 0; uid < 3 * RequestBudget::kMaxUsers; ++uid) {
    CHECK(budget.Take(uid, 1));
    ++now_ns;
  }
  // Of the last ones the buckets are still there, and empty.
  CHECK_FALSE(budget.Take(3 * RequestBudget::kMaxUsers - 1, 1));
  // The first one's was given up.
  CHECK(budget.Take(0, 1));
}

}  // namespace
}  // namespace penstock
