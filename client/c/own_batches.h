// Batches of a consumer's own size, out of steps of another one.
//
//   steps of 8 rows      │ 0 1 2 3 4 5 6 7 │ 0 1 2 3 4 5 6 7 │ 0 1 2 3 4 5 6 7 │
//   batch_rows 4         │ view   │ view   │ view   │ view   │ …                    nothing is copied
//   batch_rows 6         │ view        │ joined     │ joined      │       view │ …   two of four are copied
//   batch_rows 12        │ joined                   │ joined                   │   all are
//
// A batch whose rows lie in one slot is a view of it; one that crosses into the next is copied
// together (joined_rows.h). The daemon sees a consumer like any other. A rank sees its part of each
// batch. A split group hands out steps: a consumer's batches are made of those that it was given,
// one after another.
//
// Full steps are joined; a short one, at the end of a pass, ends a batch, and the next step begins
// one. Rows that fill a short step up fill up its last batch too.
//
// Batches are counted as if all steps were full, so that a short one may leave numbers out: the
// batch number n begins with row n * batch_rows of the stream, and whoever comes late begins with
// such a row. A cursor has a head in front of it where the pipeline's own does not say it all: the
// step, how many of its rows were taken, and the number of the next batch.
//
// Threads:  under the loader's next_mutex; ReleaseShare() from any thread.
// Owns:     the open step keeps a reference to its source.
// Cost:     of a view as of a whole step; a step's cursor is copied once; of strings and ragged
//           rows, as for a rank, the offsets of the part. Of a joined batch a copy of its rows.
#pragma once

#include <cstdint>

#include "client/c/loader.h"

namespace penstock_client {

// Bytes that a cursor has more where it has a head.
inline constexpr uint32_t kCursorHeadBytes = 32;

// Notes what the cursor's head says, and takes it off. Refuses what this loader cannot go on from.
penstock::ring::Status TakeCursorHead(penstock_loader* loader,
                                      penstock::ring::ConsumerPosition* position);

// Checks batch_rows against the steps of the pipeline. After the loader's entries and
// pass_last_rows are there.
penstock::ring::Status CheckOwnBatches(penstock_loader* loader);

enum class Opened {
  kOpen,
  kPassedOver,  // all of its rows are to be left out: on to the next step
  kBeyond,      // the loader's cursor points behind its rows
};
// Opens a step that was leased; `before` is where the reader stood. REQUIRES: none is open.
Opened OpenLease(penstock_loader* loader, const penstock::ring::Lease& lease, bool copies,
                 penstock::ring::ConsumerPosition before);

enum class Made {
  kBatch,
  kNeedsStep,  // the rows of a further one
  kFailed,     // the error is the reader's, or if it has none there is no memory
};
// Takes rows of the open step. REQUIRES: one is open.
Made MakeBatch(penstock_loader* loader, penstock_batch** out);
// Behind the last step: those rows that are left are a batch. Null without any, or when it failed:
// see `made`.
Made MakeLastBatch(penstock_loader* loader, penstock_batch** out);

// Where it stands after an attachment: what own_position shows.
void NotePosition(penstock_loader* loader);
// The batches that as many full steps are.
uint64_t OwnBatches(const penstock_loader& loader, uint64_t steps);
// The batches of the whole stream, where that is known; else the sentence that says why not.
penstock::ring::Status CountOwnBatches(const penstock_loader& loader, uint64_t* batches);

// Lets go of all that was not given: of the open step, and of rows that wait for others.
void DropOwn(penstock_loader* loader);
// Lets go of a batch that was made and not given.
void DropBatch(penstock_loader* loader, penstock_batch* batch);

// Lets go of one batch's share in a step; the slot is released with the last.
void ReleaseShare(penstock_loader* loader, Source* source, const penstock::ring::Lease& lease);
// The same for each step that the rows of a joined batch were held in.
void ReleaseHeld(penstock_loader* loader, penstock_batch* batch);

}  // namespace penstock_client
