#include "client/c/penstock.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "client/c/loader.h"
#include "ring/attach.h"
#include "ring/layout.h"
#include "ring/segment_plan.h"

namespace {

using penstock::ring::Code;
using penstock::ring::kMaxDims;
using penstock::ring::Lease;
using penstock::ring::Reader;
using penstock::ring::Status;
using penstock::ring::TensorEntry;

// How long penstockd may take to answer a request to attach.
constexpr uint64_t kAttachTimeoutNs = 10'000'000'000;

thread_local std::string last_error;

int Fail(const Status& status) {
  last_error = status.message;
  return static_cast<int>(status.code);
}

void Unreference(penstock_loader* loader) {
  if (loader->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete loader;
}

uint64_t TensorBytes(const penstock_tensor& tensor) {
  uint64_t bytes = tensor.element_bytes;
  for (uint32_t axis = 0; axis < tensor.ndim; ++axis) {
    bytes *= static_cast<uint64_t>(tensor.shape[axis]);
  }
  return bytes;
}

// Describes full batches.
void Describe(penstock_loader* loader) {
  const std::vector<TensorEntry>& entries = loader->reader->tensors();
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
    tensor.dynamic = entry.ragged_rank == 0 && penstock::ring::HasUnknownAxis(entry);
    tensor.element_bytes = static_cast<uint32_t>(penstock::ring::ElementBytes(entry.dtype));
    tensor.ndim = entry.ndim;
    tensor.batched = (entry.flags & penstock::ring::kTensorBatched) != 0;
    int64_t* shape = &loader->shapes[i * kMaxDims];
    std::copy(entry.shape, entry.shape + entry.ndim, shape);
    tensor.shape = shape;
    if (penstock::ring::IsFixed(entry)) {
      tensor.bytes = TensorBytes(tensor);
    } else {
      loader->variable.push_back(static_cast<uint32_t>(i));
    }
  }
}

// Gives a batch its own shapes, and fixed tensors that lie at `data`.
void Prepare(penstock_loader* loader, const uint8_t* data, penstock_batch* batch) {
  batch->loader = loader;
  batch->tensors = loader->tensors;
  batch->shapes = loader->shapes;
  batch->shaped_rows = UINT32_MAX;
  for (size_t i = 0; i < batch->tensors.size(); ++i) {
    const TensorEntry& entry = loader->reader->tensors()[i];
    if (penstock::ring::IsFixed(entry)) batch->tensors[i].data = data + entry.offset;
    batch->tensors[i].shape = &batch->shapes[i * kMaxDims];
  }
}

// Shows `rows` rows of the fixed tensors: fewer than a full batch's only in a short one.
void ShowRows(uint32_t rows, penstock_batch* batch) {
  if (batch->shaped_rows == rows) return;
  batch->shaped_rows = rows;
  for (size_t i = 0; i < batch->tensors.size(); ++i) {
    penstock_tensor& tensor = batch->tensors[i];
    if (!tensor.batched || !penstock::ring::IsFixed(batch->loader->reader->tensors()[i])) continue;
    const penstock_tensor& full = batch->loader->tensors[i];
    batch->shapes[i * kMaxDims] = std::min<int64_t>(rows, full.shape[0]);
    tensor.bytes = TensorBytes(tensor);
  }
}

// Shows the leased step in a batch that is prepared. False with the reader's error when its tables
// are torn.
bool Show(const Lease& lease, penstock_batch* batch) {
  batch->lease = lease;
  ShowRows(lease.rows, batch);
  for (const uint32_t i : batch->loader->variable) {
    penstock::ring::TensorParts parts;
    if (!batch->loader->reader->Find(lease, i, &parts)) return false;
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
    for (uint32_t axis = 1; axis <= tensor.ragged_rank; ++axis) {
      batch->shapes[i * kMaxDims + axis] = -1;
    }
  }
  return true;
}

// The bytes of all parts of a tensor.
uint64_t PartsBytes(const penstock_tensor& tensor) {
  uint64_t bytes = tensor.bytes;
  if (tensor.offsets != nullptr) bytes += (tensor.num_strings + 1) * sizeof(int64_t);
  for (uint32_t axis = 0; axis < tensor.ragged_rank; ++axis) {
    bytes += tensor.num_row_splits[axis] * sizeof(int64_t);
  }
  return bytes;
}

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
}

// Where a copy keeps a part of `bytes` bytes: aligned, and with spare bytes behind it.
uint64_t PaddedBytes(uint64_t bytes) {
  using penstock::ring::kTensorAlignment;
  return (bytes + penstock::ring::kTensorPadding + kTensorAlignment - 1) & ~(kTensorAlignment - 1);
}

// A private copy of a leased batch; null when there is no memory for it or the reader has an error.
penstock_batch* Copy(penstock_loader* loader, const Lease& lease) {
  auto copy = std::unique_ptr<penstock_batch>(new (std::nothrow) penstock_batch);
  if (copy == nullptr) return nullptr;
  copy->is_copy = true;
  Prepare(loader, lease.data, copy.get());
  if (!Show(lease, copy.get())) return nullptr;
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

int TakeCopy(penstock_loader* loader, const Lease& lease, penstock_batch** out) {
  *out = Copy(loader, lease);
  loader->reader->Release(lease);
  if (*out == nullptr) {
    if (!loader->reader->error().ok()) return Fail(loader->reader->error());
    return Fail({Code::kResourceExhausted, "no memory for a copy of a batch"});
  }
  loader->copies.fetch_add(1, std::memory_order_relaxed);
  return PENSTOCK_OK;
}

}  // namespace

extern "C" {

int penstock_attach(const char* name, const char* socket, const char* group,
                    penstock_loader** loader) {
  last_error.clear();
  *loader = nullptr;
  if (name == nullptr) return Fail({Code::kInvalidArgument, "a pipeline's name is needed"});
  const std::string path =
      socket != nullptr && *socket != '\0' ? socket : penstock::ring::DefaultSocketPath();
  penstock::ring::Attachment attachment;
  Status status = penstock::ring::Attach(path, name, group != nullptr ? group : "",
                                         kAttachTimeoutNs, &attachment);
  if (!status.ok()) return Fail(status);
  auto made = std::make_unique<penstock_loader>();
  status = Reader::Open(attachment, &made->reader);
  if (!status.ok()) return Fail(status);
  Describe(made.get());
  made->slots = std::vector<penstock_batch>(made->reader->slots_max());
  *loader = made.release();
  return PENSTOCK_OK;
}

int penstock_next(penstock_loader* loader, int64_t timeout_ns, penstock_batch** out) {
  *out = nullptr;
  std::lock_guard<std::mutex> lock(loader->next_mutex);
  Reader& reader = *loader->reader;
  Lease lease;
  const uint64_t timeout = timeout_ns == PENSTOCK_FOREVER
                               ? UINT64_MAX
                               : static_cast<uint64_t>(std::max<int64_t>(timeout_ns, 0));
  // Before it takes one more: a copy is for the batch beyond the share.
  const bool share_full = reader.leases() >= reader.lease_share();
  switch (reader.Next(timeout, &lease)) {
    case Reader::Result::kEnd:
      return PENSTOCK_END;
    case Reader::Result::kTimeout:
      last_error = "no batch was ready in time";
      return PENSTOCK_TIMEOUT;
    case Reader::Result::kFailed:
      return Fail(reader.error());
    case Reader::Result::kBatch:
      break;
  }
  if (share_full) {
    const int code = TakeCopy(loader, lease, out);
    if (code != PENSTOCK_OK) return code;
  } else {
    penstock_batch& batch = loader->slots[lease.slot];
    if (batch.loader == nullptr) Prepare(loader, lease.data, &batch);
    if (!Show(lease, &batch)) {
      reader.Release(lease);
      return Fail(reader.error());
    }
    *out = &batch;
  }
  uint64_t bytes = loader->bytes.load(std::memory_order_relaxed);
  for (const penstock_tensor& tensor : (*out)->tensors) bytes += PartsBytes(tensor);
  loader->bytes.store(bytes, std::memory_order_relaxed);
  loader->references.fetch_add(1, std::memory_order_relaxed);
  return PENSTOCK_OK;
}

int penstock_ready(penstock_loader* loader) {
  std::unique_lock<std::mutex> lock(loader->next_mutex, std::try_to_lock);
  return lock.owns_lock() && loader->reader->Ready();
}

void penstock_batch_release(penstock_batch* batch) {
  if (batch == nullptr) return;
  penstock_loader* loader = batch->loader;
  if (batch->is_copy) {
    delete batch;
  } else {
    // A copy of the lease: the slot's batch may be handed out again as soon as it is released.
    const Lease lease = batch->lease;
    loader->reader->Release(lease);
  }
  Unreference(loader);
}

void penstock_detach(penstock_loader* loader) {
  if (loader == nullptr) return;
  {
    std::lock_guard<std::mutex> lock(loader->next_mutex);
    loader->reader->Leave();
  }
  Unreference(loader);
}

uint32_t penstock_num_tensors(const penstock_loader* loader) {
  return static_cast<uint32_t>(loader->tensors.size());
}
const penstock_tensor* penstock_tensor_info(const penstock_loader* loader, uint32_t index) {
  return index < loader->tensors.size() ? &loader->tensors[index] : nullptr;
}

const char* penstock_structure(const penstock_loader* loader) {
  return loader->reader->structure().c_str();
}

int penstock_num_steps(const penstock_loader* loader, uint64_t* steps) {
  last_error.clear();
  const std::optional<uint64_t> known = loader->reader->num_steps();
  if (!known) {
    return Fail({Code::kFailedPrecondition,
                 "the length of this stream is not known: " + loader->reader->uncounted()});
  }
  *steps = *known;
  return PENSTOCK_OK;
}

uint64_t penstock_batch_step(const penstock_batch* batch) { return batch->lease.step; }
uint64_t penstock_batch_epoch(const penstock_batch* batch) { return batch->lease.epoch; }
uint32_t penstock_batch_rows(const penstock_batch* batch) { return batch->lease.rows; }
uint32_t penstock_batch_valid(const penstock_batch* batch) { return batch->lease.valid_rows; }
const void* penstock_batch_cursor(const penstock_batch* batch, uint32_t* bytes) {
  *bytes = batch->lease.cursor_bytes;
  return batch->lease.cursor;
}
int penstock_batch_is_copy(const penstock_batch* batch) { return batch->is_copy; }
uint32_t penstock_batch_num_tensors(const penstock_batch* batch) {
  return static_cast<uint32_t>(batch->tensors.size());
}
const penstock_tensor* penstock_batch_tensor(const penstock_batch* batch, uint32_t index) {
  return index < batch->tensors.size() ? &batch->tensors[index] : nullptr;
}
const penstock_tensor* penstock_batch_find(const penstock_batch* batch, const char* name) {
  for (const penstock_tensor& tensor : batch->tensors) {
    if (std::strcmp(tensor.name, name) == 0) return &tensor;
  }
  return nullptr;
}

void penstock_get_stats(penstock_loader* loader, penstock_stats* stats) {
  const Reader& reader = *loader->reader;
  const penstock::ring::ReaderStats seen = reader.stats();
  *stats = {};
  stats->batches = seen.batches;
  stats->bytes = loader->bytes;
  stats->copies = loader->copies;
  stats->waits = seen.waits;
  stats->sleeps = seen.sleeps;
  stats->wait_ns = seen.wait_ns;
  stats->position = reader.position();
  stats->published = reader.published();
  stats->leases = reader.leases();
  stats->lease_share = reader.lease_share();
  stats->consumer = reader.consumer();
}

const char* penstock_last_error(void) { return last_error.c_str(); }
const char* penstock_version(void) { return PENSTOCK_VERSION; }
uint32_t penstock_abi_version(void) { return penstock::ring::kAbiVersion; }

const char* penstock_default_socket(void) {
  thread_local std::string path;
  path = penstock::ring::DefaultSocketPath();
  return path.c_str();
}

}  // extern "C"
