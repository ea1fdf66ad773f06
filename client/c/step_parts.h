// Steps that are given in several batches of fewer rows: a consumer that asks for another batch size than the pipeline's.
//
//   step of 8 rows, batch_rows 4:   rows 0-3 ► a batch   rows 4-7 ► the next one       the slot is released with the last of them
//
// Nothing is copied and nothing is computed for it: the batches are views of one slot, and the daemon sees a consumer like any other.
// A short step, at the end of a pass, ends with a short batch.
//
// A cursor behind rows in the middle of a step is that in front of the step, with a head that says how many of its rows were taken.
//
// Threads:  what takes parts, under the loader's next_mutex; ReleasePart() from any thread.
// Owns:     the open step keeps a reference to its source.
// Cost:     a step's cursor is copied once; of strings and ragged rows, as for a rank, the offsets of the part.
#pragma once

#include <cstdint>
#include <string>

#include "client/c/loader.h"

namespace penstock_client {

// Bytes that a cursor has more where it points into a step.
inline constexpr uint32_t kPartCursorBytes = 32;

// Takes the head off a cursor, if it has one: then `position` knows its step and in front of it the cursor, and `rows` of it were taken.
penstock::ring::Status ReadPartCursor(penstock::ring::ConsumerPosition* position, uint32_t* rows);

// Checks batch_rows against full batches of the pipeline, and counts the parts of one. After Describe()'s entries are there.
penstock::ring::Status CountParts(penstock_loader* loader);

// Opens a step that was leased; `before` is where the reader stood. False when the loader's cursor points behind its rows.
bool OpenLease(penstock_loader* loader, const penstock::ring::Lease& lease, bool copies,
               penstock::ring::ConsumerPosition before);

// The next part of the open step; null with the reader's error, or without one when there is no memory.
penstock_batch* NextPart(penstock_loader* loader);

// Where it stands after an attachment: what part_position shows.
void NotePosition(penstock_loader* loader);

// Lets go of what was not taken of the open step, if there is one.
void CloseStep(penstock_loader* loader);

// Lets go of parts of a step; the slot is released with the last.
void ReleaseParts(penstock_loader* loader, Source* source, const penstock::ring::Lease& lease,
                  uint32_t count);

}  // namespace penstock_client
