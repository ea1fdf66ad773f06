#include "client/c/batch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "client/c/rank_rows.h"
#include "ring/segment_plan.h"

namespace penstock_client {

using penstock::ring::kMaxDims;
using penstock::ring::Lease;
using penstock::ring::Reader;
using penstock::ring::TensorEntry;

namespace {

uint64_t TensorBytes(const penstock_tensor& tensor) {
  uint64_t bytes = tensor.element_bytes;
  for (uint32_t axis = 0; axis < tensor.ndim; ++axis) {
    bytes *= static_cast<uint64_t>(tensor.shape[axis]);
  }
  return bytes;
}

}  // namespace

RowRange RankRows(const penstock_loader& loader, uint32_t first, uint32_t count) {
  const penstock::ring::ConsumerSpec& spec = loader.spec;
  const uint64_t begin = uint64_t{spec.rank} * count / spec.world_size;
  const uint64_t end = (uint64_t{spec.rank} + 1) * count / spec.world_size;
  return {first + static_cast<uint32_t>(begin), static_cast<uint32_t>(end - begin)};
}

void Describe(const Reader& reader, penstock_loader* loader) {
  loader->structure = reader.structure();
  loader->num_steps = reader.num_steps();
  loader->uncounted = reader.uncounted();
  loader->pass_steps = reader.pass_steps();
  const std::vector<TensorEntry>& entries = loader->entries;
  loader->tensors.resize(entries.size());
  loader->shapes.resize(entries.size() * kMaxDims);
  for (const TensorEntry& entry : entries) {
    loader->names.emplace_back(entry.name, entry.name_bytes);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const TensorEntry& entry = entries[i];
    penstock_tensor& tensor = loader->tensors[i];
    tensor.name = loader->names[i].c_str();
    tensor.dtype = entry.dtype;
    tensor.kind = entry.kind;
    tensor.ragged_rank = entry.ragged_rank;
    tensor.dynamic = entry.ragged_rank == 0 && entry.kind != PENSTOCK_KIND_SPARSE &&
                     penstock::ring::HasUnknownAxis(entry);
    tensor.element_bytes = static_cast<uint32_t>(penstock::ring::ElementBytes(entry.dtype));
    tensor.ndim = entry.ndim;
    tensor.batched = (entry.flags & penstock::ring::kTensorBatched) != 0;
    tensor.narrow_splits = (entry.flags & penstock::ring::kTensorNarrowSplits) != 0;
    int64_t* shape = &loader->shapes[i * kMaxDims];
    std::copy(entry.shape, entry.shape + entry.ndim, shape);
    tensor.shape = shape;
    if (tensor.batched && shape[0] >= 0) {
      const auto rows = static_cast<uint32_t>(std::min<int64_t>(shape[0], UINT32_MAX));
      shape[0] = RankRows(*loader, 0, loader->batch_rows > 0 ? loader->batch_rows : rows).count;
    }
    if (penstock::ring::IsFixed(entry)) {
      tensor.bytes = TensorBytes(tensor);
    } else {
      loader->variable.push_back(static_cast<uint32_t>(i));
    }
  }
}

void Prepare(penstock_loader* loader, const uint8_t* data, penstock_batch* batch) {
  batch->tensors = loader->tensors;
  batch->shapes = loader->shapes;
  batch->first_row = batch->rows = UINT32_MAX;
  for (size_t i = 0; i < batch->tensors.size(); ++i) {
    const TensorEntry& entry = loader->entries[i];
    if (penstock::ring::IsFixed(entry)) batch->tensors[i].data = data + entry.offset;
    batch->tensors[i].shape = &batch->shapes[i * kMaxDims];
  }
  // Last: it says that all of this is done.
  batch->loader = loader;
}

namespace {

// Shows rows of a step, and where they lie: mostly the same as the last time.
void ShowRows(RowRange range, const uint8_t* data, penstock_batch* batch) {
  if (range == RowRange{batch->first_row, batch->rows}) return;
  const penstock_loader& loader = *batch->loader;
  batch->first_row = range.first;
  batch->rows = range.count;
  for (size_t i = 0; i < batch->tensors.size(); ++i) {
    penstock_tensor& tensor = batch->tensors[i];
    const TensorEntry& entry = loader.entries[i];
    if (!tensor.batched || !penstock::ring::IsFixed(entry)) continue;
    // A reader of a torn table must not leave the tensor.
    const auto capacity = static_cast<uint32_t>(std::min<int64_t>(entry.shape[0], UINT32_MAX));
    const uint32_t first = std::min(range.first, capacity);
    batch->shapes[i * kMaxDims] = std::min(range.count, capacity - first);
    tensor.data = data + entry.offset + first * entry.row_bytes;
    tensor.bytes = TensorBytes(tensor);
  }
}

}  // namespace

bool Show(const Lease& lease, RowRange range, penstock_batch* batch) {
  batch->lease = lease;
  ShowRows(range, lease.data, batch);
  batch->valid_rows =
      std::min(lease.valid_rows - std::min(lease.valid_rows, batch->first_row), batch->rows);
  batch->counted_anew.clear();
  for (const uint32_t i : batch->loader->variable) {
    penstock::ring::TensorParts parts;
    if (!batch->source->reader->Find(lease, i, &parts)) return false;
    penstock_tensor& tensor = batch->tensors[i];
    tensor.data = parts.values;
    tensor.bytes = parts.values_bytes;
    tensor.offsets = parts.offsets;
    tensor.num_strings = parts.offsets != nullptr ? parts.num_offsets - 1 : 0;
    for (uint32_t axis = 0; axis < tensor.ragged_rank; ++axis) {
      tensor.row_splits[axis] = parts.splits[axis];
      tensor.num_row_splits[axis] = parts.num_splits[axis];
    }
    std::copy(parts.shape, parts.shape + tensor.ndim, &batch->shapes[i * kMaxDims]);
    tensor.indices = parts.indices;
    tensor.num_values = parts.indices != nullptr ? parts.num_indices / tensor.ndim : 0;
    for (uint32_t axis = 1; axis <= tensor.ragged_rank; ++axis) {
      batch->shapes[i * kMaxDims + axis] = -1;
    }
    if ((batch->loader->spec.world_size > 1 || batch->loader->batch_rows > 0) && tensor.batched &&
        !TakeRows(batch->first_row, batch->rows, &tensor, &batch->shapes[i * kMaxDims],
                  &batch->counted_anew)) {
      batch->source->reader->FailTorn(lease, i, "an offset or a row split leads out of its tensor");
      return false;
    }
  }
  return true;
}

uint64_t PartsBytes(const penstock_tensor& tensor) {
  uint64_t bytes = tensor.bytes;
  if (tensor.offsets != nullptr) bytes += (tensor.num_strings + 1) * sizeof(int64_t);
  for (uint32_t axis = 0; axis < tensor.ragged_rank; ++axis) {
    bytes += tensor.num_row_splits[axis] * sizeof(int64_t);
  }
  if (tensor.indices != nullptr) bytes += tensor.num_values * tensor.ndim * sizeof(int64_t);
  return bytes;
}

namespace {

// Calls visit(pointer, bytes) for each part of a tensor, which lies where it returns from then on.
template <typename Visit>
void ForEachPart(penstock_tensor* tensor, const Visit& visit) {
  const auto visit_numbers = [&visit](const int64_t** numbers, uint64_t count) {
    *numbers = static_cast<const int64_t*>(visit(*numbers, count * sizeof(int64_t)));
  };
  tensor->data = visit(tensor->data, tensor->bytes);
  if (tensor->offsets != nullptr) visit_numbers(&tensor->offsets, tensor->num_strings + 1);
  for (uint32_t axis = 0; axis < tensor->ragged_rank; ++axis) {
    visit_numbers(&tensor->row_splits[axis], tensor->num_row_splits[axis]);
  }
  if (tensor->indices != nullptr)
    visit_numbers(&tensor->indices, tensor->num_values * tensor->ndim);
}

// Where a copy keeps a part of `bytes` bytes: aligned, and with spare bytes behind it.
uint64_t PaddedBytes(uint64_t bytes) {
  using penstock::ring::kTensorAlignment;
  return (bytes + penstock::ring::kTensorPadding + kTensorAlignment - 1) & ~(kTensorAlignment - 1);
}

}  // namespace

penstock_batch* Copy(penstock_loader* loader, Source* source, const Lease& lease, RowRange range) {
  auto copy = std::unique_ptr<penstock_batch>(new (std::nothrow) penstock_batch);
  if (copy == nullptr) return nullptr;
  copy->is_copy = true;
  copy->source = source;
  Prepare(loader, lease.data, copy.get());
  if (!Show(lease, range, copy.get())) return nullptr;
  uint64_t bytes = PaddedBytes(lease.cursor_bytes);
  const auto add = [&bytes](const void* from, uint64_t part) {
    bytes += PaddedBytes(part);
    return from;
  };
  for (penstock_tensor& tensor : copy->tensors) ForEachPart(&tensor, add);
  copy->memory.reset(
      static_cast<uint8_t*>(std::aligned_alloc(penstock::ring::kTensorAlignment, bytes)));
  if (copy->memory == nullptr) return nullptr;
  uint8_t* next = copy->memory.get();
  const auto take = [&next](const void* from, uint64_t part) -> const void* {
    uint8_t* to = next;
    if (part > 0) std::memcpy(to, from, part);
    next += PaddedBytes(part);
    return to;
  };
  for (penstock_tensor& tensor : copy->tensors) ForEachPart(&tensor, take);
  copy->lease.cursor = static_cast<const uint8_t*>(take(lease.cursor, lease.cursor_bytes));
  return copy.release();
}

}  // namespace penstock_client
