#include "client/c/penstock.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "client/c/attaching.h"
#include "client/c/error.h"
#include "client/c/hang_up_watch.h"
#include "client/c/loader.h"
#include "client/c/next.h"
#include "client/c/own_batches.h"
#include "client/c/source.h"
#include "client/c/spec_request.h"
#include "ring/answer_time.h"
#include "ring/attach.h"
#include "ring/futex.h"
#include "ring/layout.h"

namespace penstock_client {

std::string& LastError() {
  thread_local std::string error;
  return error;
}

}  // namespace penstock_client

namespace {

using penstock::ring::Code;
using penstock::ring::Lease;
using penstock::ring::MonotonicNs;
using penstock::ring::Operation;
using penstock::ring::Reader;
using penstock::ring::Status;
using penstock_client::Fail;
using penstock_client::Guarded;
using penstock_client::LastError;
using penstock_client::Source;

constexpr double kDefaultReconnectSeconds = 60;
constexpr double kDefaultAttachSeconds = 60;

int FailInChild() {
  return Guarded([] { return Fail({Code::kFailedPrecondition, penstock::ring::kOfParent}); });
}

// What a forked child may do with its parent's loader: give back the memory, if no thread that
// stayed behind was at it.
void ForgetInChild(penstock_loader* loader) {
  {
    const std::unique_lock<std::mutex> lock(loader->next_mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;
    loader->reattachment.socket = {};
    penstock_client::DropOwn(loader);
    penstock_client::DropReady(loader);
  }
  penstock_client::Unreference(loader);
}

int NumSteps(const penstock_loader& loader, uint64_t* steps) {
  if (!loader.num_steps) {
    return Fail(
        {Code::kFailedPrecondition, "the length of this stream is not known: " + loader.uncounted});
  }
  *steps = *loader.num_steps;
  if (loader.batch_rows == 0) return PENSTOCK_OK;
  const Status status = penstock_client::CountOwnBatches(loader, steps);
  return status.ok() ? PENSTOCK_OK : Fail(status);
}

}  // namespace

extern "C" {

void penstock_default_options_of(penstock_attach_options* options, uint64_t bytes) {
  penstock_attach_options all = {};
  all.bytes = std::min<uint64_t>(bytes, sizeof all);
  all.world_size = 1;
  all.replicas = 1;
  all.lag_seconds = penstock::ring::kDefaultLagMs / 1000;
  all.reconnect_seconds = kDefaultReconnectSeconds;
  all.attach_seconds = kDefaultAttachSeconds;
  std::memcpy(options, &all, all.bytes);
}

int penstock_attach(const char* name, const char* socket, const char* group,
                    penstock_loader** loader) {
  penstock_attach_options options;
  penstock_default_options(&options);
  options.pipeline = name;
  options.socket = socket;
  options.group = group;
  return penstock_attach_with(&options, loader);
}

int penstock_attach_with(const penstock_attach_options* given, penstock_loader** loader) {
  LastError().clear();
  *loader = nullptr;
  return Guarded([&] { return penstock_client::AttachWith(given, loader); });
}

int penstock_seek(penstock_loader* loader, const void* cursor, uint32_t bytes) {
  LastError().clear();
  if (penstock_client::IsOfParent(*loader)) return FailInChild();
  std::lock_guard<std::mutex> lock(loader->next_mutex);
  return Guarded([&] { return penstock_client::Seek(loader, cursor, bytes); });
}

int penstock_next(penstock_loader* loader, int64_t timeout_ns, penstock_batch** out) {
  *out = nullptr;
  if (penstock_client::IsOfParent(*loader)) return FailInChild();
  std::lock_guard<std::mutex> lock(loader->next_mutex);
  const uint64_t until_ns = timeout_ns == PENSTOCK_FOREVER ? UINT64_MAX
                            : timeout_ns <= 0              ? 0
                                              : MonotonicNs() + static_cast<uint64_t>(timeout_ns);
  const int code = Guarded([&] { return penstock_client::NextBatch(loader, until_ns, out); });
  if (code == PENSTOCK_OK) (*out)->taken = loader->num_taken++;
  return code;
}

int penstock_ready(penstock_loader* loader) {
  if (penstock_client::IsOfParent(*loader)) return 0;
  std::unique_lock<std::mutex> lock(loader->next_mutex, std::try_to_lock);
  if (!lock.owns_lock() || loader->lost) return 0;
  if (loader->batch_rows == 0)
    return !loader->reattachment.active && loader->source->reader->Ready();
  // Whether there is a whole one turns out by making it.
  const auto make = [loader] { return penstock_client::MakeOwn(loader, 0, &loader->own.ready); };
  while (loader->own.ready == nullptr && !loader->reattachment.active) {
    if (Guarded(make) != PENSTOCK_OK) break;
  }
  return loader->own.ready != nullptr;
}

void penstock_batch_release(penstock_batch* batch) {
  if (batch == nullptr) return;
  penstock_loader* loader = batch->loader;
  if (batch->is_copy) {
    penstock_client::ReleaseHeld(loader, batch);
    delete batch;
  } else {
    // A copy of the lease: the slot's batch may be handed out again as soon as it is released.
    const Lease lease = batch->lease;
    Source* source = batch->source;
    const bool was_written = std::exchange(batch->was_written, false);
    if (loader->batch_rows > 0) {
      if (was_written)
        source->shared_leases[lease.slot].was_written.store(true, std::memory_order_relaxed);
      penstock_client::ReleaseShare(loader, source, lease);
    } else {
      if (was_written) source->view.Drop(lease.data, source->reader->slot_stride());
      penstock_client::ReleaseLease(loader, source, lease);
    }
    penstock_client::Unreference(source);
  }
  penstock_client::Unreference(loader);
}

void* penstock_batch_writable(penstock_batch* batch, const void* data) {
  if (batch->is_copy) return const_cast<void*>(data);
  if (penstock_client::IsOfParent(*batch->loader)) {
    FailInChild();
    return nullptr;
  }
  Source* source = batch->source;
  const Reader& reader = *source->reader;
  {
    std::lock_guard<std::mutex> lock(batch->loader->mutex);
    if (!source->view.is_mapped() &&
        !source->view.Map(reader.segment_fd(), reader.segment(), reader.segment_bytes())) {
      Guarded([] {
        return Fail({Code::kResourceExhausted,
                     std::string("cannot map the ring for writing: ") + std::strerror(errno)});
      });
      return nullptr;
    }
  }
  uint8_t* found = source->view.Find(data);
  // Offsets of a rank's rows lie in memory of the batch itself.
  if (found == nullptr) return const_cast<void*>(data);
  batch->was_written = true;
  return found;
}

void penstock_detach(penstock_loader* loader) {
  if (loader == nullptr) return;
  if (penstock_client::IsOfParent(*loader)) return ForgetInChild(loader);
  penstock_client::Unwatch(loader);
  {
    std::lock_guard<std::mutex> lock(loader->next_mutex);
    loader->reattachment.socket = {};
    penstock_client::DropOwn(loader);
    Guarded([loader] {
      loader->source->reader->Leave();
      return static_cast<int>(PENSTOCK_OK);
    });
    penstock_client::DropReady(loader);
  }
  penstock_client::Unreference(loader);
}

uint32_t penstock_num_tensors(const penstock_loader* loader) {
  return static_cast<uint32_t>(loader->tensors.size());
}
const penstock_tensor* penstock_tensor_info(const penstock_loader* loader, uint32_t index) {
  return index < loader->tensors.size() ? &loader->tensors[index] : nullptr;
}

const char* penstock_structure(const penstock_loader* loader) { return loader->structure.c_str(); }

int penstock_num_steps(const penstock_loader* loader, uint64_t* steps) {
  LastError().clear();
  return Guarded([&] { return NumSteps(*loader, steps); });
}

uint64_t penstock_batch_step(const penstock_batch* batch) {
  return batch->loader->batch_rows > 0 ? batch->number : batch->lease.step;
}
uint64_t penstock_batch_epoch(const penstock_batch* batch) { return batch->lease.epoch; }
uint32_t penstock_batch_rows(const penstock_batch* batch) { return batch->rows; }
uint32_t penstock_batch_valid(const penstock_batch* batch) { return batch->valid_rows; }
const void* penstock_batch_cursor(const penstock_batch* batch, uint32_t* bytes) {
  if (!batch->own_cursor.empty()) {
    *bytes = static_cast<uint32_t>(batch->own_cursor.size());
    return batch->own_cursor.data();
  }
  *bytes = batch->lease.cursor_bytes;
  return batch->lease.cursor;
}
uint64_t penstock_batch_taken(const penstock_batch* batch) { return batch->taken; }

int penstock_batch_redelivered(const penstock_batch* batch) { return batch->lease.redelivered; }
int penstock_batch_is_copy(const penstock_batch* batch) { return batch->is_copy; }
int penstock_batch_is_joined(const penstock_batch* batch) { return batch->joined != nullptr; }
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
  *stats = {};
  // The lock may have been another thread's when this process was forked.
  if (penstock_client::IsOfParent(*loader)) return;
  std::lock_guard<std::mutex> lock(loader->mutex);
  const Reader& reader = *loader->source->reader;
  const penstock::ring::ReaderStats seen = reader.stats();
  const penstock::ring::ReaderStats& earlier = loader->earlier_stats;
  stats->batches = earlier.batches + seen.batches;
  stats->bytes = loader->bytes;
  stats->copies = loader->copies;
  stats->waits = earlier.waits + seen.waits;
  stats->sleeps = earlier.sleeps + seen.sleeps;
  stats->wait_ns = earlier.wait_ns + seen.wait_ns;
  stats->position = loader->batch_rows > 0 ? loader->own_position.load(std::memory_order_relaxed)
                                           : reader.next_step();
  stats->published = loader->batch_rows > 0
                         ? penstock_client::OwnBatches(*loader, reader.published())
                         : reader.published();
  stats->leases = reader.leases();
  stats->lease_share = reader.lease_share();
  stats->consumer = reader.consumer();
  stats->reconnects = loader->reconnects;
}

uint64_t penstock_skipped(penstock_loader* loader) {
  if (penstock_client::IsOfParent(*loader)) return 0;
  std::lock_guard<std::mutex> lock(loader->mutex);
  return loader->earlier_stats.skipped + loader->source->reader->stats().skipped;
}

uint64_t penstock_joined(penstock_loader* loader) { return loader->joined; }

namespace {

int AskFor(const char* socket, Operation operation, const char* name, const char* spec,
           char** description) {
  const std::string path =
      socket != nullptr && *socket != '\0' ? socket : penstock::ring::DefaultSocketPath();
  std::string answer;
  penstock_client::SpecRequest asked;
  asked.operation = operation;
  if (name != nullptr) asked.name = name;
  if (spec != nullptr) asked.spec = spec;
  Status status = penstock::ring::AnswerTime(asked.silence_ns_max, &asked.silence_ns_max);
  if (!status.ok()) return Fail(status);
  status = penstock_client::RequestSpec(path, asked, &answer);
  if (!status.ok()) return Fail(status);
  if (description == nullptr) return PENSTOCK_OK;
  *description = strdup(answer.c_str());
  if (*description != nullptr) return PENSTOCK_OK;
  return Fail({penstock::ring::Code::kResourceExhausted, "no memory for a description"});
}

int Ask(const char* socket, Operation operation, const char* name, const char* spec,
        char** description) {
  LastError().clear();
  return Guarded([&] { return AskFor(socket, operation, name, spec, description); });
}

}  // namespace

int penstock_create(const char* socket, const char* name, const char* spec, char** description) {
  return Ask(socket, Operation::kCreate, name, spec, description);
}

int penstock_validate(const char* socket, const char* spec, char** description) {
  return Ask(socket, Operation::kValidate, nullptr, spec, description);
}

int penstock_delete(const char* socket, const char* name) {
  return Ask(socket, Operation::kDelete, name, nullptr, nullptr);
}

void penstock_free(char* text) { free(text); }

const char* penstock_last_error(void) { return LastError().c_str(); }
const char* penstock_version(void) { return PENSTOCK_VERSION; }
uint32_t penstock_abi_version(void) { return penstock::ring::kAbiVersion; }

const char* penstock_default_socket(void) {
  thread_local std::string path;
  Guarded([] {
    path = penstock::ring::DefaultSocketPath();
    return static_cast<int>(PENSTOCK_OK);
  });
  return path.c_str();
}

// Of programs from before penstock_default_options_of, which knew the fields in front of this one.
#undef penstock_default_options
void penstock_default_options(penstock_attach_options* options) {
  penstock_default_options_of(options, offsetof(penstock_attach_options, attach_seconds));
}

}  // extern "C"
