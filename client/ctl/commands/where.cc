// `penstock where`: which records fill a row of a step.

#include <cstdio>
#include <memory>

#include "client/ctl/arguments/spec_arguments.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {
namespace {

struct WhereArguments {
  SpecArguments spec;
  uint64_t step = 0;
  uint32_t row = 0;
};

absl::Status Where(const std::string& socket, const WhereArguments& arguments) {
  auto source = arguments.spec.Read();
  if (!source.ok()) return source.status();
  auto daemon = DaemonConnection::OpenOrStart(socket);
  if (!daemon.ok()) return daemon.status();
  v1::FindRecordsRequest request;
  *request.mutable_source() = *std::move(source);
  request.set_step(arguments.step);
  request.set_row(arguments.row);
  const auto answer = daemon->FindRecords(request);
  if (!answer.ok()) return answer.status();
  for (const v1::RecordPlace& record : answer->records()) std::puts(DescribePlace(record).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddWhere(Command root, const std::string& socket) {
  Command command =
      root.AddCommand("where", "File, record and offset of what fills a row of a step");
  auto arguments = std::make_shared<WhereArguments>();
  SpecArguments::Add(command, &arguments->spec);
  command.Add("--step", &arguments->step, "The step").Required();
  command.Add("--row", &arguments->row, "Its row").Required();
  command.Runs([&socket, arguments] { return Report("where", Where(socket, *arguments)); });
}

}  // namespace penstock::ctl
