// `--world HOSTS:HOST`, which the commands that make a pipeline take.
//
// Threads: one.
#pragma once

#include <string>

#include "client/ctl/command_line.h"
#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

struct WorldArgument {
  std::string text;  // "": this host makes all rows

  // `argument` outlives the parsing. A malformed one is a usage error.
  static Option Add(Command command, WorldArgument* argument);

  // Into a CreatePipelineRequest or a ValidatePipelineRequest.
  template <typename Request>
  void AddTo(Request* request) const {
    if (!text.empty()) *request->mutable_world() = Read();
  }

 private:
  v1::World Read() const;
};

// "host 3 of 8".
std::string DescribeWorld(const v1::World& world);

}  // namespace penstock::ctl
