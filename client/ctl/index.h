// The `index` command: builds the indices that global shuffle and exact resuming need, ahead.
#pragma once

#include "client/ctl/command_line.h"

namespace penstock::ctl {

// Adds `index FILES... [--cache-dir DIR] [--verify] [--skip-damage]`. Parsing a command line that
// asks for it runs it: its exit code is 0, or 1 where a file has no index now.
void AddIndex(Command root);

}  // namespace penstock::ctl
