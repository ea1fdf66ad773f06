#include "client/ctl/commands/make_sample.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "client/ctl/daemon/program_beside.h"
#include "client/ctl/grammar/exit_code.h"

namespace penstock::ctl {
namespace {

int RunSamples(std::vector<std::string> words) {
  words.insert(words.begin(), ProgramBeside("penstock-samples"));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const absl::Status status = CannotStart(words[0], errno);
  std::fprintf(stderr, "penstock make-sample: %s\n", std::string(status.message()).c_str());
  return kFailed;
}

}  // namespace

void AddMakeSample(Command root) {
  root.AddCommand("make-sample", "Make TFRecord shards to try Penstock with").HandsOn(RunSamples);
}

}  // namespace penstock::ctl
