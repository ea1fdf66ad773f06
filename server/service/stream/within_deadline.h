// Work that reads files and must not hold up whoever asks for it: plans that are made, indices that
// are looked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/memory_account.h"
#include "server/service/stream/leftovers.h"

namespace penstock {

// Says why what is being done is not wanted any more; nothing while it is.
using Unwanted = std::function<absl::Status()>;

// How long a read may take, and where what takes longer is left.
struct ReadDeadline {
  uint64_t ns = 0;  // 0: for ever
  std::shared_ptr<Leftovers> leftovers = nullptr;
  // Looked at some fifty times a second, by the thread that waits; null: it is wanted whatever
  // comes.
  Unwanted unwanted = nullptr;
};

// Calls `work` on a thread of its own; DeadlineExceeded, with its address, where a read in it has
// taken longer than the deadline, or ResourceExhausted where there is no thread, or no memory for
// it. Where it is not wanted any more, what it computes is told to stop (base/stop_flag.h), and
// waited for for a moment. What then does not end goes on where it is and ends unheard, so it must
// own all that it touches.
absl::Status CallWithin(const ReadDeadline& deadline, const std::string& what,
                        std::function<void()> work);

// The same for work that has a result; where nothing would end it, it is called here.
template <typename Result>
absl::StatusOr<Result> Within(const ReadDeadline& deadline, const std::string& what,
                              std::function<absl::StatusOr<Result>()> work) {
  if (deadline.leftovers == nullptr || (deadline.ns == 0 && deadline.unwanted == nullptr)) {
    try {
      return work();
    } catch (const MemoryLimitError& error) {
      return MemoryStatus(error);
    }
  }
  const auto result = std::make_shared<std::optional<absl::StatusOr<Result>>>();
  const absl::Status status =
      CallWithin(deadline, what, [work = std::move(work), result] { *result = work(); });
  if (!status.ok()) return status;
  return std::move(**result);
}

}  // namespace penstock
