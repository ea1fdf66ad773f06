// Asks a daemon to create, validate or delete a pipeline, or what it has skipped: the client's side
// of a request about a spec (ring/attach.h).
//
// Threads:  any; no state.
// Owns:     its connection, which ends with the call unless the caller takes it.
// Limits:   a spec of at most 1 MiB, as the daemon has it.
// Cost:     one connection, and from time to time one beside it; blocks until the daemon has
//           answered, however long that takes, but not at one that gives no sign of life.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ring/attach.h"
#include "ring/descriptor.h"
#include "ring/status.h"

namespace penstock_client {

struct SpecRequest {
  penstock::ring::Operation operation = penstock::ring::Operation::kValidate;
  std::string_view name;    // of the pipeline; "": the spec's
  std::string_view spec;    // the text of a PipelineSpec
  std::string_view cursor;  // of a create: where it goes on; "": at the begin
  // Of a create, a validate and a redivide: which of how many hosts it makes the rows of, and for
  // how few its ring has room (World of steering.proto); 0 hosts: all rows.
  uint32_t world_hosts = 0;
  uint32_t world_host = 0;
  uint32_t fewest_hosts = 0;
  // Of an offer: the socket that goes along, which stays the caller's; -1: a memory file with the
  // parts above does.
  int offered = -1;
  // Of a create: the pipeline lives as long as its connection.
  bool temporary = false;
  // How long a daemon may give no sign of life (signs_of_life.h): kUnavailable then, and what was
  // asked for may still be done.
  uint64_t silence_ns_max = 60'000'000'000;
  // Asked ten times a second while the daemon is busy with the answer, and when a signal comes;
  // true gives up: kCancelled. May be null.
  std::function<bool()> is_cancelled = nullptr;
};

// `answer`: JSON of a ValidatePipelineResponse (control.proto), of kSkipped of a
// ListSkippedResponse, of kStats of a PipelineStats, of kRedivide of an UpdatePipelineResponse; ""
// of a delete and of an offer. `connection`: becomes the one that was asked on; may be null.
penstock::ring::Status RequestSpec(const std::string& socket_path, const SpecRequest& asked,
                                   std::string* answer,
                                   penstock::ring::Descriptor* connection = nullptr);

}  // namespace penstock_client
