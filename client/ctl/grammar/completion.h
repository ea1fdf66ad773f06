// What a shell needs to complete the command line.
//
// Threads:  any; no state.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// A script for "bash", "zsh" or "fish". REQUIRES: it is one of them.
std::string CompletionScript(const std::string& shell, const std::string& program,
                             const std::vector<CommandOutline>& commands);

// Adds `completion bash|zsh|fish`, which prints it; the commands of `line` are those of when it
// runs.
void AddCompletion(Command root, const CommandLine& line);

}  // namespace penstock::ctl
