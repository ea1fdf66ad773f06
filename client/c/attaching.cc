#include "client/c/attaching.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "client/c/error.h"
#include "client/c/hang_up_watch.h"
#include "client/c/next.h"
#include "client/c/own_batches.h"
#include "client/c/source.h"
#include "ring/attach.h"
#include "ring/futex.h"
#include "ring/layout.h"
#include "ring/nanoseconds.h"

namespace penstock_client {
namespace {

using penstock::ring::Code;
using penstock::ring::ConsumerPosition;
using penstock::ring::ConsumerSpec;
using penstock::ring::kNsPerMs;
using penstock::ring::MonotonicNs;
using penstock::ring::Status;

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
  if (options.cursor_bytes > penstock::ring::kMaxCursorBytes + kCursorHeadBytes) {
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
      static_cast<uint32_t>(std::min<uint64_t>(ToNs(options.lag_seconds) / kNsPerMs, UINT32_MAX));
  spec.take_over = options.take_over != 0;
  if (getrandom(&spec.identity, sizeof spec.identity, 0) != sizeof spec.identity) {
    spec.identity = MonotonicNs() ^ (static_cast<uint64_t>(getpid()) << 40);
  }
  loader->reconnect_ns = ToNs(options.reconnect_seconds);
  loader->attach_ns = ToNs(options.attach_seconds);
  if (options.is_cancelled != nullptr) {
    loader->is_cancelled = [ask = options.is_cancelled, context = options.cancel_context] {
      return ask(context) != 0;
    };
  }
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
  if (Status status = TakeCursorHead(loader, position); !status.ok()) return status;
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

// A loader that is given up before anybody has it.
struct Abandon {
  void operator()(penstock_loader* loader) const {
    if (loader->source != nullptr) Unreference(loader->source);
    delete loader;
  }
};

}  // namespace

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
  if (status.ok()) status = AttachFirst(made.get(), position);
  made->num_forks = penstock::ring::NumForks();
  if (status.ok()) status = CheckRows(*made);
  if (!status.ok()) return Fail(status);
  NotePosition(made.get());
  *loader = made.release();
  if ((*loader)->reconnect_ns > 0) Watch(*loader);
  return PENSTOCK_OK;
}

int Seek(penstock_loader* loader, const void* cursor, uint32_t bytes) {
  if (bytes > penstock::ring::kMaxCursorBytes + kCursorHeadBytes || cursor == nullptr) {
    return Fail({Code::kInvalidArgument, "a cursor has 1 to 1024 bytes: " + std::to_string(bytes)});
  }
  ConsumerPosition position;
  position.cursor.assign(static_cast<const char*>(cursor), bytes);
  const Status taken = TakeCursorHead(loader, &position);
  if (!taken.ok()) return Fail(taken);
  // Until it is asked for at the new position.
  loader->lost = true;
  DropReady(loader);
  DropOwn(loader);
  loader->source->reader->Leave();
  NoteProgress(&loader->reattachment);
  StartReattaching(loader, position, "");
  loader->lost = false;
  const uint64_t until_ns = MonotonicNs() + loader->attach_ns;
  int code = PENSTOCK_TIMEOUT;
  while (code == PENSTOCK_TIMEOUT) {
    const uint64_t now_ns = MonotonicNs();
    if (now_ns >= until_ns) {
      const std::string& why = loader->reattachment.last.message;
      return Fail({Code::kUnavailable, "penstockd at " + loader->socket_path +
                                           " did not answer in " +
                                           std::to_string(loader->attach_ns / kNsPerMs) + " ms" +
                                           (why.empty() ? "" : ": " + why)});
    }
    code = Reattach(loader, std::min(until_ns, now_ns + penstock::ring::kCancelNs));
    if (code == PENSTOCK_TIMEOUT && loader->is_cancelled != nullptr && loader->is_cancelled()) {
      return Fail({Code::kCancelled,
                   "gave up waiting for an answer of penstockd at " + loader->socket_path});
    }
  }
  if (code != PENSTOCK_OK) return Fail(loader->reattachment.failed);
  NoteProgress(&loader->reattachment);
  NotePosition(loader);
  return code;
}

}  // namespace penstock_client
