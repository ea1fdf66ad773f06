// The `index` command: builds the indices that global shuffle and exact resuming need, ahead.
#pragma once

namespace CLI {
class App;
}

namespace penstock::ctl {

// Adds `index FILES... [--cache-dir DIR] [--verify] [--skip-damage]`. Parsing a command line that
// asks for it runs it: `exit_code` receives 0, or 1 where a file has no index now.
void AddIndex(CLI::App& app, int* exit_code);

}  // namespace penstock::ctl
