// The groups of a pipeline: whose they are, what they were told, and how they are ended.

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/pipeline/group_lists.h"
#include "server/service/pipeline/pipeline.h"
#include "server/service/state/slow_policy.h"

namespace penstock {
namespace {

// Groups that have been told what becomes of slow consumers.
constexpr size_t kMaxPolicies = 64;

const char* Verb(ring::SlowPolicy slow) {
  switch (slow) {
    case ring::SlowPolicy::kBlock:
      return "waited for";
    case ring::SlowPolicy::kDetach:
      return "detached";
    case ring::SlowPolicy::kSkip:
      return "skipped over";
  }
  return "";
}

}  // namespace

bool Pipeline::IsGuest(const Newcomer& newcomer) const {
  return newcomer.uid != options_.owner.uid && newcomer.uid != geteuid() &&
         !newcomer.spec.may_send_away;
}

v1::ListGroupsResponse Pipeline::Groups() const {
  GroupList groups;
  for (const auto& stream : AllStreams()) AddGroups(stream->writer(), &groups);
  v1::ListGroupsResponse response;
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [name, group] : groups) {
    if (group.consumers() == 0 && !group.kept()) group.set_first_position(0);
    if (const auto policy = slow_policies_.find(name); policy != slow_policies_.end()) {
      group.set_slow(ToProto(policy->second.first));
      group.set_lag_ms(policy->second.second);
    }
    *response.add_groups() = std::move(group);
  }
  return response;
}

absl::Status Pipeline::DropGroup(const std::string& group) {
  bool found = false;
  for (const auto& stream : AllStreams()) {
    found |=
        stream->writer().DropGroup(group, "DETACHED: its group was ended by the control plane");
  }
  if (!found) return absl::NotFoundError(absl::StrCat("no group ", group, " at pipeline ", name_));
  Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("group ", group, " was ended"));
  return absl::OkStatus();
}

absl::Status Pipeline::SetSlowPolicy(const std::string& group, ring::SlowPolicy slow,
                                     uint32_t lag_ms) {
  // Streams that are made meanwhile would miss it.
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!slow_policies_.contains(group) && slow_policies_.size() >= kMaxPolicies) {
      return absl::ResourceExhaustedError(
          absl::StrCat("too many groups of one pipeline have a policy: limit ", kMaxPolicies));
    }
  }
  const absl::Status written = WriteState([&](KeptState& state) {
    state.slow_policies[group] = {slow, lag_ms};
  });
  if (!written.ok()) {
    return absl::Status(
        written.code(),
        absl::StrCat("group ", group,
                     " is as it was, as a change could not be written down: ", written.message()));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    slow_policies_[group] = {slow, lag_ms};
  }
  for (const auto& stream : AllStreams()) stream->writer().SetSlowPolicy(group, slow, lag_ms);
  Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("group ", group, ": slow consumers are ", Verb(slow)));
  return absl::OkStatus();
}

}  // namespace penstock
