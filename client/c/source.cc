#include "client/c/source.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "client/c/batch.h"
#include "client/c/cuda.h"
#include "client/c/hang_up_watch.h"
#include "client/c/loader.h"
#include "client/c/own_batches.h"
#include "ring/futex.h"

namespace penstock_client {

using penstock::ring::Attachment;
using penstock::ring::Code;
using penstock::ring::ConsumerPosition;
using penstock::ring::Lease;
using penstock::ring::MonotonicNs;
using penstock::ring::Reader;
using penstock::ring::Status;
using penstock::ring::TensorEntry;

namespace {

// How long a daemon may take to accept a connection, and how long to wait for one that is not
// there.
constexpr uint64_t kConnectNs = 50'000'000;
constexpr int kRetryMs = 10;
// A daemon that asks for another attachment is there.
constexpr uint64_t kAskedForNs = 60'000'000'000;

// Whether another attempt may succeed: the daemon is not there, not ready, or too busy.
bool MayPass(Code code) {
  return code == Code::kUnavailable || code == Code::kNotFound || code == Code::kResourceExhausted;
}

bool AreEqual(const std::vector<TensorEntry>& a, const std::vector<TensorEntry>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

// The last of what was returned to sources before the present one. Under the loader's mutex.
void Remember(const std::vector<uint64_t>& steps, penstock_loader* loader) {
  std::vector<uint64_t>& returned = loader->earlier_returned;
  returned.insert(returned.end(), steps.begin(), steps.end());
  if (returned.size() > penstock::ring::kMaxReportedLeases) {
    returned.erase(returned.begin(), returned.end() - penstock::ring::kMaxReportedLeases);
  }
}

Status OpenSource(penstock_loader* loader, const Attachment& attachment) {
  const penstock::ring::Descriptor device_table(attachment.device_fd);
  const penstock::ring::Descriptor device_memory(attachment.device_memory_fd);
  std::unique_ptr<Source> source(new (std::nothrow) Source);
  if (source == nullptr) {
    for (const int fd :
         {attachment.socket, attachment.segment_fd, attachment.control_fd, attachment.bell_fd})
      penstock::ring::Descriptor{fd};
    return {Code::kResourceExhausted, "out of memory"};
  }
  if (Status status = Reader::Open(attachment, &source->reader); !status.ok()) return status;
  if (loader->cuda != nullptr) {
    if (!device_table) return {Code::kInternal, "penstockd sent no table of the device's memory"};
    Status status = DeviceSlots::Open(loader->cuda->device, device_table.get(), device_memory.get(),
                                      source->reader->tensors().size(), source->reader->slots_max(),
                                      &source->device_slots);
    if (!status.ok()) return status;
  }
  if (loader->entries.empty()) {
    loader->entries = source->reader->tensors();
    loader->pass_last_rows = source->reader->pass_last_rows();
    if (Status status = CheckOwnBatches(loader); !status.ok()) return status;
    Describe(*source->reader, loader);
  } else if (!AreEqual(loader->entries, source->reader->tensors())) {
    return {Code::kFailedPrecondition,
            "the pipeline that runs now makes other batches; attach anew (pipeline " +
                loader->pipeline + ")"};
  }
  if (loader->batch_rows > 0) {
    source->shared_leases = std::make_unique<SharedLease[]>(source->reader->slots_max());
  } else {
    source->slots = std::vector<penstock_batch>(source->reader->slots_max());
  }
  Source* before;
  {
    std::lock_guard<std::mutex> lock(loader->mutex);
    if (loader->source != nullptr) Remember(loader->source->reader->Where().returned, loader);
    before = std::exchange(loader->source, source.release());
    if (before != nullptr) {
      const penstock::ring::ReaderStats seen = before->reader->stats();
      loader->earlier_stats.batches += seen.batches;
      loader->earlier_stats.waits += seen.waits;
      loader->earlier_stats.sleeps += seen.sleeps;
      loader->earlier_stats.wait_ns += seen.wait_ns;
      loader->earlier_stats.skipped += seen.skipped;
      ++loader->reconnects;
      // Those that were let go of while the daemon was being told that they are held.
      for (size_t i = 0; i < loader->earlier_leases.size(); ++i) {
        if (loader->earlier_leases[i].returned) {
          loader->source->reader->ReturnEarlier(static_cast<uint32_t>(i));
        }
      }
    }
  }
  if (before != nullptr) Unreference(before);
  WatchSource(*loader);
  return {};
}

// A number of seconds, with as many digits as it needs.
std::string Seconds(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(ns) * 1e-9);
  return text;
}

// How long the attempts to come back may take.
uint64_t AllowedNs(const penstock_loader& loader) {
  return loader.reattachment.reason.empty() ? kAskedForNs : loader.reconnect_ns;
}

// Why there is no other ring in all the time that was given to it.
Status NobodyAnswered(const penstock_loader& loader) {
  const Reattachment& again = loader.reattachment;
  // Whatever became of the attempts before, this one is still waiting for an answer.
  const bool is_silent = again.last.ok() || static_cast<bool>(again.socket);
  return {is_silent ? Code::kUnavailable : again.last.code,
          (again.reason.empty() ? "the daemon asked to attach again" : again.reason) +
              ", and for " + Seconds(AllowedNs(loader)) +
              " seconds no attempt to come back succeeded: " +
              (is_silent ? "penstockd at " + loader.socket_path + " does not answer"
                         : again.last.message)};
}

int Fail(penstock_loader* loader, Status status) {
  Reattachment& again = loader->reattachment;
  again.socket = {};
  again.failed = std::move(status);
  return static_cast<int>(again.failed.code);
}

}  // namespace

void Unreference(Source* source) {
  if (source->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete source;
}

Status AttachFirst(penstock_loader* loader, const ConsumerPosition& position) {
  Attachment attachment;
  Status status = penstock::ring::Attach(
      loader->socket_path, penstock::ring::EncodeRequest(loader->pipeline, loader->spec, position),
      loader->attach_ns, &attachment, loader->is_cancelled);
  if (!status.ok()) return status;
  // From here on it is itself that it would meet.
  loader->spec.take_over = false;
  return OpenSource(loader, attachment);
}

ConsumerPosition WhereNow(penstock_loader* loader) {
  std::lock_guard<std::mutex> lock(loader->mutex);
  ConsumerPosition where = loader->source->reader->Where();
  if (!loader->source->reader->takes_grants()) return where;
  std::vector<EarlierLease> held;
  for (const EarlierLease& lease : loader->earlier_leases) {
    // The present source's may have been told already, to a daemon that did not stay.
    if (lease.source == loader->source) continue;
    if (lease.returned) {
      Remember({lease.step}, loader);
    } else {
      held.push_back(lease);
    }
  }
  for (const uint64_t step : where.held) held.push_back({loader->source, step, false});
  if (held.size() > penstock::ring::kMaxReportedLeases) {
    held.resize(penstock::ring::kMaxReportedLeases);
  }
  loader->earlier_leases = held;
  where.held.clear();
  for (const EarlierLease& lease : held) where.held.push_back(lease.step);
  // The last ones; those of the present source are remembered when another takes its place.
  std::vector<uint64_t> returned = loader->earlier_returned;
  returned.insert(returned.end(), where.returned.begin(), where.returned.end());
  if (returned.size() > penstock::ring::kMaxReportedLeases) {
    returned.erase(returned.begin(), returned.end() - penstock::ring::kMaxReportedLeases);
  }
  where.returned = std::move(returned);
  return where;
}

void Begin(Reattachment* again) {
  const std::optional<uint64_t> left_ns = again->left_ns;
  *again = {};
  again->left_ns = left_ns;
}

void SetDeadline(penstock_loader* loader) {
  Reattachment& again = loader->reattachment;
  again.deadline_ns =
      MonotonicNs() + std::min(AllowedNs(*loader), again.left_ns.value_or(UINT64_MAX));
}

void StartReattaching(penstock_loader* loader, const ConsumerPosition& position,
                      std::string reason) {
  Reattachment& again = loader->reattachment;
  Begin(&again);
  again.active = true;
  again.reason = std::move(reason);
  again.request = penstock::ring::EncodeRequest(loader->pipeline, loader->spec, position);
  SetDeadline(loader);
  // The last attachment has given nothing: not too fast.
  if (again.left_ns.has_value()) poll(nullptr, 0, kRetryMs);
  if (!again.reason.empty() && loader->reconnect_ns == 0) {
    const std::string advice = "; start it again and attach anew";
    // A daemon that was stopped has said it already.
    Fail(loader, {Code::kUnavailable,
                  again.reason.ends_with(advice) ? again.reason : again.reason + advice});
  }
}

bool StartUnattended(penstock_loader* loader) {
  Reattachment& again = loader->reattachment;
  const auto request =
      penstock::ring::EncodeRequest(loader->pipeline, loader->spec, WhereNow(loader));
  // What takes memory comes first: the connection is not to be lost for want of it.
  std::string reason = "penstockd has gone away: it was killed, or it crashed, before step " +
                       std::to_string(loader->source->reader->next_step());
  int socket = -1;
  if (!penstock::ring::StartAttach(loader->socket_path, request, kConnectNs, &socket).ok()) {
    return false;
  }
  Begin(&again);
  again.active = again.unattended = true;
  again.reason = std::move(reason);
  again.request = request;
  again.deadline_ns = UINT64_MAX;
  again.socket = penstock::ring::Descriptor(socket);
  return true;
}

int Reattach(penstock_loader* loader, uint64_t until_ns) {
  Reattachment& again = loader->reattachment;
  while (again.failed.ok()) {
    const uint64_t now_ns = MonotonicNs();
    if (now_ns >= again.deadline_ns) return Fail(loader, NobodyAnswered(*loader));
    const uint64_t end_ns = std::min(until_ns, again.deadline_ns);
    Status status;
    if (!again.socket) {
      int socket = -1;
      status = penstock::ring::StartAttach(loader->socket_path, again.request, kConnectNs, &socket);
      if (status.ok()) again.socket = penstock::ring::Descriptor(socket);
    }
    bool done = false;
    Attachment attachment;
    if (status.ok()) {
      status =
          penstock::ring::FinishAttach(loader->socket_path, again.socket.get(),
                                       end_ns > now_ns ? end_ns - now_ns : 0, &attachment, &done);
    }
    if (status.ok() && !done) {
      if (MonotonicNs() >= until_ns) return PENSTOCK_TIMEOUT;
      continue;
    }
    if (status.ok()) {
      again.socket.Release();
      status = OpenSource(loader, attachment);
      if (status.ok()) {
        // Not the time in which the new ring is read: it may be long in making a batch.
        if (!again.unattended)
          again.left_ns = again.deadline_ns - std::min(again.deadline_ns, MonotonicNs());
        Begin(&again);
        return PENSTOCK_OK;
      }
      return Fail(loader, status);
    }
    again.socket = {};
    if (!MayPass(status.code)) return Fail(loader, status);
    again.last = status;
    if (MonotonicNs() >= until_ns) return PENSTOCK_TIMEOUT;
    poll(nullptr, 0, kRetryMs);
  }
  return static_cast<int>(again.failed.code);
}

void ReleaseLease(penstock_loader* loader, Source* source, const Lease& lease) {
  // There `mutex` may be held by a thread that has stayed behind.
  if (IsOfParent(*loader)) return;
  if (source->reader->takes_grants()) {
    std::lock_guard<std::mutex> lock(loader->mutex);
    for (size_t i = 0; i < loader->earlier_leases.size(); ++i) {
      EarlierLease& earlier = loader->earlier_leases[i];
      if (earlier.source != source || earlier.step != lease.step || earlier.returned) continue;
      earlier.returned = true;
      // While the daemon is still being told, the source is the one that the lease is of.
      if (loader->source != source) {
        loader->source->reader->ReturnEarlier(static_cast<uint32_t>(i));
      }
      break;
    }
    // Under the mutex: who asks in between what is held would be told of this one, and nobody that
    // it was let go of.
    source->reader->Release(lease);
    return;
  }
  source->reader->Release(lease);
}

}  // namespace penstock_client
