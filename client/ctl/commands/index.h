// The `index` command: builds the indices that global shuffle and exact resuming need, ahead, and
// those of tokens that `pack` goes by.
#pragma once

#include <string>

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// Adds `index FILES... [--cache-dir DIR] [--verify] [--skip-damage]` and
// `index --tokens SPEC [FILES...]`. Parsing a command line that asks for it runs it: its exit code
// is 0, or 1 where a file has no index now. `socket`: as of the other commands.
void AddIndex(Command root, const std::string& socket);

}  // namespace penstock::ctl
