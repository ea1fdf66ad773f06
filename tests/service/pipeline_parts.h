// The parts of a pipeline of counted numbers, one by one, and what it would have written down.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/local_file.h"
#include "server/service/pipeline/pipeline_basis.h"
#include "server/service/pipeline/pipeline_events.h"
#include "server/service/pipeline/pipeline_keeper.h"
#include "server/service/pipeline/pipeline_numbers.h"
#include "server/service/pipeline/pipeline_streams.h"
#include "server/service/state/text_proto.h"
#include "tests/support/catch.h"

namespace penstock::test {

// Batches of eight of the numbers below 100, again and again; `more`: fields of the spec.
inline v1::PipelineSpec PartsSpec(const std::string& more = "", int buffer_size = 10) {
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto("name: 'p' stage { range { stop: 100 } } stage { shuffle { buffer_size: " +
                             std::to_string(buffer_size) +
                             " seed: 1 } } stage { batch { batch_size: 8 } } stage { repeat {} } " +
                             more,
                         "spec", &spec)
              .ok());
  return spec;
}

inline CheckedPipeline Checked(const v1::PipelineSpec& spec, const v1::WorkerDefaults& defaults) {
  absl::StatusOr<CheckedPipeline> checked = CheckPipeline(spec, defaults, LocalFileSystem());
  REQUIRE(checked.ok());
  return *std::move(checked);
}

inline Timeline TimelineOf(const PipelineBasis& basis) {
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(*basis.checked.plan);
  REQUIRE(fingerprint.ok());
  return Timeline(basis.checked.plan, *std::move(fingerprint));
}

struct Parts {
  explicit Parts(const std::string& more = "", v1::WorkerDefaults defaults = {})
      : basis(Checked(PartsSpec(more), defaults), Options(std::move(defaults)), LocalFileSystem()),
        events(basis.name, basis.options.on_event),
        numbers(basis, {}),
        keeper(basis, events, TimelineOf(basis)),
        streams(basis, events, numbers, keeper) {}
  ~Parts() { streams.Close(absl::CancelledError("the end")); }

  // A timeline with one more change.
  Timeline With(const v1::Change& change) const {
    Timeline timeline = keeper.timeline();
    absl::StatusOr<Timeline::NextPlan> next = timeline.Prepare(change, LocalFileSystem());
    REQUIRE(next.ok());
    REQUIRE(timeline.Add(change, *std::move(next)).ok());
    return timeline;
  }

  absl::Status disk = absl::OkStatus();  // what it says to a writing
  std::vector<KeptState> written;        // also what it refused
  std::vector<v1::Event> told;

  const PipelineBasis basis;
  PipelineEvents events;
  PipelineNumbers numbers;
  PipelineKeeper keeper;
  PipelineStreams streams;

 private:
  PipelineOptions Options(v1::WorkerDefaults defaults) {
    PipelineOptions options;
    options.defaults = std::move(defaults);
    options.write_state = [this](const KeptState& state) {
      written.push_back(state);
      return disk;
    };
    options.on_event = [this](v1::Event event) { told.push_back(std::move(event)); };
    return options;
  }
};

}  // namespace penstock::test
