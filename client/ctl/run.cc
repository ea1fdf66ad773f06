// `penstock run`: runs a spec and writes its batches to files, or prints a line for each.

#include <signal.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/batch_line.h"
#include "client/ctl/commands.h"
#include "client/ctl/cursor_file.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/delete_at_signal.h"
#include "client/ctl/describe.h"
#include "client/ctl/history_file.h"
#include "client/ctl/needed_indices.h"
#include "client/ctl/npz.h"
#include "client/ctl/spec_arguments.h"
#include "client/ctl/world_argument.h"
#include "penstock.hpp"

namespace penstock::ctl {
namespace {

struct RunArguments {
  SpecArguments spec;
  uint64_t steps = 0;  // 0: to the end
  std::string out;
  std::string cursor_out;
  std::string resume;
  bool allow_changed_work = false;
  std::string history;
  WorldArgument world;
  double reconnect = 60;
  // One row of one step, instead of batches.
  std::optional<uint64_t> step;
  uint32_t row = 0;
};

// stdout cannot be written. A reader that has gone has seen enough; of anything else CommandLine
// says so.
void ForgiveReader() {
  if (errno != EPIPE) return;
  __fpurge(stdout);
  std::clearerr(stdout);
}

absl::Status TakeBatches(const std::string& pipeline, const std::string& socket, bool is_private,
                         const RunArguments& arguments) {
  try {
    penstock_attach_options options = Loader::DefaultOptions();
    options.pipeline = pipeline.c_str();
    options.socket = socket.c_str();
    // A private daemon has no successor.
    options.reconnect_seconds = is_private ? 0 : arguments.reconnect;
    Loader loader(options);
    std::string cursor;
    for (uint64_t taken = 0; arguments.steps == 0 || taken < arguments.steps; ++taken) {
      const std::optional<Batch> batch = loader.Next();
      if (!batch) break;
      cursor = batch->cursor();
      if (arguments.out.empty()) {
        if (std::puts(BatchLine(*batch).c_str()) >= 0) continue;
        ForgiveReader();
        break;
      }
      const std::string file = absl::StrFormat("step-%06d.npz", batch->step());
      absl::Status status =
          WriteNpz((std::filesystem::path(arguments.out) / file).string(), *batch);
      if (!status.ok()) return status;
    }
    if (std::fflush(stdout) != 0) ForgiveReader();
    if (!arguments.cursor_out.empty()) {
      if (cursor.empty()) return absl::OutOfRangeError("no cursor: there was no batch");
      if (absl::Status status = WriteCursorFile(arguments.cursor_out, cursor); !status.ok())
        return status;
    }
  } catch (const Error& error) {
    return absl::Status(static_cast<absl::StatusCode>(error.code()), error.what());
  }
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot make the folder ", path));
}

// A name that is free in a shared daemon too, whatever the spec says.
void ChooseName(v1::SpecSource* source) {
  v1::SpecOverrides* overrides = source->mutable_overrides();
  if (overrides->name().empty()) overrides->set_name(absl::StrCat("run-", getpid()));
}

absl::Status ShowRow(DaemonConnection& daemon, v1::SpecSource source,
                     const RunArguments& arguments) {
  v1::ShowRowRequest request;
  *request.mutable_source() = std::move(source);
  request.set_step(*arguments.step);
  request.set_row(arguments.row);
  const auto answer = daemon.ShowRow(request);
  if (!answer.ok()) return answer.status();
  std::fputs(DescribeRow(*answer).c_str(), stdout);
  return absl::OkStatus();
}

int Run(const std::string& socket, const RunArguments& arguments) {
  auto source = arguments.spec.Read();
  if (!source.ok()) return Report("run", source.status());
  // A reader that goes is an error of writing.
  signal(SIGPIPE, SIG_IGN);
  // A private daemon ends with this program in any way.
  std::optional<DeleteAtSignal> at_signal;
  if (!socket.empty()) at_signal.emplace(socket);
  auto daemon = DaemonConnection::OpenOrStart(socket);
  if (!daemon.ok()) return Report("run", daemon.status());
  if (arguments.step) return Report("run", ShowRow(*daemon, *std::move(source), arguments));
  ChooseName(&*source);
  const auto validated = daemon->Validate(*source, arguments.world);
  if (!validated.ok()) return Report("run", validated.status());
  if (arguments.steps == 0 && validated->pipeline().endless()) {
    std::fprintf(
        stderr,
        "penstock run: the stream has no end (`repeat` without count): say how much of it, "
        "--steps N\n");
    return kUsage;
  }
  BuildNeededIndices(*validated);
  if (!arguments.out.empty()) {
    const absl::Status status = MakeFolder(arguments.out);
    if (!status.ok()) return Report("run", status);
  }
  std::string cursor;
  if (!arguments.resume.empty()) {
    absl::StatusOr<std::string> read = ReadCursorFile(arguments.resume);
    if (!read.ok()) return Report("run", read.status());
    cursor = *std::move(read);
  }
  v1::CreatePipelineRequest request;
  *request.mutable_source() = *source;
  request.set_cursor(cursor);
  arguments.world.AddTo(&request);
  request.set_allow_changed_work(arguments.allow_changed_work);
  if (!arguments.history.empty()) {
    const auto history = ReadHistoryFile(arguments.history);
    if (!history.ok()) return Report("run", history.status());
    *request.mutable_history() = history->change();
  }
  const auto hold = [&at_signal] {
    return at_signal ? at_signal->Hold() : std::unique_lock<std::mutex>();
  };
  std::unique_lock<std::mutex> held = hold();
  const auto pipeline = daemon->Create(request);
  if (!pipeline.ok()) return Report("run", pipeline.status());
  for (const std::string& notice : pipeline->notice())
    std::fprintf(stderr, "penstock run: %s\n", notice.c_str());
  if (at_signal) at_signal->SetPipeline(pipeline->name());
  held = std::unique_lock<std::mutex>();
  const absl::Status status =
      TakeBatches(pipeline->name(), daemon->socket(), daemon->is_private(), arguments);
  held = hold();
  // The daemon may have been another one since. Its successor knows the pipeline, but not this
  // connection.
  if (!daemon->is_private()) {
    auto again = DaemonConnection::Open(daemon->socket());
    if (again.ok()) daemon = std::move(again);
  }
  if (const auto skipped = daemon->Skipped(pipeline->name()); skipped.ok())
    PrintSkipped(*skipped, stderr);
  if (!daemon->is_private()) {
    const absl::Status deleted = daemon->Delete(pipeline->name());
    at_signal->SetPipeline("");
    if (status.ok()) return Report("run", deleted);
  }
  return Report("run", status);
}

}  // namespace

void AddRun(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "run", "Run a spec and write its batches as .npz files, or print a line for each");
  auto arguments = std::make_shared<RunArguments>();
  SpecArguments::Add(command, &arguments->spec);
  const Option world = WorldArgument::Add(command, &arguments->world);
  const Option steps =
      command
          .Add("--steps", &arguments->steps,
               "Batches to take. An endless stream needs it; a shorter stream just ends")
          .Positive();
  Option step =
      command.Add("--step", &arguments->step,
                  "Compute one row of this step again: its records, its draws, its features");
  // Its row is one of the whole batch.
  step.Excludes(steps).Excludes(world);
  command.Add("--row", &arguments->row, "Which row of the step (0)").Needs(step);
  command.Add("--out", &arguments->out, "Folder for DIR/step-000000.npz and so on, made if absent");
  command.Add("--cursor-out", &arguments->cursor_out,
              "File for the cursor after the last batch: --resume goes on from it");
  command.Add("--resume", &arguments->resume,
              "Cursor of the same spec and files: the run goes on after its batch");
  command.Add(
      "--history", &arguments->history,
      "File of `penstock history`: makes the changes of an earlier run again, at their steps");
  command.AddFlag("--allow-changed-work", &arguments->allow_changed_work,
                  "Take the cursor although work ops (map, parse_example) have changed since");
  command
      .Add("--reconnect", &arguments->reconnect,
           "Seconds to wait for the daemon's return when it goes away (60)")
      .InRange(0.0, 86400.0);
  command.Runs([&socket, arguments] { return Run(socket, *arguments); });
}

}  // namespace penstock::ctl
