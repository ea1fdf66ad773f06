#include "server/service/daemon/daemon_config.h"

#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "base/numa_node.h"
#include "base/shown_url.h"
#include "ring/attach.h"
#include "ring/descriptor.h"
#include "server/helpers/helpers.h"
#include "server/service/daemon/remote_config.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/pipeline/work_memory.h"
#include "server/service/socket/tcp_address.h"
#include "server/service/state/text_proto.h"
#include "server/service/stream/read_deadline.h"

namespace penstock {
namespace {

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " out of range: ", value, " is not in [", low, ", ", high, "]"));
}

absl::Status CheckSocket(const std::string& path) {
  constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMaxPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("socket: path longer than limit: ", path.size(),
                                                   " > ", kMaxPathBytes, " bytes: ", path));
  }
  if (path.find('\0') != path.npos || path.back() == '/') {
    return absl::InvalidArgumentError(absl::StrCat("socket: not the path of a file: ", path));
  }
  return absl::OkStatus();
}

absl::Status CheckRule(const std::string& field, const v1::AccessRule& rule) {
  constexpr size_t kMaxGlobBytes = 128;
  if (rule.uids().empty() && rule.gids().empty() && rule.certificate_names().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " fits nobody: expected uids, gids or certificate_names, found none of them"));
  }
  for (const std::string& name : rule.certificate_names()) {
    if (name.empty())
      return absl::InvalidArgumentError(absl::StrCat(field, ".certificate_names: a name is empty"));
  }
  if (rule.rights().empty())
    return absl::InvalidArgumentError(absl::StrCat(field, ".rights: expected one, found none"));
  for (const int right : rule.rights()) {
    absl::Status status =
        CheckRange(absl::StrCat(field, ".rights"), right, v1::RIGHT_ATTACH, v1::RIGHT_CONTROL);
    if (!status.ok()) return status;
  }
  if (rule.pipelines().size() > kMaxGlobBytes || rule.pipelines().find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".pipelines: not a glob of at most ", kMaxGlobBytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CheckRoot(const std::string& field, const std::string& path) {
  if (!path.empty() && path[0] == '/' && path.find('\0') == path.npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected an absolute path, found \"", path, "\""));
}

absl::Status CheckCacheRoot(const std::string& field, const std::string& path) {
  if (!IsAddress(path)) return CheckRoot(field, path);
  const bool has_bucket = path.size() > 5 && path[5] != '/';
  if ((path.compare(0, 5, "s3://") == 0 || path.compare(0, 5, "gs://") == 0) && has_bucket)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": expected an absolute path, or a folder such as s3://bucket/made, found ",
      ShownUrl(path)));
}

absl::Status CheckQuotas(const v1::DaemonConfig& config) {
  constexpr int kMostQuotas = 1024;
  absl::Status status = CheckRange("user_quota", config.user_quota_size(), 0, kMostQuotas);
  std::map<uint32_t, int> whose;
  int general = -1;
  for (int i = 0; i < config.user_quota_size() && status.ok(); ++i) {
    const v1::UserQuota& quota = config.user_quota(i);
    const std::string field = absl::StrCat("user_quota[", i, "]");
    if (!quota.has_max_pipelines() && !quota.has_max_workers()) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, " limits nothing: expected max_pipelines or max_workers, found neither"));
    }
    if (quota.has_max_pipelines()) {
      status.Update(CheckRange(absl::StrCat(field, ".max_pipelines"), quota.max_pipelines(), 0,
                               PipelineTable::kMaxPipelines));
    }
    if (quota.has_max_workers())
      status.Update(CheckRange(absl::StrCat(field, ".max_workers"), quota.max_workers(), 1, 65536));
    for (const uint32_t uid : quota.uids()) {
      const auto [before, is_new] = whose.emplace(uid, i);
      if (is_new) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          field, ".uids: user ", uid, " stands in user_quota[", before->second, "] already"));
    }
    if (!quota.uids().empty()) continue;
    if (general >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " is for each user whom no other quota names, as user_quota[",
                       general, "] is: expected uids"));
    }
    general = i;
  }
  return status;
}

absl::Status CheckTcp(v1::TcpOptions* tcp) {
  if (tcp->max_connections() == 0) tcp->set_max_connections(64);
  absl::Status status = CheckRange("tcp.max_connections", tcp->max_connections(), 1, 4096);
  if (tcp->address().empty()) return status;
  status.Update(ParseTcpAddress(tcp->address()).status());
  status.Update(CheckRoot("tcp.certificate", tcp->certificate()));
  status.Update(CheckRoot("tcp.key", tcp->key()));
  status.Update(CheckRoot("tcp.client_authorities", tcp->client_authorities()));
  return status;
}

// The field that a message of CompleteDaemonConfig() begins with.
absl::string_view FieldOf(absl::string_view message) {
  return message.substr(0, message.find_first_of(" :"));
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  const ring::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return FileError(errno, absl::StrCat("cannot open ", path));
  std::string text;
  char buffer[16384];
  while (text.size() <= kMaxTextBytes) {
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, absl::StrCat("cannot read ", path));
    text.append(buffer, got);
  }
  return text;
}

absl::Status CheckWorkBytes(absl::string_view field, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return CheckRange(field, bytes, WorkMemory::kLeastBytes, INT64_MAX);
}

}  // namespace

absl::Status CompleteDaemonConfig(v1::DaemonConfig* config) {
  if (config->socket().empty()) config->set_socket(ring::DefaultSocketPath());
  v1::WorkerDefaults* workers = config->mutable_worker_defaults();
  if (!workers->has_worker_nice()) workers->set_worker_nice(10);
  if (!workers->has_numa_node()) workers->set_numa_node(kNoNumaNode);
  v1::ConnectionLimits* limits = config->mutable_connection_limits();
  if (limits->max_control_connections() == 0) limits->set_max_control_connections(64);
  if (limits->max_consumers() == 0) limits->set_max_consumers(1024);
  if (limits->max_message_bytes() == 0) limits->set_max_message_bytes(4 << 20);
  if (limits->first_bytes_timeout_ms() == 0) limits->set_first_bytes_timeout_ms(5000);
  if (limits->max_requests_per_s() == 0) limits->set_max_requests_per_s(2000);
  if (limits->max_streams() == 0) limits->set_max_streams(64);
  if (config->log_level() == v1::LOG_LEVEL_UNSPECIFIED) config->set_log_level(v1::LOG_LEVEL_INFO);
  if (config->log_format() == v1::LOG_FORMAT_UNSPECIFIED)
    config->set_log_format(v1::LOG_FORMAT_TEXT);
  if (config->log_lines_per_cause() == 0) config->set_log_lines_per_cause(20);
  if (config->stop_timeout_ms() == 0) config->set_stop_timeout_ms(5000);
  config->mutable_http();
  config->mutable_cache();
  v1::MemoryLimits* memory = config->mutable_memory();
  if (!memory->has_idle_ms()) memory->set_idle_ms(600'000);
  if (!config->has_rejoin_ms()) config->set_rejoin_ms(10'000);
  if (!config->has_attach_only_wait_ms()) config->set_attach_only_wait_ms(10'000);
  v1::SharedPrefixOptions* prefix = config->mutable_shared_prefix();
  if (!prefix->has_min_element_us()) prefix->set_min_element_us(20);

  absl::Status status = CheckSocket(config->socket());
  status.Update(CheckRange("worker_defaults.workers", workers->workers(), 0, 1024));
  status.Update(CheckRange("worker_defaults.worker_nice", workers->worker_nice(), 0, 19));
  status.Update(CheckNumaNode("worker_defaults.numa_node", workers->numa_node()));
  status.Update(CheckReadDeadline("worker_defaults.read_deadline_ms", workers->read_deadline_ms()));
  status.Update(CheckRange("connection_limits.max_control_connections",
                           limits->max_control_connections(), 1, 4096));
  status.Update(CheckRange("connection_limits.max_consumers", limits->max_consumers(), 1, 4096));
  status.Update(CheckRange("connection_limits.max_message_bytes", limits->max_message_bytes(),
                           64 << 10, 64 << 20));
  status.Update(CheckRange("connection_limits.first_bytes_timeout_ms",
                           limits->first_bytes_timeout_ms(), 10, 60000));
  status.Update(CheckRange("connection_limits.max_requests_per_s", limits->max_requests_per_s(), 1,
                           1'000'000));
  status.Update(CheckRange("connection_limits.max_streams", limits->max_streams(), 1, 1024));
  status.Update(CheckRange("log_lines_per_cause", config->log_lines_per_cause(), 1, 10'000));
  status.Update(CheckRange("stop_timeout_ms", config->stop_timeout_ms(), 100, 600'000));
  status.Update(CheckRange("rejoin_ms", config->rejoin_ms(), 0, 3'600'000));
  status.Update(CheckRange("attach_only_wait_ms", config->attach_only_wait_ms(), 0, 3'600'000));
  if (!config->state_dir().empty() && config->state_dir() != "none" &&
      config->state_dir()[0] != '/') {
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("state_dir: expected an absolute path or none, found ", config->state_dir())));
  }
  status.Update(CheckRange("http.port", config->http().port(), 0, 65535));
  status.Update(
      CheckRange("log_format", config->log_format(), v1::LOG_FORMAT_TEXT, v1::LOG_FORMAT_JSON));
  status.Update(CheckTcp(config->mutable_tcp()));
  status.Update(CheckQuotas(*config));
  for (int i = 0; i < config->access_rule_size(); ++i)
    status.Update(CheckRule(absl::StrCat("access_rule[", i, "]"), config->access_rule(i)));
  for (int i = 0; i < config->data_roots_size(); ++i)
    status.Update(CheckRoot(absl::StrCat("data_roots[", i, "]"), config->data_roots(i)));
  for (int i = 0; i < config->cache().roots_size(); ++i)
    status.Update(CheckCacheRoot(absl::StrCat("cache.roots[", i, "]"), config->cache().roots(i)));
  status.Update(CheckRange("cache.max_bytes", config->cache().max_bytes(), 0, INT64_MAX));
  status.Update(CheckRange("memory.max_bytes", memory->max_bytes(), 0, INT64_MAX));
  status.Update(
      CheckRange("memory.max_pipeline_bytes", memory->max_pipeline_bytes(), 0, INT64_MAX));
  status.Update(CheckRange("memory.max_user_bytes", memory->max_user_bytes(), 0, INT64_MAX));
  status.Update(CheckRange("memory.max_process_bytes", memory->max_process_bytes(), 0, INT64_MAX));
  status.Update(
      CheckWorkBytes("memory.max_pipeline_work_bytes", memory->max_pipeline_work_bytes()));
  status.Update(CheckWorkBytes("memory.max_work_bytes", memory->max_work_bytes()));
  status.Update(CheckRange("memory.idle_ms", memory->idle_ms(), 0, INT32_MAX));
  status.Update(CheckRange("shared_prefix.max_bytes", prefix->max_bytes(), 0, int64_t{1} << 46));
  status.Update(CheckRange("shared_prefix.min_element_us", prefix->min_element_us(), 0, 1'000'000));
  status.Update(CheckRange("mapped_files.max_bytes", config->mutable_mapped_files()->max_bytes(), 0,
                           INT64_MAX));
  status.Update(CheckRemote(config->remote()));
  status.Update(CompleteHelpers(config->mutable_helpers()));
  status.Update(CompleteServe(config->mutable_serve()));
  status.Update(
      CheckRange("log_level", config->log_level(), v1::LOG_LEVEL_DEBUG, v1::LOG_LEVEL_ERROR));
  return status;
}

absl::StatusOr<v1::DaemonConfig> ParseDaemonConfig(absl::string_view text,
                                                   absl::string_view file_name) {
  v1::DaemonConfig config;
  TextPlaces places;
  absl::Status status = ParseTextProto(text, file_name, &config, &places);
  if (!status.ok()) return status;
  status = CompleteDaemonConfig(&config);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(places.Of(config, FieldOf(status.message())),
                                                    ": ", status.message()));
  }
  return config;
}

absl::StatusOr<v1::DaemonConfig> ReadDaemonConfig(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  return ParseDaemonConfig(*text, path);
}

}  // namespace penstock
