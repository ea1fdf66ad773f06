// A Python function as a client hands it over: a sealed memory file, of which the daemon reads how
// the client's interpreter is started, and workers the rest. What is pickled there is never
// unpickled by the daemon.
//
//     0    "penstock python\n"
//     16   bytes of the header (uint64)
//     24   header: JSON {"code", "program", "flags", "script", "folder", "environment"} and what workers need
//     …    data that the header points to
//
// A spec names the file by its path in the process that made it, and says its code. What a pipeline that lives has open is found again when the
// maker has ended; and another function that is at the path by then, in the place of the file, is not taken for it.
//
// Threads:  any; the file is constant.
// Owns:     a descriptor of the file, which lives as long as copies of what OpenFunctionFile() returns.
// Limits:   1 MiB of header.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ring/descriptor.h"

namespace penstock::python {

struct FunctionFile {
  std::shared_ptr<const ring::Descriptor> file;
  std::string code;                      // a hash of the function
  std::string program;                   // of the interpreter
  std::vector<std::string> flags;        // of it
  std::string script;                    // what a worker runs
  std::string folder;                    // it works in; "": the daemon's
  std::vector<std::string> environment;  // "NAME=value"
};

// The function of that code ("": any) at "/proc/PID/fd/N", or that was there and is open still. PermissionDenied where the file is another
// user's: code runs for its own user alone. FailedPrecondition where it has gone; InvalidArgument where it is no such file.
absl::StatusOr<FunctionFile> OpenFunctionFile(const std::string& path, const std::string& code);

}  // namespace penstock::python
