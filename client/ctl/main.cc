// `penstock`: the command line. A new command adds itself in a table.

#include "client/ctl/commands/commands.h"
#include "client/ctl/commands/index.h"
#include "client/ctl/commands/make_sample.h"
#include "client/ctl/data/cache.h"
#include "client/ctl/data/certificates.h"
#include "client/ctl/data/fetch.h"
#include "client/ctl/data/verify.h"
#include "client/ctl/data/write.h"
#include "client/ctl/grammar/command_line.h"
#include "client/ctl/grammar/completion.h"
#include "client/ctl/inspect/inspect.h"
#include "client/ctl/terminal/terminal.h"
#include "client/ctl/top/top.h"

namespace penstock::ctl {
namespace {

constexpr void (*kDaemonCommands[])(Command root, const std::string& socket) = {
    AddValidate, AddWhere,  AddWhen,     AddRun,     AddCreate,    AddList,   AddGet,
    AddStats,    AddTop,    AddExplain,  AddProfile, AddPause,     AddResume, AddDrain,
    AddSeek,     AddUpdate, AddHistory,  AddSkipped, AddConsumers, AddDetach, AddSlow,
    AddLogLevel, AddDelete, AddSelftest, AddEvents,  AddGroups,    AddSample, AddIndex,
};
constexpr void (*kDataCommands[])(Command root) = {
    AddMakeSample, AddWrite, AddVerify, AddInspect, AddCache, AddFetch, AddCertificates};

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
