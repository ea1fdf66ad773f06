// Finding the next sound TFRecord behind a damaged one.
//
// Threads:  functions without state; the window is the caller's.
#pragma once

#include "absl/status/status.h"
#include "io/file/damage.h"
#include "io/record/byte_window.h"

namespace penstock {

// Moves a window that begins with a damaged frame to the next sound one, or to the end, and
// returns what lies between in `damage`. An error is the stream's; the window is then where it got.
//
// A frame whose length can be trusted, because its checksum holds and another header or the end
// follows it, is passed over as a whole. Else every byte is looked at, for a header whose checksum
// holds and whose data's checksum confirms it. So the outcome depends on nothing but the bytes.
// TFRecords that lie inside a record's data can be taken for the file's own, but only where that
// record's length is damaged too.
//
// Cost: about 1 ns a byte. Headers that hold while their data does not cost a checksum each; above
// kFalseCandidateBytesMax in one search (an attack, not an accident) the rest is given up.
inline constexpr uint64_t kFalseCandidateBytesMax = uint64_t{1} << 30;
absl::Status Resynchronise(ByteWindow& window, DamageReason reason, Damage* damage);

}  // namespace penstock
