// Resume tokens: where a stream stands, and to which stream that belongs. The bytes are those of
// proto/penstock/v1/cursor.proto.
//
// Threads:  functions without state; a CursorMaker is constant after construction.
// Limits:   a cursor is at most 1,024 bytes; a stream fails at the step whose position is longer
//           (positions grow with their numbers).
// Cost:     Fingerprint() reads 8 KiB of each file, and its index where there is one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/v1/cursor.pb.h"
#include "server/engine/order/position.h"
#include "server/engine/plan/plan.h"

namespace penstock {

inline constexpr size_t kMaxCursorBytes = 1024;

// What a plan's cursors belong to. Errors: those of reading the files.
absl::StatusOr<v1::Fingerprint> FingerprintOf(const Plan& plan);

// A hash of the part of it that decides which elements a step has, with whatever index files have;
// work ops are no part of it.
uint64_t OrderKey(const v1::Fingerprint& fingerprint);

// v1::Fingerprint::moves behind one more change of position, which stands in front of `step`.
// `order_key`: that of the stages from there on.
uint64_t MovesBehind(uint64_t moves, uint64_t step, uint64_t order_key, uint64_t skip_steps,
                     const Position* seek, const uint64_t* pass);

// Writes the cursors of one stream.
class CursorMaker {
 public:
  explicit CursorMaker(v1::Fingerprint fingerprint);

  // `step` is the number of the next step. ResourceExhausted, with the figures, when it is longer
  // than a cursor may be.
  absl::StatusOr<std::string> Make(uint64_t step, const Position& position) const;

 private:
  v1::Fingerprint fingerprint_;  // constant after construction
};

// Where a stream is to go on.
struct ResumePoint {
  uint64_t step = 0;
  Position position;
  uint64_t moves = 0;  // v1::Fingerprint::moves: of the run that made the cursor
  std::string notice;  // what the user should know, or ""
};

// v1::Fingerprint::moves of a cursor; 0 for bytes that are none.
uint64_t MovesOf(std::string_view cursor);

// v1::Fingerprint::code of a cursor; 0 for one without, and for bytes that are none.
uint64_t CodeOf(std::string_view cursor);

// Whether both are of Python functions, whose code differs.
bool IsOtherCode(uint64_t a, uint64_t b);

// Decodes a cursor and compares it with the plan, but for `moves`, of which a plan knows nothing.
// InvalidArgument for bytes that are no cursor; FailedPrecondition for one of another stream, with
// what differs. With kAllow, other work ops are no other stream; the notice says so then. Ops that
// mean something else are one in any case. Other code of Python functions never is; the notice says
// so.
enum class ChangedWork : uint8_t { kRefuse, kAllow };
absl::StatusOr<ResumePoint> ReadCursor(std::string_view bytes, const v1::Fingerprint& expected,
                                       ChangedWork changed_work = ChangedWork::kRefuse);

}  // namespace penstock
