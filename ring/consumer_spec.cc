#include "ring/consumer_spec.h"

#include "ring/printable.h"

namespace penstock::ring {

Status CheckSpec(const ConsumerSpec& spec) {
  const auto invalid = [](const std::string& message) {
    return Status{Code::kInvalidArgument, message};
  };
  if (!IsPrintableUtf8(spec.group) || !IsPrintableUtf8(spec.name)) {
    return invalid(std::string("a ") + (IsPrintableUtf8(spec.group) ? "consumer" : "group") +
                   "'s name is text in UTF-8 without control characters");
  }
  if (spec.mode > GroupMode::kSplit || spec.slow > SlowPolicy::kSkip) {
    return invalid("unknown mode of a group, or policy for slow consumers: " +
                   std::to_string(static_cast<uint32_t>(spec.mode)) + " and " +
                   std::to_string(static_cast<uint32_t>(spec.slow)));
  }
  if (spec.mode == GroupMode::kRank) {
    if (spec.world_size < 1 || spec.replicas < 1 || spec.world_size > kMaxWorld ||
        spec.replicas > kMaxWorld / spec.world_size) {
      return invalid("a group has 1 to " + std::to_string(kMaxWorld) + " ranks times replicas: " +
                     std::to_string(spec.world_size) + " times " + std::to_string(spec.replicas));
    }
    if (spec.rank >= spec.world_size || spec.replica >= spec.replicas) {
      return invalid("a rank is below the world's size, and a replica below the replicas: rank " +
                     std::to_string(spec.rank) + " of " + std::to_string(spec.world_size) +
                     ", replica " + std::to_string(spec.replica) + " of " +
                     std::to_string(spec.replicas));
    }
  } else if (spec.rank != 0 || spec.world_size != 1 || spec.replica != 0 || spec.replicas != 1) {
    return invalid("ranks belong to groups of mode rank: rank " + std::to_string(spec.rank) +
                   " of " + std::to_string(spec.world_size));
  }
  if (spec.slow != SlowPolicy::kBlock && spec.mode != GroupMode::kBroadcast) {
    return invalid("only the consumers of a broadcast may miss steps or be detached at once");
  }
  return {};
}

}  // namespace penstock::ring
