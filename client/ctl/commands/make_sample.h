// The `make-sample` command: `penstock-samples` (client/samples) under a name of this command.
#pragma once

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// Adds `make-sample …`. Parsing a command line that asks for it puts penstock-samples, with the
// words that follow, in this process' place; where that cannot be started, the exit code is 1 after
// a message on stderr.
void AddMakeSample(Command root);

}  // namespace penstock::ctl
