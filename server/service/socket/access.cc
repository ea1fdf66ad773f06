#include "server/service/socket/access.h"

#include <fnmatch.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "server/service/socket/asker.h"

namespace penstock {
namespace {

template <typename List, typename Value>
bool Contains(const List& list, Value value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool MayAll(const v1::DaemonConfig& config, const Identity& who) {
  if (who.by_certificate) return false;
  return who.uid == 0 || who.uid == geteuid() || Contains(config.allowed_uids(), who.uid);
}

bool Fits(const v1::AccessRule& rule, const Identity& who) {
  if (who.by_certificate) {
    return std::any_of(
        who.certificate_names.begin(), who.certificate_names.end(),
        [&rule](const std::string& name) { return Contains(rule.certificate_names(), name); });
  }
  return Contains(rule.uids(), who.uid) ||
         std::any_of(who.gids.begin(), who.gids.end(),
                     [&rule](gid_t gid) { return Contains(rule.gids(), gid); });
}

bool Gives(const v1::AccessRule& rule, v1::Right right, const std::string& pipeline) {
  return Contains(rule.rights(), right) &&
         (rule.pipelines().empty() || fnmatch(rule.pipelines().c_str(), pipeline.c_str(), 0) == 0);
}

const char* VerbOf(v1::Right right) {
  switch (right) {
    case v1::RIGHT_ATTACH:
      return "attach to";
    case v1::RIGHT_READ:
      return "see";
    default:
      return "control";
  }
}

}  // namespace

uint64_t UserKey(const Identity& who) {
  if (!who.by_certificate) return who.uid;
  const std::string name = who.certificate_names.empty() ? "" : who.certificate_names.front();
  return std::hash<std::string>()(name) | uint64_t{1} << 63;
}

Access::Access(const Settings& settings) : settings_(settings), budget_(MonotonicNs) {}

bool Access::MayConnect(const Identity& who) const {
  const auto config = settings_.Get();
  return MayAll(*config, who) ||
         std::any_of(config->access_rule().begin(), config->access_rule().end(),
                     [&who](const v1::AccessRule& rule) { return Fits(rule, who); });
}

bool Access::Has(const Identity& who, v1::Right right, const std::string& pipeline) const {
  const auto config = settings_.Get();
  return MayAll(*config, who) ||
         std::any_of(config->access_rule().begin(), config->access_rule().end(),
                     [&](const v1::AccessRule& rule) {
                       return Fits(rule, who) && Gives(rule, right, pipeline);
                     });
}

absl::Status Access::Admit(const Identity& who, v1::Right right, const std::string& pipeline) {
  absl::Status status = CountRequest(who);
  if (!status.ok()) return status;
  if (Has(who, right, pipeline)) return absl::OkStatus();
  no_right_.fetch_add(1, std::memory_order_relaxed);
  return absl::PermissionDeniedError(absl::StrCat(
      NameOf(who), " may not ", VerbOf(right), " the pipeline \"", pipeline.substr(0, 128),
      "\": no access_rule of the daemon's configuration gives ", v1::Right_Name(right)));
}

absl::Status Access::CountRequest(const Identity& who) {
  const int limit = settings_.Get()->connection_limits().max_requests_per_s();
  if (budget_.Take(UserKey(who), limit)) return absl::OkStatus();
  too_often_.fetch_add(1, std::memory_order_relaxed);
  return absl::ResourceExhaustedError(
      absl::StrCat("too many requests: connection_limits.max_requests_per_s is ", limit,
                   " for each user and certificate, this is ", NameOf(who)));
}

Refusals Access::Refused() const {
  return {.no_rule = no_rule_.load(std::memory_order_relaxed),
          .no_right = no_right_.load(std::memory_order_relaxed),
          .too_often = too_often_.load(std::memory_order_relaxed),
          .no_descriptors = no_descriptors_.load(std::memory_order_relaxed),
          .no_place = no_place_.load(std::memory_order_relaxed)};
}

Identity IdentityOf(int socket, uid_t uid, gid_t gid) {
  Identity identity{uid, {gid}};
  gid_t groups[256];
  socklen_t size = sizeof(groups);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
    identity.gids.insert(identity.gids.end(), groups, groups + size / sizeof(gid_t));
  return identity;
}

}  // namespace penstock
