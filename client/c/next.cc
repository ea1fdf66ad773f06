#include "client/c/next.h"

#include <poll.h>

#include <memory>
#include <string>
#include <utility>

#include "client/c/batch.h"
#include "client/c/error.h"
#include "client/c/own_batches.h"
#include "client/c/penstock_cuda.h"
#include "client/c/source.h"
#include "ring/futex.h"

namespace penstock_client {
namespace {

using penstock::cuda::Event;
using penstock::ring::Code;
using penstock::ring::ConsumerPosition;
using penstock::ring::Lease;
using penstock::ring::MonotonicNs;
using penstock::ring::Reader;
using penstock::ring::Status;

// How long the daemon's copy to a device may take; the daemon itself gives up then.
constexpr uint64_t kCopyNs = 30'000'000'000;
// How long to look for its end without sleeping: copies take fractions of a millisecond, and who
// comes before their end is short of data.
constexpr uint64_t kCopySpinNs = 100'000;

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
      ReleaseLease(loader_, loader_->source, lease_);
  }
  void Give() { is_given_ = true; }

 private:
  penstock_loader* const loader_;
  const Lease& lease_;
  bool is_given_ = false;
};

int TakeCopy(penstock_loader* loader, const Lease& lease, penstock_batch** out) {
  Source* source = loader->source;
  *out = Copy(loader, source, lease, RankRows(*loader, 0, lease.rows));
  if (*out == nullptr) {
    if (!source->reader->error().ok()) return Fail(source->reader->error());
    return Fail({Code::kResourceExhausted, "no memory for a copy of a batch"});
  }
  ReleaseLease(loader, source, lease);
  loader->copies.fetch_add(1, std::memory_order_relaxed);
  return PENSTOCK_OK;
}

// Of a device's ring nothing is copied: when the share is full, waits for a batch that is being
// released.
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

// Reader::Next() of a ring on a device: a step whose copy there is over. This process waits for it,
// and not its stream: what a killed daemon has enqueued never ends, and a stream that waited for
// its event would stand still for ever. Such a step is the next daemon's to give.
Reader::Result NextOnDevice(Source* source, uint64_t timeout_ns, Lease* lease) {
  Reader& reader = *source->reader;
  const uint64_t start_ns = MonotonicNs();
  while (true) {
    if (const auto result = reader.WaitForStep(timeout_ns); result != Reader::Result::kBatch)
      return result;
    Status error;
    const uint32_t slot = reader.NextSlot();
    const Event::State state =
        slot < reader.slots_max() ? source->device_slots->Look(slot, &error) : Event::State::kOver;
    if (state == Event::State::kOver) {
      source->copy_awaited_ns = 0;
      if (const auto result = reader.TakeStep(lease); result != Reader::Result::kTimeout)
        return result;
      continue;
    }
    const uint64_t now_ns = MonotonicNs();
    if (source->copy_awaited_ns == 0) source->copy_awaited_ns = now_ns;
    const uint64_t waited_ns = now_ns - source->copy_awaited_ns;
    if (state == Event::State::kWaits && waited_ns < kCopySpinNs && timeout_ns > 0) continue;
    if (reader.IsDeserted()) {
      return reader.Desert("penstockd has gone away, and had not ended its copy of step " +
                           std::to_string(reader.position()) + " to the device");
    }
    if (state == Event::State::kFailed) return reader.Break(error);
    if (waited_ns >= kCopyNs) {
      return reader.Break(
          {Code::kUnavailable, "the daemon's copy to the device did not end in 30 seconds"});
    }
    if (now_ns - start_ns >= timeout_ns) return Reader::Result::kTimeout;
    const timespec time = {0, 20'000};
    ppoll(nullptr, 0, &time, nullptr);
  }
}

// The present ring gives nothing more: on to the next one, or the error.
int GoOn(penstock_loader* loader, uint64_t until_ns) {
  if (!loader->reattachment.active) {
    const Reader& reader = *loader->source->reader;
    StartReattaching(loader, WhereNow(loader), reader.error().message);
  } else if (Reattachment& again = loader->reattachment; again.unattended) {
    again.unattended = false;
    SetDeadline(loader);
  }
  const int code = Reattach(loader, until_ns);
  if (code == PENSTOCK_TIMEOUT) LastError() = "no batch was ready in time";
  if (code != PENSTOCK_OK && code != PENSTOCK_TIMEOUT) Fail(loader->reattachment.failed);
  return code;
}

// `before`: where the ring stood that the lease is of; may be null.
int TakeLease(penstock_loader* loader, uint64_t until_ns, bool* share_full, Lease* lease,
              ConsumerPosition* before = nullptr) {
  while (true) {
    if (loader->reattachment.active) {
      if (const int code = GoOn(loader, until_ns); code != PENSTOCK_OK) return code;
    }
    Reader& reader = *loader->source->reader;
    if (before != nullptr) *before = reader.Where();
    // Before it takes one more: a copy is for the batch beyond the share.
    *share_full = reader.leases() >= reader.lease_share();
    const uint64_t now_ns = until_ns == 0 || until_ns == UINT64_MAX ? 0 : MonotonicNs();
    const uint64_t timeout_ns = until_ns == UINT64_MAX ? UINT64_MAX
                                : until_ns > now_ns    ? until_ns - now_ns
                                                       : 0;
    switch (loader->source->device_slots == nullptr
                ? reader.Next(timeout_ns, lease)
                : NextOnDevice(loader->source, timeout_ns, lease)) {
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
        NoteProgress(&loader->reattachment);
        return PENSTOCK_OK;
    }
  }
}

// The caller holds it from now on.
void CountBatch(penstock_loader* loader, const penstock_batch& batch) {
  uint64_t bytes = loader->bytes.load(std::memory_order_relaxed);
  for (const penstock_tensor& tensor : batch.tensors) bytes += PartsBytes(tensor);
  loader->bytes.store(bytes, std::memory_order_relaxed);
  loader->references.fetch_add(1, std::memory_order_relaxed);
}

// A step whose rows are to be given: PENSTOCK_OK when one is open.
int OpenNextStep(penstock_loader* loader, uint64_t until_ns) {
  Opened opened = Opened::kPassedOver;
  while (opened == Opened::kPassedOver) {
    // Of a split group it says nothing; and WhereNow() is for attaching: it numbers what is still
    // held anew.
    ConsumerPosition before;
    const bool is_split = loader->spec.mode == penstock::ring::GroupMode::kSplit;
    Lease lease;
    bool share_full = false;
    const int code = TakeLease(loader, until_ns, &share_full, &lease, is_split ? nullptr : &before);
    if (code != PENSTOCK_OK) return code;
    opened = OpenLease(loader, lease, share_full, std::move(before));
    if (opened == Opened::kBeyond) {
      return Fail(
          {Code::kOutOfRange,
           "the cursor points behind the rows of its batch: it is of another stream (step " +
               std::to_string(lease.step) + ")"});
    }
  }
  return PENSTOCK_OK;
}

}  // namespace

int MakeOwn(penstock_loader* loader, uint64_t until_ns, penstock_batch** out) {
  Made made = Made::kNeedsStep;
  while (made == Made::kNeedsStep) {
    int code = PENSTOCK_OK;
    if (loader->own.open.source == nullptr) code = OpenNextStep(loader, until_ns);
    const bool is_last = code == PENSTOCK_END && loader->own.joining != nullptr;
    if (code != PENSTOCK_OK && !is_last) return code;
    Source* source = is_last ? loader->source : loader->own.open.source;
    // The step may be closed with its last rows, and its source with it.
    source->references.fetch_add(1, std::memory_order_relaxed);
    code = Guarded([&] {
      made = is_last ? MakeLastBatch(loader, out) : MakeBatch(loader, out);
      if (made != Made::kFailed) return static_cast<int>(PENSTOCK_OK);
      if (!source->reader->error().ok()) return Fail(source->reader->error());
      return Fail({Code::kResourceExhausted, "no memory for a copy of a batch"});
    });
    if (code != PENSTOCK_OK) {
      loader->lost = true;
      DropBatch(loader, std::exchange(*out, nullptr));
      DropOwn(loader);
    }
    Unreference(source);
    if (code != PENSTOCK_OK) return code;
  }
  CountBatch(loader, **out);
  return PENSTOCK_OK;
}

namespace {

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
      Prepare(loader, lease.data, &batch);
    }
    if (!Show(lease, RankRows(*loader, 0, lease.rows), &batch))
      return Fail(source->reader->error());
    *out = &batch;
    source->references.fetch_add(1, std::memory_order_relaxed);
  }
  untaken.Give();
  CountBatch(loader, **out);
  return PENSTOCK_OK;
}

}  // namespace

int NextBatch(penstock_loader* loader, uint64_t until_ns, penstock_batch** out) {
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

void DropReady(penstock_loader* loader) {
  penstock_batch* ready = std::exchange(loader->own.ready, nullptr);
  if (ready == nullptr) return;
  DropBatch(loader, ready);
  Unreference(loader);
}

void Unreference(penstock_loader* loader) {
  if (loader->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Unreference(loader->source);
  delete loader;
}

}  // namespace penstock_client
