// The `cache` command: the files of elements in a folder (io/element/element_file.h).
#pragma once

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// Adds `cache list|verify|clear FOLDER`. Parsing a command line that asks for it runs it: its exit
// code is 0, or 1 where something is damaged or cannot be read or removed.
void AddCache(Command root);

}  // namespace penstock::ctl
