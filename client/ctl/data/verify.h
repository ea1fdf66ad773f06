// The `verify` command: every checksum of every file.
#pragma once

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// Adds `verify FILES... [--compression NAME]`. Parsing a command line that asks for it runs it:
// its exit code is 0, or 1 where anything is damaged or cannot be read.
void AddVerify(Command root);

}  // namespace penstock::ctl
