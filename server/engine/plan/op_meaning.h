// What an op means: a number that rises where a release changes what the op makes of the same spec
// and files, so that an older cursor, journal or file of elements is not taken for one of this
// release.
//
// Where the change reaches every plan, the op's traits give the number; where it reaches some plans
// alone, the op raises it for those (PlanBuilder::RaiseMeaning), and all others keep their cursors.
// A change that comes later takes the next number.
//
// Threads:  functions without state.
// Cost:     a cursor grows by six bytes for each stage whose number is not 1.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "penstock/v1/cursor.pb.h"
#include "server/engine/spec/op_traits.h"

namespace penstock {

class PlanImpl;

v1::Meanings MeaningsOf(const PlanImpl& plan);
// As a cursor and a journal hold them.
v1::Meanings InShort(const v1::Meanings& meanings);

// Whether what was `kept` in short is by the meanings of a plan. FailedPrecondition with the stage,
// its op, and what has changed. With kAny, those of work ops may be others.
enum class MeaningsOfWork : uint8_t { kEqual, kAny };
absl::Status CheckMeanings(const v1::Meanings& kept, const v1::Meanings& expected,
                           MeaningsOfWork of_work = MeaningsOfWork::kEqual);

}  // namespace penstock
