// The `inspect` command: what the records of TFRecord files are, and what reads them.
#pragma once

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// Adds `inspect FILES... [--records N | --all] [--python | --spec | --json] [--compression NAME]`.
// Parsing a command line that asks for it runs it: its exit code is 0, or 1 where a file cannot be
// read or holds something else than Examples.
void AddInspect(Command root);

}  // namespace penstock::ctl
