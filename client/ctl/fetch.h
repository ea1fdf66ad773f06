// The `fetch` command: fills a cache folder with the objects at addresses, before anybody reads them.
#pragma once

#include "client/ctl/command_line.h"

namespace penstock::ctl {

// Adds `fetch ADDRESSES... [--cache-dir DIR] [--cache-bytes N]`. Parsing a command line that asks for it runs it: its exit code is 0, 1 where not all of
// the objects are in the folder now, or 2 without a folder.
void AddFetch(Command root);

}  // namespace penstock::ctl
