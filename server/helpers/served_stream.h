// A stream of another host's daemon, on the side of the helper: the connection, the plan and the
// executor that makes what is asked for. It lasts as long as the connection.
//
// Threads:  Serve() is the thread of the connection.
// Owns:     the connection, the executor with its threads, and the memory of the steps.
// Limits:   kMostSteps at a time; the stream's account (Means). A connection from which nothing
//           comes for 10 s ends, as one that takes nothing for 5 s does, or has not said in 20 s
//           what it wants.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/memory_account.h"
#include "io/file/shared_maps.h"
#include "penstock/v1/pipeline.pb.h"
#include "ring/descriptor.h"
#include "server/helpers/wire.h"

namespace penstock {

class ServedStream {
 public:
  static constexpr uint32_t kMostSteps = 16;

  // What all streams of a helper are made with.
  struct Means {
    FileSystem* files = nullptr;
    std::shared_ptr<SharedMaps> maps;            // may be null
    std::shared_ptr<const TlsContext> tls;       // null: plaintext
    std::vector<std::string> certificate_names;  // empty: all
    int workers = 0;                             // as ExecutorOptions
    int worker_nice = 10;
    uint64_t read_deadline_ns = 0;
    // What a stream of that spec may compute, keep and have ready; null: nothing is charged.
    std::function<absl::StatusOr<std::shared_ptr<MemoryAccount>>(const v1::PipelineSpec& spec)>
        account = nullptr;
  };

  // `enter`: called once, when it is known what is wanted and by whom; its error is told to the
  // asker.
  ServedStream(const Means& means, std::string from, const std::atomic<bool>& stop,
               std::function<absl::Status()> enter)
      : means_(means), from_(std::move(from)), stop_(stop), enter_(std::move(enter)) {}

  // Until the connection ends; returns why, and OK where the asker closed it.
  absl::Status Serve(ring::Descriptor socket);

 private:
  absl::Status CheckPeer(Wire& wire) const;
  absl::Status Run(Wire& wire, int bell);

  const Means& means_;
  const std::string from_;
  const std::atomic<bool>& stop_;
  const std::function<absl::Status()> enter_;
};

}  // namespace penstock
