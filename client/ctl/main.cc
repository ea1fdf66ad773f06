// `penstock`: the command line. A new command adds itself in a table.

#include "client/ctl/cache.h"
#include "client/ctl/command_line.h"
#include "client/ctl/commands.h"
#include "client/ctl/completion.h"
#include "client/ctl/fetch.h"
#include "client/ctl/index.h"
#include "client/ctl/inspect.h"
#include "client/ctl/make_sample.h"
#include "client/ctl/terminal.h"
#include "client/ctl/verify.h"
#include "client/ctl/write.h"

namespace penstock::ctl {
namespace {

constexpr void (*kDaemonCommands[])(Command root, const std::string& socket) = {
    AddValidate, AddWhere,  AddWhen,     AddRun,     AddCreate,    AddList,   AddGet,
    AddStats,    AddTop,    AddExplain,  AddProfile, AddPause,     AddResume, AddDrain,
    AddSeek,     AddUpdate, AddHistory,  AddSkipped, AddConsumers, AddDetach, AddSlow,
    AddLogLevel, AddDelete, AddSelftest, AddEvents,  AddGroups,    AddSample, AddIndex,
};
constexpr void (*kDataCommands[])(Command root) = {AddMakeSample, AddWrite, AddVerify,
                                                   AddInspect,    AddCache, AddFetch};

int Main(int argc, char** argv) {
  GuardTerminals();
  CommandLine line("penstock", "Declared input pipelines for trainers, served by penstockd.");
  std::string socket;
  line.root().Add("--socket", &socket,
                  "The daemon's socket. Default: $PENSTOCK_SOCKET, else "
                  "$XDG_RUNTIME_DIR/penstock.sock, else /run/penstock/penstock.sock. Without it "
                  "validate, run and index --tokens start a private daemon");
  for (const auto add : kDaemonCommands) add(line.root(), socket);
  for (const auto add : kDataCommands) add(line.root());
  AddCompletion(line.root(), line);
  return line.Run(argc, argv);
}

}  // namespace
}  // namespace penstock::ctl

int main(int argc, char** argv) { return penstock::ctl::Main(argc, argv); }
