// A Python function as a client hands it over: a sealed memory file, of which the daemon reads how
// the client's interpreter is started, and workers the rest. What is pickled there is never
// unpickled by the daemon.
//
//     0    "penstock python\n"
//     16   bytes of the header (uint64)
//     24   header: JSON {"code", "program", "flags", "script", "folder", "environment"} and what
//          workers need
//     …    data that the header points to
//
// A spec names the file by its path in the process that made it, and says its code. What a pipeline
// that lives has open is found again when the maker has ended; and another function that is at the
// path by then, in the place of the file, is not taken for it.
//
// Whose pipeline it is decides who may open it. A daemon opens files of its own user for pipelines
// of that user alone: for another one's it would run in his pipeline what he has no right to run.
// Of his function it knows the path and the code, by which a process of his finds it.
//
// Threads:  any; the file is constant.
// Owns:     a descriptor of the file, which lives as long as copies of what OpenFunctionFile()
//           returns.
// Limits:   1 MiB of header.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ring/descriptor.h"

namespace penstock::python {

struct FunctionFile {
  // Null where the function is another user's, whose processes start its workers (offers.h); then
  // there is only the code and what follows it.
  std::shared_ptr<const ring::Descriptor> file;
  std::string code;  // a hash of the function
  std::string path;  // as the spec names it
  uid_t user = 0;    // whose code it is

  std::string program;                   // of the interpreter
  std::vector<std::string> flags;        // of it
  std::string script;                    // what a worker runs
  std::string folder;                    // it works in; "": the daemon's
  std::vector<std::string> environment;  // "NAME=value"
};

// The function of that code ("": any) at "/proc/PID/fd/N", or that was there and is open still, for
// a pipeline of that user. PermissionDenied where the file is another user's, or nobody has said
// for whom; FailedPrecondition where it has gone; InvalidArgument where it is no such file. Of a
// user who is not the daemon's nothing is opened.
absl::StatusOr<FunctionFile> OpenFunctionFile(const std::string& path, const std::string& code,
                                              std::optional<uid_t> user);

}  // namespace penstock::python
