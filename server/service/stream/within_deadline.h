// Work that reads files and must not hold up whoever asks for it: plans that are made, indices that are looked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/service/stream/leftovers.h"

namespace penstock {

// How long a read may take, and where what takes longer is left.
struct ReadDeadline {
  uint64_t ns = 0;  // 0: for ever
  std::shared_ptr<Leftovers> leftovers = nullptr;
};

// Calls `work` on a thread of its own; DeadlineExceeded, with its address, where a read in it has taken longer than the deadline, or
// ResourceExhausted where there is no thread. The work then goes on where it is and ends unheard, so it must own all that it touches.
absl::Status CallWithin(const ReadDeadline& deadline, const std::string& what,
                        std::function<void()> work);

// The same for work that has a result; without a deadline it is called here.
template <typename Result>
absl::StatusOr<Result> Within(const ReadDeadline& deadline, const std::string& what,
                              std::function<absl::StatusOr<Result>()> work) {
  if (deadline.ns == 0 || deadline.leftovers == nullptr) return work();
  const auto result = std::make_shared<std::optional<absl::StatusOr<Result>>>();
  const absl::Status status =
      CallWithin(deadline, what, [work = std::move(work), result] { *result = work(); });
  if (!status.ok()) return status;
  return std::move(**result);
}

}  // namespace penstock
