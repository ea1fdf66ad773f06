#include "ring/rival.h"

#include <string>

namespace penstock::ring {
namespace {

bool IsSameClient(const ConsumerSpec& one, const ConsumerSpec& other) {
  return one.identity != 0 && one.identity == other.identity;
}

}  // namespace

bool AreRivals(const ConsumerSpec& newcomer, const ConsumerSpec& other) {
  if (newcomer.group != other.group) return false;
  const bool same_place = newcomer.mode == GroupMode::kRank && newcomer.place() == other.place();
  const bool same_name = !newcomer.name.empty() && newcomer.name == other.name;
  return same_place || same_name || IsSameClient(newcomer, other);
}

Status MayReplace(const ConsumerSpec& newcomer, const ConsumerSpec& rival, int32_t pid) {
  if (IsSameClient(newcomer, rival)) return {};
  const bool goes_first = rival.is_guest && !newcomer.is_guest;
  if (!newcomer.take_over && !goes_first) {
    return {Code::kAlreadyExists,
            (newcomer.mode == GroupMode::kRank ? "rank " + std::to_string(newcomer.rank)
                                               : "a consumer \"" + rival.name + "\"") +
                " is attached already, from process " + std::to_string(pid) +
                "; it can be taken over (group \"" + newcomer.group + "\")"};
  }
  if (rival.uid != newcomer.uid && !newcomer.may_send_away && !goes_first) {
    return {Code::kPermissionDenied, "process " + std::to_string(pid) +
                                         ", which has that place in group \"" + newcomer.group +
                                         "\", is another user's; that takes the right to control"};
  }
  return {};
}

}  // namespace penstock::ring
