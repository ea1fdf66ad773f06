// The `certificates` command: an authority, and certificates that it signs, for daemons that help
// each other and for the control plane by TCP.
#pragma once

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// Adds `certificates FOLDER [NAMES...] [--days N]`. Parsing a command line that asks for it runs
// it: its exit code is 0, or 1 where a file cannot be read or written.
void AddCertificates(Command root);

}  // namespace penstock::ctl
