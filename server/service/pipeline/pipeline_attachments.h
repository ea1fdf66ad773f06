// Who reads a pipeline, and where: consumers enter the stream that all share, have it moved, or
// catch up in a small ring of their own.
//
// Threads:  safe from any thread; one attachment after the other, since it may make the shared
//           stream anew.
// Cost:     as long as making a ring takes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ring/split_log.h"
#include "ring/writer.h"
#include "server/service/pipeline/pipeline_basis.h"
#include "server/service/pipeline/pipeline_keeper.h"
#include "server/service/pipeline/pipeline_numbers.h"
#include "server/service/pipeline/pipeline_streams.h"
#include "server/service/stream/stream.h"

namespace penstock {

// Somebody who wants to attach.
struct Newcomer {
  ring::ConsumerSpec spec;
  ring::ConsumerPosition position;
  int32_t pid = 0;
  uint32_t uid = UINT32_MAX;  // nobody's
};

// What an attached consumer holds on to.
struct Attached {
  std::shared_ptr<Stream> stream;
  bool is_replay = false;  // nobody else ever reads the stream
  ring::ConsumerHandle handle;
};

class PipelineAttachments {
 public:
  PipelineAttachments(const PipelineBasis& basis, const PipelineNumbers& numbers,
                      PipelineKeeper& keeper, PipelineStreams& streams)
      : name_(basis.name),
        options_(basis.options),
        high_water_(basis.high_water),
        numbers_(numbers),
        keeper_(keeper),
        streams_(streams) {}

  // As those of Pipeline.
  absl::StatusOr<Attached> Attach(const Newcomer& newcomer);
  std::vector<absl::StatusOr<Attached>> StartAgain(const std::vector<Newcomer>& newcomers);
  absl::Status Detach(uint32_t id, int32_t pid);

 private:
  // All but Detach() REQUIRE: attach_mutex_ and PipelineStreams::Lock().

  // Fills in the step of a position that only has a cursor, and checks one that has both.
  absl::StatusOr<ring::ConsumerPosition> Complete(const ring::ConsumerPosition& position) const;
  // Whether a stream may begin at its position: a guest's counts where somebody can have been.
  bool MayDecide(const Newcomer& placed) const;
  // What stands in front of it was had, unless it is apart.
  void RaiseFor(const Attached& attached) const;
  // Of those of StartAgain() that have no result yet, who is at the lowest position from which a
  // stream can be made; -1: nobody.
  int FindLowest(const std::vector<Newcomer>& placed,
                 const std::vector<absl::StatusOr<Attached>>& results, uint64_t highest) const;
  // Neither its owner nor the daemon's user, nor allowed to control it.
  bool IsGuest(const Newcomer& newcomer) const;
  absl::StatusOr<Attached> Enter(const Newcomer& newcomer);
  // Who catches up in a ring of its own has its name or rank as those in the shared one have:
  // AlreadyExists, or it is sent away.
  absl::Status MakeWay(const ring::ConsumerSpec& spec) const;
  // A ring of its own for one who is behind the shared one.
  absl::StatusOr<Attached> Replay(const Newcomer& newcomer);
  // Whether a trainer that asks for the device's memory may have it.
  absl::Status MayHaveDevice(const Stream& stream, const Newcomer& newcomer) const;
  absl::StatusOr<Attached> AttachTo(std::shared_ptr<Stream> stream, const Newcomer& newcomer);
  // Has it written down which groups are complete, where that has changed.
  void KeepCompleteGroups();

  const std::string& name_;
  const PipelineOptions& options_;
  const std::shared_ptr<HighWater>& high_water_;
  const PipelineNumbers& numbers_;
  PipelineKeeper& keeper_;
  PipelineStreams& streams_;

  // One attachment after the other. Before PipelineStreams::Lock().
  std::mutex attach_mutex_;
  // Under attach_mutex_: what StartAgain() has read, until it succeeds.
  std::optional<std::map<std::string, ring::SplitState>> splits_;
};

}  // namespace penstock
