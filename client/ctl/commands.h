// The commands of `penstock` that talk to a daemon. Each stands in the file of its name and adds
// itself to the command line; parsing a command line that asks for it runs it.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace penstock::ctl {

// Exit codes: 0; 1 for a bad spec, bad data, or no daemon; 2 for usage.
enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

// What all commands share. It outlives the parsing.
struct CommandLine {
  CLI::App& app;
  std::string socket;  // --socket; empty where it was not given
  int exit_code = kDone;
};

void AddCreate(CommandLine& line);
void AddDelete(CommandLine& line);
void AddGet(CommandLine& line);
void AddList(CommandLine& line);
void AddRun(CommandLine& line);
void AddSkipped(CommandLine& line);
void AddStats(CommandLine& line);
void AddValidate(CommandLine& line);
void AddWhen(CommandLine& line);
void AddWhere(CommandLine& line);

}  // namespace penstock::ctl
