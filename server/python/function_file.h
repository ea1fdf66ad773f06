// A Python function as a client hands it over: a sealed memory file, of which the daemon reads how
// the client's interpreter is started, and workers the rest. What is pickled there is never
// unpickled by the daemon.
//
//     0    "penstock python\n"
//     16   bytes of the header (uint64)
//     24   header: JSON {"program", "flags", "script", "folder", "environment"} and what workers need
//     …    data that the header points to
//
// Threads:  any; the file is constant.
// Owns:     a descriptor of the file, which lives as long, though the client ends.
// Limits:   1 MiB of header.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ring/descriptor.h"

namespace penstock::python {

struct FunctionFile {
  ring::Descriptor file;
  std::string program;                   // of the interpreter
  std::vector<std::string> flags;        // of it
  std::string script;                    // what a worker runs
  std::string folder;                    // it works in; "": the daemon's
  std::vector<std::string> environment;  // "NAME=value"
};

// Opens "/proc/PID/fd/N". PermissionDenied where the file is another user's: code runs for its own
// user alone. FailedPrecondition where it has gone; InvalidArgument where it is no such file.
absl::StatusOr<FunctionFile> OpenFunctionFile(const std::string& path);

}  // namespace penstock::python
