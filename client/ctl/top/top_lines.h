// What `penstock top` says of a pipeline, line by line.
//
// Threads:  any; no state.
#pragma once

#include <string>
#include <vector>

#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

struct TopLine {
  enum class Kind {
    kPlain,
    kDaemon,      // the head of what one daemon runs
    kPipeline,    // the head of a pipeline
    kError,       // why it failed
    kSentence,    // what holds it back
    kWarning,     // what hangs, and for whom others wait
    kStage,       // a stage with its bar
    kBottleneck,  // the one that holds it back
    kHead,        // of the table of consumers
    kLane,        // a consumer's waits over time
  };
  Kind kind = Kind::kPlain;
  std::string text;  // without an end of line; names in it may hold anything
};

// `lanes`: a line for each consumer, in their order, that goes below it; may be empty.
std::vector<TopLine> TopLines(const v1::PipelineStats& stats,
                              const std::vector<std::string>& lanes = {});

// For a file or a pipe.
std::string Joined(const std::vector<TopLine>& lines);

}  // namespace penstock::ctl
