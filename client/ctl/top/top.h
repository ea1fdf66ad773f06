// The `top` command: all pipelines, live: what each does, what holds it up, and who waits.
#pragma once

#include <string>

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// Adds `top [NAME] [--interval SECONDS] [--count N] [--json]`. `socket`: as of the other commands.
void AddTop(Command root, const std::string& socket);

}  // namespace penstock::ctl
