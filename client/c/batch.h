// From a leased step to the tensors that a program sees: shapes, places, a rank's part of the rows,
// and copies.
//
// Threads:  under the loader's next_mutex.
// Owns:     nothing; a copy is its caller's.
// Cost:     of fixed tensors nothing but the first time a slot is seen; of the others the checks of
//           their extents; of a rank's part of strings and ragged rows a copy of their offsets.
#pragma once

#include "client/c/joined_rows.h"
#include "client/c/loader.h"

namespace penstock_client {

// Describes full batches: what is constant of a loader from its first ring on.
void Describe(const penstock::ring::Reader& reader, penstock_loader* loader);

// What this consumer's rank sees of those rows.
RowRange RankRows(const penstock_loader& loader, uint32_t first, uint32_t count);

// Gives a batch its own shapes, and fixed tensors that lie at `data`.
void Prepare(penstock_loader* loader, const uint8_t* data, penstock_batch* batch);

// Shows these rows of the leased step in a batch that is prepared. False with the reader's error
// when its tables are torn.
bool Show(const penstock::ring::Lease& lease, RowRange range, penstock_batch* batch);

// A private copy of these rows of a leased step; null when there is no memory for it or the reader
// has an error.
penstock_batch* Copy(penstock_loader* loader, Source* source, const penstock::ring::Lease& lease,
                     RowRange range);

// The bytes of all parts of a tensor.
uint64_t PartsBytes(const penstock_tensor& tensor);

}  // namespace penstock_client
