// How the command ends, for the shell that ran it.
#pragma once

namespace penstock::ctl {

// 1: a bad spec, bad data, no daemon, or nowhere to write to; 2: a wrong command line.
enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

}  // namespace penstock::ctl
