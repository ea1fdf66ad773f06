#include "server/service/socket/settings.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"

namespace penstock {
namespace {

// The first field that a running daemon cannot change; "" if it can take all of `next`.
std::string FixedDifference(const v1::DaemonConfig& now, const v1::DaemonConfig& next) {
  using google::protobuf::util::MessageDifferencer;
  if (now.socket() != next.socket()) return "socket";
  if (now.state_dir() != next.state_dir()) return "state_dir";
  if (now.rejoin_ms() != next.rejoin_ms()) return "rejoin_ms";
  if (now.log_format() != next.log_format()) return "log_format";
  if (!MessageDifferencer::Equals(now.http(), next.http())) return "http";
  if (now.worker_defaults().autotune() != next.worker_defaults().autotune())
    return "worker_defaults.autotune";
  if (!MessageDifferencer::Equals(now.tcp(), next.tcp())) return "tcp";
  if (now.data_roots_size() != next.data_roots_size()) return "data_roots";
  for (int i = 0; i < now.data_roots_size(); ++i) {
    if (now.data_roots(i) != next.data_roots(i)) return "data_roots";
  }
  if (!MessageDifferencer::Equals(now.cache(), next.cache())) return "cache";
  if (!MessageDifferencer::Equals(now.shared_prefix(), next.shared_prefix()))
    return "shared_prefix";
  if (!MessageDifferencer::Equals(now.mapped_files(), next.mapped_files())) return "mapped_files";
  if (!MessageDifferencer::Equals(now.remote(), next.remote())) return "remote";
  if (!MessageDifferencer::Equals(now.helpers(), next.helpers())) return "helpers";
  if (!MessageDifferencer::Equals(now.serve(), next.serve())) return "serve";
  const v1::ConnectionLimits& limits = now.connection_limits();
  if (limits.max_message_bytes() != next.connection_limits().max_message_bytes())
    return "connection_limits.max_message_bytes";
  if (limits.max_consumers() != next.connection_limits().max_consumers())
    return "connection_limits.max_consumers";
  if (limits.max_streams() != next.connection_limits().max_streams())
    return "connection_limits.max_streams";
  return "";
}

}  // namespace

absl::Status Settings::Replace(v1::DaemonConfig config) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string fixed = FixedDifference(*config_, config);
  if (!fixed.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a running daemon cannot change this setting, restart it: ", fixed));
  }
  config_ = std::make_shared<const v1::DaemonConfig>(std::move(config));
  return absl::OkStatus();
}

}  // namespace penstock
