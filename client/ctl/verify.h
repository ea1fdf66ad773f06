// The `verify` command: every checksum of every file.
#pragma once

namespace CLI {
class App;
}

namespace penstock::ctl {

// Adds `verify FILES... [--compression NAME]`. Parsing a command line that asks for it runs it:
// `exit_code` receives 0, or 1 where anything is damaged or cannot be read.
void AddVerify(CLI::App& app, int* exit_code);

}  // namespace penstock::ctl
