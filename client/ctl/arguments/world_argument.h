// `--world HOSTS:HOST`, which the commands that make or change a pipeline take, and
// `--fewest-hosts`, which a creation takes.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <string>

#include "client/ctl/grammar/command_line.h"
#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

struct WorldArgument {
  std::string text;           // "": this host makes all rows
  uint64_t fewest_hosts = 0;  // 0: as many as there are

  // `argument` outlives the parsing. A malformed one is a usage error.
  static Option Add(Command command, WorldArgument* argument);

  // The other one, of a command that has `world`.
  static void AddFewest(Command command, const Option& world, WorldArgument* argument);

  // Into a CreatePipelineRequest a ValidatePipelineRequest or an UpdatePipelineRequest.
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
