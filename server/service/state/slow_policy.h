// What happens to slow consumers, as the ring and as the control plane call it.
//
// Threads: safe from any thread.
#pragma once

#include <optional>

#include "penstock/v1/control.pb.h"
#include "ring/consumer_spec.h"

namespace penstock {

inline v1::SlowPolicy ToProto(ring::SlowPolicy slow) {
  switch (slow) {
    case ring::SlowPolicy::kBlock:
      return v1::SLOW_POLICY_BLOCK;
    case ring::SlowPolicy::kDetach:
      return v1::SLOW_POLICY_DETACH;
    case ring::SlowPolicy::kSkip:
      return v1::SLOW_POLICY_SKIP;
  }
  return v1::SLOW_POLICY_UNSPECIFIED;
}

// None for what is no policy.
inline std::optional<ring::SlowPolicy> FromProto(v1::SlowPolicy slow) {
  switch (slow) {
    case v1::SLOW_POLICY_BLOCK:
      return ring::SlowPolicy::kBlock;
    case v1::SLOW_POLICY_DETACH:
      return ring::SlowPolicy::kDetach;
    case v1::SLOW_POLICY_SKIP:
      return ring::SlowPolicy::kSkip;
    default:
      return std::nullopt;
  }
}

}  // namespace penstock
