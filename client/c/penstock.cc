#include "client/c/penstock.h"

#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/c/batch.h"
#include "client/c/error.h"
#include "client/c/hang_up_watch.h"
#include "client/c/loader.h"
#include "client/c/own_batches.h"
#include "client/c/penstock_cuda.h"
#include "client/c/source.h"
#include "client/c/spec_request.h"
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
using penstock::ring::ConsumerPosition;
using penstock::ring::ConsumerSpec;
using penstock::ring::Lease;
using penstock::ring::MonotonicNs;
using penstock::ring::Operation;
using penstock::ring::Reader;
using penstock::ring::Status;
using penstock_client::Fail;
using penstock_client::Guarded;
using penstock_client::LastError;
using penstock_client::Source;

// How long penstockd may take to answer a request to attach: a restarted one waits for its other
// consumers first.
constexpr uint64_t kAttachTimeoutNs = 60'000'000'000;
constexpr double kDefaultReconnectSeconds = 60;

void Unreference(penstock_loader* loader) {
  if (loader->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  penstock_client::Unreference(loader->source);
  delete loader;
}

// A lease whose rows have not been given yet: whatever ends the call before that lets go of it.
class Untaken {
 public:
  Untaken(penstock_loader* loader, const Lease& lease) : loader_(loader), lease_(lease) {}
  Untaken(const Untaken&) = delete;
  Untaken& operator=(const Untaken&) = delete;
  ~Untaken() {
    if (is_given_) return;
    loader_->lost = true;
    // A split group gives it to another one when this one leaves.
    if (loader_->spec.mode != penstock::ring::GroupMode::kSplit)
      penstock_client::ReleaseLease(loader_, loader_->source, lease_);
  }
  void Give() { is_given_ = true; }

 private:
  penstock_loader* const loader_;
  const Lease& lease_;
  bool is_given_ = false;
};

int TakeCopy(penstock_loader* loader, const Lease& lease, penstock_batch** out) {
  Source* source = loader->source;
  *out = penstock_client::Copy(loader, source, lease,
                               penstock_client::RankRows(*loader, 0, lease.rows));
  if (*out == nullptr) {
    if (!source->reader->error().ok()) return Fail(source->reader->error());
    return Fail({Code::kResourceExhausted, "no memory for a copy of a batch"});
  }
  penstock_client::ReleaseLease(loader, source, lease);
  loader->copies.fetch_add(1, std::memory_order_relaxed);
  return PENSTOCK_OK;
}

uint64_t ToNs(double seconds) {
  return seconds > 0 ? static_cast<uint64_t>(std::min(seconds, 1e9) * 1e9) : 0;
}

// What the options say of the consumer and its position.
Status ReadOptions(const penstock_attach_options& options, penstock_loader* loader,
                   ConsumerPosition* position) {
  const auto text = [](const char* given) { return std::string(given != nullptr ? given : ""); };
  if (options.pipeline == nullptr) return {Code::kInvalidArgument, "a pipeline's name is needed"};
  loader->pipeline = options.pipeline;
  loader->socket_path = text(options.socket);
  if (loader->socket_path.empty()) loader->socket_path = penstock::ring::DefaultSocketPath();
  ConsumerSpec& spec = loader->spec;
  spec.group = text(options.group);
  spec.name = text(options.consumer_name);
  if (loader->pipeline.empty() || loader->pipeline.size() > penstock::ring::kMaxNameBytes ||
      spec.group.size() > penstock::ring::kMaxGroupBytes ||
      spec.name.size() > penstock::ring::kMaxGroupBytes) {
    return {Code::kInvalidArgument,
            "a pipeline's name has 1 to 128 bytes, and those of a group and of a consumer at most "
            "64: " +
                std::to_string(loader->pipeline.size()) + ", " + std::to_string(spec.group.size()) +
                " and " + std::to_string(spec.name.size())};
  }
  if (spec.group.empty()) spec.group = "default";
  if (options.cursor_bytes > penstock::ring::kMaxCursorBytes + penstock_client::kCursorHeadBytes) {
    return {Code::kInvalidArgument,
            "a cursor has at most 1024 bytes: " + std::to_string(options.cursor_bytes)};
  }
  spec.mode = static_cast<penstock::ring::GroupMode>(options.mode);
  spec.rank = options.rank;
  spec.world_size = options.world_size;
  spec.replica = options.replica;
  spec.replicas = options.replicas;
  spec.at_most_once = options.at_most_once != 0;
  spec.slow = static_cast<penstock::ring::SlowPolicy>(options.slow);
  spec.lag_ms =
      static_cast<uint32_t>(std::min<uint64_t>(ToNs(options.lag_seconds) / 1'000'000, UINT32_MAX));
  spec.take_over = options.take_over != 0;
  if (getrandom(&spec.identity, sizeof spec.identity, 0) != sizeof spec.identity) {
    spec.identity = MonotonicNs() ^ (static_cast<uint64_t>(getpid()) << 40);
  }
  loader->reconnect_ns = ToNs(options.reconnect_seconds);
  loader->cuda = options.cuda;
  spec.on_device = options.cuda != nullptr;
  if (options.cursor != nullptr) {
    position->cursor.assign(static_cast<const char*>(options.cursor), options.cursor_bytes);
  }
  loader->batch_rows = options.batch_rows;
  if (loader->batch_rows > 0 && loader->cuda != nullptr) {
    return {Code::kInvalidArgument,
            "batch_rows is for batches in shared memory: a device's ring gives whole ones"};
  }
  if (Status status = penstock_client::TakeCursorHead(loader, position); !status.ok())
    return status;
  return penstock::ring::CheckSpec(spec);
}

// A step that is one element has no rows to divide.
Status CheckRows(const penstock_loader& loader) {
  if (loader.spec.world_size == 1) return {};
  for (const penstock_tensor& tensor : loader.tensors) {
    if (tensor.batched != 0) return {};
  }
  return {Code::kFailedPrecondition,
          "ranks divide the rows of a batch, and this pipeline has no `batch` (pipeline " +
              loader.pipeline + ")"};
}

// Of a device's ring nothing is copied: when the share is full, waits for a batch that is being released.
int WaitForShare(penstock_loader* loader, uint64_t until_ns) {
  while (true) {
    uint64_t pending = 0;
    const int code = penstock_cuda_poll(loader->cuda, &pending);
    if (code != PENSTOCK_OK) return code;
    const Reader& reader = *loader->source->reader;
    const uint32_t share = reader.lease_share();
    if (reader.leases() < share) return PENSTOCK_OK;
    if (pending == 0) {
      return Fail({Code::kResourceExhausted,
                   "this trainer holds " + std::to_string(reader.leases()) +
                       " batches on the device, its share of the ring is " + std::to_string(share) +
                       ": let go of earlier ones, or give the ring more slots"});
    }
    if (MonotonicNs() >= until_ns) {
      LastError() = "the device has not let go of an earlier batch in time";
      return PENSTOCK_TIMEOUT;
    }
    const timespec time = {0, 20'000};
    ppoll(nullptr, 0, &time, nullptr);
  }
}

// The present ring gives nothing more: on to the next one, or the error.
int GoOn(penstock_loader* loader, uint64_t until_ns) {
  if (!loader->reattachment.active) {
    const Reader& reader = *loader->source->reader;
    penstock_client::StartReattaching(loader, penstock_client::WhereNow(loader),
                                      reader.error().message);
  } else if (penstock_client::Reattachment& again = loader->reattachment; again.unattended) {
    again.unattended = false;
    again.deadline_ns = MonotonicNs() + loader->reconnect_ns;
  }
  const int code = penstock_client::Reattach(loader, until_ns);
  if (code == PENSTOCK_TIMEOUT) LastError() = "no batch was ready in time";
  if (code != PENSTOCK_OK && code != PENSTOCK_TIMEOUT) Fail(loader->reattachment.failed);
  return code;
}

int TakeLease(penstock_loader* loader, uint64_t until_ns, bool* share_full, Lease* lease) {
  while (true) {
    if (loader->reattachment.active) {
      if (const int code = GoOn(loader, until_ns); code != PENSTOCK_OK) return code;
    }
    Reader& reader = *loader->source->reader;
    // Before it takes one more: a copy is for the batch beyond the share.
    *share_full = reader.leases() >= reader.lease_share();
    const uint64_t now_ns = until_ns == 0 || until_ns == UINT64_MAX ? 0 : MonotonicNs();
    const uint64_t timeout_ns = until_ns == UINT64_MAX ? UINT64_MAX
                                : until_ns > now_ns    ? until_ns - now_ns
                                                       : 0;
    switch (reader.Next(timeout_ns, lease)) {
      case Reader::Result::kEnd:
        return PENSTOCK_END;
      case Reader::Result::kTimeout:
        LastError() = "no batch was ready in time";
        return PENSTOCK_TIMEOUT;
      case Reader::Result::kFailed:
        return Fail(reader.error());
      case Reader::Result::kAgain:
        if (const int code = GoOn(loader, until_ns); code != PENSTOCK_OK) return code;
        break;
      case Reader::Result::kBatch:
        penstock_client::NoteProgress(&loader->reattachment);
        return PENSTOCK_OK;
    }
  }
}

// The caller holds it from now on.
void CountBatch(penstock_loader* loader, const penstock_batch& batch) {
  uint64_t bytes = loader->bytes.load(std::memory_order_relaxed);
  for (const penstock_tensor& tensor : batch.tensors) bytes += penstock_client::PartsBytes(tensor);
  loader->bytes.store(bytes, std::memory_order_relaxed);
  loader->references.fetch_add(1, std::memory_order_relaxed);
}

// A step whose rows are to be given: PENSTOCK_OK when one is open.
int OpenStep(penstock_loader* loader, uint64_t until_ns) {
  using penstock_client::Opened;
  Opened opened = Opened::kPassedOver;
  while (opened == Opened::kPassedOver) {
    // Of a split group it says nothing; and WhereNow() is for attaching: it numbers what is still held anew.
    ConsumerPosition before;
    if (loader->spec.mode != penstock::ring::GroupMode::kSplit)
      before = loader->source->reader->Where();
    Lease lease;
    bool share_full = false;
    if (const int code = TakeLease(loader, until_ns, &share_full, &lease); code != PENSTOCK_OK)
      return code;
    opened = penstock_client::OpenLease(loader, lease, share_full, std::move(before));
    if (opened == Opened::kBeyond) {
      return Fail(
          {Code::kOutOfRange,
           "the cursor points behind the rows of its batch: it is of another stream (step " +
               std::to_string(lease.step) + ")"});
    }
  }
  return PENSTOCK_OK;
}

// The next batch of the consumer's own size.
int MakeOwn(penstock_loader* loader, uint64_t until_ns, penstock_batch** out) {
  using penstock_client::Made;
  Made made = Made::kNeedsStep;
  while (made == Made::kNeedsStep) {
    int code = PENSTOCK_OK;
    if (loader->own.open.source == nullptr) code = OpenStep(loader, until_ns);
    const bool is_last = code == PENSTOCK_END && loader->own.joining != nullptr;
    if (code != PENSTOCK_OK && !is_last) return code;
    Source* source = is_last ? loader->source : loader->own.open.source;
    // The step may be closed with its last rows, and its source with it.
    source->references.fetch_add(1, std::memory_order_relaxed);
    code = Guarded([&] {
      made = is_last ? penstock_client::MakeLastBatch(loader, out)
                     : penstock_client::MakeBatch(loader, out);
      if (made != Made::kFailed) return static_cast<int>(PENSTOCK_OK);
      if (!source->reader->error().ok()) return Fail(source->reader->error());
      return Fail({Code::kResourceExhausted, "no memory for a copy of a batch"});
    });
    if (code != PENSTOCK_OK) {
      loader->lost = true;
      penstock_client::DropBatch(loader, std::exchange(*out, nullptr));
      penstock_client::DropOwn(loader);
    }
    penstock_client::Unreference(source);
    if (code != PENSTOCK_OK) return code;
  }
  CountBatch(loader, **out);
  return PENSTOCK_OK;
}

int TakeOwn(penstock_loader* loader, uint64_t until_ns, penstock_batch** out) {
  *out = std::exchange(loader->own.ready, nullptr);
  if (*out == nullptr) {
    if (const int code = MakeOwn(loader, until_ns, out); code != PENSTOCK_OK) return code;
  }
  loader->own_position.store(*loader->own.number, std::memory_order_relaxed);
  return PENSTOCK_OK;
}

int TakeWhole(penstock_loader* loader, uint64_t until_ns, penstock_batch** out) {
  Lease lease;
  bool share_full = false;
  if (const int code = TakeLease(loader, until_ns, &share_full, &lease); code != PENSTOCK_OK) {
    return code;
  }
  Source* source = loader->source;
  Untaken untaken(loader, lease);
  if (share_full && loader->cuda == nullptr) {
    if (const int code = TakeCopy(loader, lease, out); code != PENSTOCK_OK) return code;
  } else {
    penstock_batch& batch = source->slots[lease.slot];
    if (batch.loader == nullptr) {
      batch.source = source;
      penstock_client::Prepare(loader, lease.data, &batch);
    }
    if (!penstock_client::Show(lease, penstock_client::RankRows(*loader, 0, lease.rows), &batch))
      return Fail(source->reader->error());
    *out = &batch;
    source->references.fetch_add(1, std::memory_order_relaxed);
  }
  untaken.Give();
  CountBatch(loader, **out);
  return PENSTOCK_OK;
}

int Next(penstock_loader* loader, uint64_t until_ns, penstock_batch** out) {
  if (loader->lost) {
    // A failure of the stream stays what it is.
    const Status& failed = loader->source->reader->error();
    if (!failed.ok() && failed.code != Code::kUnavailable) return Fail(failed);
    return Fail(
        {Code::kResourceExhausted,
         "a batch was lost for want of memory: go on behind the one before it, by its cursor "
         "(penstock_seek; load_state_dict in Python), or attach anew"});
  }
  if (loader->cuda != nullptr) {
    if (const int code = WaitForShare(loader, until_ns); code != PENSTOCK_OK) return code;
  }
  return loader->batch_rows > 0 ? TakeOwn(loader, until_ns, out) : TakeWhole(loader, until_ns, out);
}

// Lets go of a batch that was complete before anybody asked for it.
void DropReady(penstock_loader* loader) {
  penstock_batch* ready = std::exchange(loader->own.ready, nullptr);
  if (ready == nullptr) return;
  penstock_client::DropBatch(loader, ready);
  Unreference(loader);
}

// A loader that is given up before anybody has it.
struct Abandon {
  void operator()(penstock_loader* loader) const {
    if (loader->source != nullptr) penstock_client::Unreference(loader->source);
    delete loader;
  }
};

int AttachWith(const penstock_attach_options* given, penstock_loader** loader) {
  // Of a program that knows fewer fields.
  penstock_attach_options options;
  penstock_default_options(&options);
  if (given->bytes < offsetof(penstock_attach_options, mode) || given->bytes > 4096) {
    return Fail({Code::kInvalidArgument,
                 "options have not been through penstock_default_options: they say they are " +
                     std::to_string(given->bytes) + " bytes long"});
  }
  std::memcpy(&options, given, std::min<size_t>(given->bytes, sizeof options));
  std::unique_ptr<penstock_loader, Abandon> made(new penstock_loader);
  ConsumerPosition position;
  Status status = ReadOptions(options, made.get(), &position);
  if (status.ok()) status = penstock_client::AttachFirst(made.get(), position, kAttachTimeoutNs);
  if (status.ok()) status = CheckRows(*made);
  if (!status.ok()) return Fail(status);
  penstock_client::NotePosition(made.get());
  *loader = made.release();
  if ((*loader)->reconnect_ns > 0) penstock_client::Watch(*loader);
  return PENSTOCK_OK;
}

int Seek(penstock_loader* loader, const void* cursor, uint32_t bytes) {
  if (bytes > penstock::ring::kMaxCursorBytes + penstock_client::kCursorHeadBytes ||
      cursor == nullptr) {
    return Fail({Code::kInvalidArgument, "a cursor has 1 to 1024 bytes: " + std::to_string(bytes)});
  }
  ConsumerPosition position;
  position.cursor.assign(static_cast<const char*>(cursor), bytes);
  const Status taken = penstock_client::TakeCursorHead(loader, &position);
  if (!taken.ok()) return Fail(taken);
  // Until it is asked for at the new position.
  loader->lost = true;
  DropReady(loader);
  penstock_client::DropOwn(loader);
  loader->source->reader->Leave();
  penstock_client::NoteProgress(&loader->reattachment);
  penstock_client::StartReattaching(loader, position, "");
  loader->lost = false;
  const int code = penstock_client::Reattach(loader, MonotonicNs() + kAttachTimeoutNs);
  if (code == PENSTOCK_TIMEOUT) {
    return Fail(
        {Code::kUnavailable, "penstockd did not answer: " + loader->reattachment.last.message});
  }
  if (code != PENSTOCK_OK) return Fail(loader->reattachment.failed);
  penstock_client::NotePosition(loader);
  return code;
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

void penstock_default_options(penstock_attach_options* options) {
  *options = {};
  options->bytes = sizeof *options;
  options->world_size = 1;
  options->replicas = 1;
  options->lag_seconds = penstock::ring::kDefaultLagMs / 1000;
  options->reconnect_seconds = kDefaultReconnectSeconds;
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
  return Guarded([&] { return AttachWith(given, loader); });
}

int penstock_seek(penstock_loader* loader, const void* cursor, uint32_t bytes) {
  LastError().clear();
  std::lock_guard<std::mutex> lock(loader->next_mutex);
  return Guarded([&] { return Seek(loader, cursor, bytes); });
}

int penstock_next(penstock_loader* loader, int64_t timeout_ns, penstock_batch** out) {
  *out = nullptr;
  std::lock_guard<std::mutex> lock(loader->next_mutex);
  const uint64_t until_ns = timeout_ns == PENSTOCK_FOREVER ? UINT64_MAX
                            : timeout_ns <= 0              ? 0
                                              : MonotonicNs() + static_cast<uint64_t>(timeout_ns);
  return Guarded([&] { return Next(loader, until_ns, out); });
}

int penstock_ready(penstock_loader* loader) {
  std::unique_lock<std::mutex> lock(loader->next_mutex, std::try_to_lock);
  if (!lock.owns_lock() || loader->lost) return 0;
  if (loader->batch_rows == 0)
    return !loader->reattachment.active && loader->source->reader->Ready();
  // Whether there is a whole one turns out by making it.
  const auto make = [loader] { return MakeOwn(loader, 0, &loader->own.ready); };
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
  Unreference(loader);
}

void* penstock_batch_writable(penstock_batch* batch, const void* data) {
  if (batch->is_copy) return const_cast<void*>(data);
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
  penstock_client::Unwatch(loader);
  {
    std::lock_guard<std::mutex> lock(loader->next_mutex);
    loader->reattachment.socket = {};
    penstock_client::DropOwn(loader);
    Guarded([loader] {
      loader->source->reader->Leave();
      return static_cast<int>(PENSTOCK_OK);
    });
    DropReady(loader);
  }
  Unreference(loader);
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
  std::lock_guard<std::mutex> lock(loader->mutex);
  const Reader& reader = *loader->source->reader;
  const penstock::ring::ReaderStats seen = reader.stats();
  const penstock::ring::ReaderStats& earlier = loader->earlier_stats;
  *stats = {};
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
  const Status status = penstock_client::RequestSpec(path, asked, &answer);
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

}  // extern "C"
