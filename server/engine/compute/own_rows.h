// Of elements that are whole batches (what a function has made of a batch, or batches that were
// shuffled), the rows of one host.
//
// A feature's rows are its first axis, where that has as many as the batch, or a number that only
// the data tells: rows [h·n/H, (h+1)·n/H) of its own n. All other features come whole to every
// host.
//
// Threads:  functions without state; the op is constant.
// Owns:     nothing of a row: rows of numbers are views of the whole, all others lie in the block's
//           arena.
// Limits:   2^32 - 1 rows of an element; more are a DataLoss of it.
// Cost:     of numbers none; of strings, ragged and sparse features a copy of the host's part.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/signature.h"
#include "server/engine/order/work_op.h"
#include "server/engine/tensor/world.h"

namespace penstock {

// Whether a feature of batches of `batch_rows` rows is divided; below 0: only the data tells how
// many they are.
bool IsDivided(const TensorType& type, int64_t batch_rows);

// The work that leaves the host's rows of the features that IsDivided() says. Its output has the
// names and forms of `input`.
std::unique_ptr<WorkOp> MakeOwnRows(Signature input, int64_t batch_rows, World world);

}  // namespace penstock
