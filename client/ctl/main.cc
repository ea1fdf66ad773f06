// `penstock`: the command line. A new command adds itself in the table.

#include <CLI/CLI.hpp>

#include "client/ctl/commands.h"
#include "client/ctl/index.h"
#include "client/ctl/make_sample.h"
#include "client/ctl/verify.h"
#include "client/ctl/write.h"

namespace penstock::ctl {
namespace {

using AddCommand = void (*)(CommandLine& line);

constexpr AddCommand kCommands[] = {
    AddValidate,
    AddWhere,
    AddWhen,
    AddRun,
    AddCreate,
    AddList,
    AddSkipped,
    AddGet,
    AddStats,
    AddDelete,
    [](CommandLine& line) { AddMakeSample(line.app, &line.exit_code); },
    [](CommandLine& line) { AddWrite(line.app, &line.exit_code); },
    [](CommandLine& line) { AddVerify(line.app, &line.exit_code); },
    [](CommandLine& line) { AddIndex(line.app, &line.exit_code); },
};

int Main(int argc, char** argv) {
  CLI::App app("Declared input pipelines for trainers, served by penstockd.", "penstock");
  CommandLine line{app, "", kDone};
  app.add_option("--socket", line.socket,
                 "The daemon's socket. Default: $PENSTOCK_SOCKET, else "
                 "$XDG_RUNTIME_DIR/penstock.sock, else /run/penstock/penstock.sock. Without it "
                 "validate and run start a private daemon");
  app.require_subcommand(1);
  // So that `penstock list --socket PATH` is as good as `penstock --socket PATH list`.
  app.fallthrough();
  for (const AddCommand add : kCommands) add(line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return line.exit_code;
}

}  // namespace
}  // namespace penstock::ctl

int main(int argc, char** argv) { return penstock::ctl::Main(argc, argv); }
