#include "server/engine/tasks/calls_under_way.h"

#include "absl/strings/str_cat.h"
#include "base/nanoseconds.h"

namespace penstock {
namespace {

template <typename Wanted>
std::optional<CallUnderWay> OldestOf(const std::vector<CallUnderWay>& calls, const Wanted& wanted) {
  const CallUnderWay* oldest = nullptr;
  for (const CallUnderWay& call : calls) {
    if (wanted(call.kind) && (oldest == nullptr || call.ns > oldest->ns)) oldest = &call;
  }
  if (oldest == nullptr) return std::nullopt;
  return *oldest;
}

}  // namespace

uint64_t HungAfterNs(CallKind kind, uint64_t hung_read_ns) {
  if (kind == CallKind::kRead) return hung_read_ns;
  return kind == CallKind::kSync ? kHungSyncNs : kHungCallNs;
}

absl::Status ReadDeadlineError(const CallUnderWay& read, uint64_t deadline_ns) {
  return absl::DeadlineExceededError(
      absl::StrCat(read.doing, " did not return within read_deadline_ms: ", read.ns / kNsPerMs,
                   " > ", deadline_ns / kNsPerMs, " ms; a disk or network hangs (", read.path,
                   ", offset ", read.offset, ")"));
}

std::optional<CallUnderWay> OldestRead(const std::vector<CallUnderWay>& calls) {
  return OldestOf(calls, [](CallKind kind) { return kind == CallKind::kRead; });
}

std::optional<CallUnderWay> OldestWork(const std::vector<CallUnderWay>& calls) {
  return OldestOf(calls, [](CallKind kind) { return kind == CallKind::kWork; });
}

std::optional<CallUnderWay> OldestWrite(const std::vector<CallUnderWay>& calls) {
  return OldestOf(
      calls, [](CallKind kind) { return kind == CallKind::kWrite || kind == CallKind::kSync; });
}

}  // namespace penstock
