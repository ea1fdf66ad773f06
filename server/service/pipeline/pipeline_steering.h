// What changes a pipeline while it runs: updates of its spec, seeks, numbers, pauses, and what
// becomes of a group's slow consumers.
//
// Threads:  safe from any thread; one update after the other.
// Cost:     an update of stages makes a plan, which lists and opens files, before anything is held.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/v1/control.pb.h"
#include "server/service/pipeline/held_streams.h"
#include "server/service/pipeline/pipeline_basis.h"
#include "server/service/pipeline/pipeline_events.h"
#include "server/service/pipeline/pipeline_keeper.h"
#include "server/service/pipeline/pipeline_numbers.h"
#include "server/service/pipeline/pipeline_streams.h"
#include "server/service/state/timeline.h"
#include "server/service/stream/tuning.h"

namespace penstock {

// The last step that a change may name: no stream gets so far, and one that waits beyond would hold
// up all others.
inline constexpr uint64_t kMaxChangeStep = uint64_t{1} << 62;

// What UpdatePipelineRequest and SeekPipelineRequest ask for.
struct RequestedChange {
  v1::Change change;             // its step is ignored
  std::optional<uint64_t> step;  // absent: the earliest possible one
  bool at_next_epoch = false;    // `change.stage` is all stages
  std::string etag;              // "": whatever it is
  bool withdraw = false;         // the one that waits is taken back; `change` is its time only
  // Who asks for it; absent: nobody whose functions may come with it.
  std::optional<uid_t> user = std::nullopt;
  Asker by = {};  // for events and the log
};

class PipelineSteering {
 public:
  PipelineSteering(const PipelineBasis& basis, const PipelineEvents& events,
                   PipelineNumbers& numbers, PipelineKeeper& keeper, PipelineStreams& streams)
      : name_(basis.name),
        basis_(basis),
        checked_(basis.checked),
        high_water_(basis.high_water),
        events_(events),
        numbers_(numbers),
        keeper_(keeper),
        streams_(streams) {}

  // As those of Pipeline.
  absl::StatusOr<v1::Change> Update(const RequestedChange& requested,
                                    std::string* notice = nullptr);
  absl::Status Tune(const Tuning& wanted, v1::Autotune report);
  absl::Status Pause(bool paused, std::string* notice, const Asker& by);
  absl::Status SetSlowPolicy(const std::string& group, ring::SlowPolicy slow, uint32_t lag_ms,
                             const Asker& by);
  // NotFound where there is none of that name.
  absl::Status DropGroup(const std::string& group, const Asker& by);

 private:
  // A step, or for `at_next_epoch` the epoch, at which the change may hold.
  absl::Status Place(const RequestedChange& requested, const Timeline& timeline, const Held& held,
                     v1::Change* change, std::string* notice) const;
  absl::Status PlaceAtEpoch(const RequestedChange& requested, const Timeline& timeline,
                            const Held& held, v1::Change* change, std::string* notice) const;
  // Why a change begins at `earliest`, though `next` is the next step that is made.
  std::string WhyLater(uint64_t earliest, uint64_t next) const;
  // Whether all hosts of a world can be given the change alike.
  absl::Status CheckWorld(const RequestedChange& requested) const;
  // PermissionDenied where somebody else would have the owner's processes call a function that they
  // do not call.
  absl::Status CheckFunctions(const RequestedChange& requested, const Timeline& timeline) const;
  // Takes the change back that waits. REQUIRES: update_mutex_.
  absl::StatusOr<v1::Change> Withdraw(const RequestedChange& requested, Timeline timeline);

  const std::string& name_;
  const PipelineBasis& basis_;
  const CheckedPipeline& checked_;
  const std::shared_ptr<HighWater>& high_water_;
  const PipelineEvents& events_;
  PipelineNumbers& numbers_;
  PipelineKeeper& keeper_;
  PipelineStreams& streams_;

  // One update after the other. Before PipelineStreams::Lock().
  std::mutex update_mutex_;
};

}  // namespace penstock
