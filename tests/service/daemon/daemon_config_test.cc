#include "server/service/daemon/daemon_config.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/shards.h"
#include "tests/support/tree.h"

namespace penstock {
namespace {

TEST_CASE("an empty configuration has every default") {
  const auto config = ParseDaemonConfig("", "empty");
  REQUIRE(config.ok());
  CHECK(!config->socket().empty());
  CHECK(config->worker_defaults().workers() == 0);
  CHECK(config->worker_defaults().worker_nice() == 10);
  CHECK(config->worker_defaults().numa_node() == -1);
  CHECK(config->connection_limits().max_control_connections() == 64);
  CHECK(config->connection_limits().max_consumers() == 1024);
  CHECK(config->connection_limits().max_message_bytes() == 4 << 20);
  CHECK(config->connection_limits().first_bytes_timeout_ms() == 5000);
  CHECK(config->log_level() == v1::LOG_LEVEL_INFO);
}

TEST_CASE("the annotated configuration names the defaults") {
  const auto example = ReadDaemonConfig(testing::InTree("config/penstockd.textproto"));
  REQUIRE(example.ok());
  CHECK(example->SerializeAsString() == ParseDaemonConfig("", "empty")->SerializeAsString());
}

TEST_CASE("worker_nice of 0 is not the default") {
  const auto config = ParseDaemonConfig("worker_defaults { worker_nice: 0 }", "c");
  REQUIRE(config.ok());
  CHECK(config->worker_defaults().worker_nice() == 0);
}

TEST_CASE("fault 54: a bad configuration is refused with its place") {
  const struct {
    std::string text;
    std::string message;
  } kCases[] = {
      {"sokcet: 'x'", "c:1:7: unknown field \"sokcet\" in DaemonConfig, did you mean \"socket\"?"},
      {"access_rule { rights: RIGHT_REED }",
       "c:1:34: unknown value \"RIGHT_REED\" of rights, did you mean \"RIGHT_READ\"?"},
      {"access_rule { rights: [RIGHT_READ, DELETE] }",
       "c:1:42: unknown value \"DELETE\" of rights; known are RIGHT_ATTACH, RIGHT_READ, "
       "RIGHT_CONTROL"},
      {"worker_defaults { workers: 1025 }",
       "c:1:19: worker_defaults.workers out of range: 1025 is not in [0, 1024]"},
      {"shared_prefix { max_bytes: -1 }",
       "c:1:17: shared_prefix.max_bytes out of range: -1 is not in [0, 70368744177664]"},
      {"mapped_files { max_bytes: -1 }",
       "c:1:16: mapped_files.max_bytes out of range: -1 is not in [0, 9223372036854775807]"},
      {"worker_defaults { worker_nice: -1 }",
       "c:1:19: worker_defaults.worker_nice out of range: -1 is not in [0, 19]"},
      {"worker_defaults { read_deadline_ms: 99 }",
       "c:1:19: worker_defaults.read_deadline_ms out of range: 99 is not 0 (none) or in [100, "
       "86400000]"},
      {"worker_defaults { numa_node: 1024 }",
       "c:1:19: worker_defaults.numa_node out of range: 1024 is not -1 (none) or in [0, 1023]"},
      {"connection_limits { max_message_bytes: 1 }",
       "c:1:21: connection_limits.max_message_bytes out of range: 1 is not in [65536, 67108864]"},
      {"socket: '/run/x/'", "c:1:1: socket: not the path of a file: /run/x/"},
      {"socket: '/" + std::string(107, 'x') + "'",
       "c:1:1: socket: path longer than limit: 108 > 107 bytes: /" + std::string(107, 'x')},
      {"\naccess_rule { uids: 1 rights: RIGHT_READ }\naccess_rule { rights: RIGHT_READ }",
       "c:3:1: access_rule[1] fits nobody: expected uids, gids or certificate_names, found none of "
       "them"},
      {"access_rule { certificate_names: '' rights: RIGHT_READ }",
       "c:1:15: access_rule[0].certificate_names: a name is empty"},
      {"\ntcp { address: 'localhost:1' }",
       "c:2:7: tcp.address: expected numbers and a port, as 10.0.0.5:9465 or [::1]:9465, found "
       "\"localhost:1\""},
      {"tcp { address: '[::1]:65536' }",
       "c:1:7: tcp.address: expected numbers and a port, as 10.0.0.5:9465 or [::1]:9465, found "
       "\"[::1]:65536\""},
      {"tcp { address: '127.0.0.1:1' certificate: 'a' }",
       "c:1:30: tcp.certificate: expected an absolute path, found \"a\""},
      {"tcp { max_connections: 4097 }",
       "c:1:7: tcp.max_connections out of range: 4097 is not in [1, 4096]"},
      {"user_quota { uids: 1 }",
       "c:1:1: user_quota[0] limits nothing: expected max_pipelines or max_workers, found neither"},
      {"user_quota { max_pipelines: 257 }",
       "c:1:14: user_quota[0].max_pipelines out of range: 257 is not in [0, 256]"},
      {"user_quota { max_workers: 0 }",
       "c:1:14: user_quota[0].max_workers out of range: 0 is not in [1, 65536]"},
      {"user_quota { max_workers: 1 uids: [1, 2] }\nuser_quota { max_workers: 1 uids: 2 }",
       "c:2:29: user_quota[1].uids: user 2 stands in user_quota[0] already"},
      {"user_quota { max_workers: 1 }\nuser_quota { max_workers: 2 }",
       "c:2:1: user_quota[1] is for each user whom no other quota names, as user_quota[0] is: "
       "expected uids"},
      {"access_rule { uids: 1 }", "c:1:1: access_rule[0].rights: expected one, found none"},
      {"data_roots: '/srv'\ndata_roots: 'data'",
       "c:2:1: data_roots[1]: expected an absolute path, found \"data\""},
      {"http { port: 65536 }", "c:1:8: http.port out of range: 65536 is not in [0, 65535]"},
      {"stop_timeout_ms: 1", "c:1:1: stop_timeout_ms out of range: 1 is not in [100, 600000]"},
  };
  for (const auto& c : kCases) {
    const auto config = ParseDaemonConfig(c.text, "c");
    CHECK(config.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(config.status().message()) == c.message);
  }
  CHECK(ReadDaemonConfig("/nowhere/c").status().code() == absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace penstock
