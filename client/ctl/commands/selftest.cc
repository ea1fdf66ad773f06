// `penstock selftest`: shows on the user's own files that a pipeline gives the same bytes whatever
// the number of workers, wherever it is resumed, and when its daemon is killed. Each run has a
// private daemon of its own; one that runs is left alone.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/ctl/arguments/spec_arguments.h"
#include "client/ctl/batches/batch_line.h"
#include "client/ctl/batches/row_sums.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/commands/needed_indices.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/grammar/exit_code.h"
#include "client/ctl/terminal/progress_bar.h"
#include "penstock.hpp"

namespace penstock::ctl {
namespace {

struct SelftestArguments {
  SpecArguments spec;
  uint64_t steps = 50;
  int resumes = 5;
  int kills = 3;
  uint64_t seed = 0;  // 0: drawn
};

// A batch as it is compared: step, epoch, shapes and a checksum of each tensor's bytes; and of each
// row, to tell which one differs.
struct Taken {
  std::string line;
  std::string cursor;
  std::vector<uint32_t> rows;
};

struct Run {
  std::vector<Taken> batches;
  bool ended = false;  // the stream did, before there were as many as wanted
};

// One life of a pipeline: the next `count` batches behind `cursor`. With `kill_after`, its daemon
// is killed when so many were taken, and the run is what it has given by then. `taken` is told
// behind each batch how many there are.
absl::StatusOr<Run> TakeBatches(const v1::SpecSource& source, int workers,
                                const std::string& cursor, uint64_t count,
                                std::optional<uint64_t> kill_after,
                                const std::function<void(uint64_t)>& taken) {
  auto daemon = DaemonConnection::OpenOrStart("");
  if (!daemon.ok()) return daemon.status();
  v1::SpecSource with_workers = source;
  with_workers.mutable_overrides()->set_workers(workers);
  const auto pipeline = daemon->Create(with_workers, cursor);
  if (!pipeline.ok()) return pipeline.status();
  Run run;
  bool killed = false;
  try {
    penstock_attach_options options = Loader::DefaultOptions();
    options.pipeline = pipeline->name().c_str();
    options.socket = daemon->socket().c_str();
    options.reconnect_seconds = 0;  // a private daemon has no successor
    Loader loader(options);
    while (run.batches.size() < count) {
      if (!killed && kill_after && run.batches.size() >= *kill_after) {
        daemon->KillPrivate();
        killed = true;
      }
      const std::optional<Batch> batch = loader.Next();
      if (!batch) {
        run.ended = true;
        break;
      }
      run.batches.push_back({BatchLine(*batch), std::string(batch->cursor()), RowSums(*batch)});
      taken(run.batches.size());
    }
  } catch (const Error& error) {
    // What was ready has been given, and then this; an end would have been a lie.
    if (killed && error.code() == PENSTOCK_UNAVAILABLE) return run;
    return absl::Status(static_cast<absl::StatusCode>(error.code()), error.what());
  }
  return run;
}

class Selftest {
 public:
  Selftest(v1::SpecSource source, const SelftestArguments& arguments)
      : source_(std::move(source)),
        arguments_(arguments),
        dice_(arguments.seed),
        progress_(arguments.steps *
                  static_cast<uint64_t>(2 + arguments.resumes + 2 * arguments.kills)) {
    workers_ = arguments.spec.workers > 0
                   ? arguments.spec.workers
                   : std::max(4, static_cast<int>(std::thread::hardware_concurrency()));
  }

  // True when all was the same.
  absl::StatusOr<bool> Test() {
    auto reference = Take("1 worker, undisturbed", 1, "", arguments_.steps);
    if (!reference.ok()) return reference.status();
    reference_ = *std::move(reference);
    const size_t steps = reference_.batches.size();
    if (steps == 0) return absl::OutOfRangeError("the stream has no batch to compare");
    std::printf("%-44s %d batches%s\n  first  %s\n  last   %s\n", "1 worker, undisturbed",
                static_cast<int>(steps), reference_.ended ? ", to the end" : "",
                reference_.batches.front().line.c_str(), reference_.batches.back().line.c_str());
    const std::string name = absl::StrCat(workers_, " workers");
    if (absl::Status status = Compare(name, 0, Take(name, workers_, "", Wanted(0))); !status.ok()) {
      return status;
    }
    for (int i = 0; i < arguments_.resumes && steps > 1; ++i) {
      const size_t behind = Draw(steps - 1);
      const int workers = 1 + static_cast<int>(Draw(workers_));
      const std::string resumed =
          absl::StrFormat("resumed after batch %d, %d workers", behind, workers);
      if (absl::Status status = Compare(
              resumed, behind + 1,
              Take(resumed, workers, reference_.batches[behind].cursor, Wanted(behind + 1)));
          !status.ok()) {
        return status;
      }
    }
    for (int i = 0; i < arguments_.kills && steps > 1; ++i) {
      if (absl::Status status = KillAndGoOn(1 + Draw(steps - 1)); !status.ok()) return status;
    }
    std::printf(
        "%s\n",
        same_ ? absl::StrFormat("the same bytes in %d runs, %d batches compared", num_runs_,
                                num_compared_)
                    .c_str()
              : absl::StrFormat("DIFFERENT BYTES; again: --seed %d", arguments_.seed).c_str());
    return same_;
  }

 private:
  size_t Draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(dice_); }

  // How many batches a run from there on is asked for: one more than there are, where the stream
  // has ended.
  uint64_t Wanted(size_t first) const {
    return reference_.batches.size() - first + (reference_.ended ? 1 : 0);
  }

  // TakeBatches() of this spec. On a terminal a bar shows meanwhile how far that is, each run being
  // as long as another there.
  absl::StatusOr<Run> Take(const std::string& name, int workers, const std::string& cursor,
                           uint64_t count, std::optional<uint64_t> kill_after = std::nullopt) {
    const auto show = [&](uint64_t taken) {
      progress_.Show(num_begun_ * arguments_.steps + taken * arguments_.steps / count, name);
    };
    show(0);
    auto run = TakeBatches(source_, workers, cursor, count, kill_after, show);
    ++num_begun_;
    progress_.Clear();
    return run;
  }

  absl::Status KillAndGoOn(size_t after) {
    const int workers = 1 + static_cast<int>(Draw(workers_));
    const std::string name = absl::StrFormat("killed at batch %d, %d workers", after, workers);
    auto before = Take(name, workers, "", Wanted(0), after);
    if (!before.ok()) return before.status();
    const size_t taken = before->batches.size();
    if (before->ended && !reference_.ended) {
      Differ(name, "it ended instead of failing");
      return absl::OkStatus();
    }
    if (absl::Status status = Compare(name, 0, before, /*whole=*/false); !status.ok())
      return status;
    if (taken >= reference_.batches.size()) return absl::OkStatus();
    const std::string on = absl::StrFormat("  and on after batch %d", taken - 1);
    return Compare(on, taken, Take(on, workers_, before->batches.back().cursor, Wanted(taken)));
  }

  // Compares a run with the reference from batch `first` on, and says so.
  absl::Status Compare(const std::string& name, size_t first, const absl::StatusOr<Run>& run,
                       bool whole = true) {
    if (!run.ok()) return run.status();
    ++num_runs_;
    for (size_t i = 0; i < run->batches.size(); ++i) {
      const std::string expected = first + i < reference_.batches.size()
                                       ? reference_.batches[first + i].line
                                       : "the end of the stream";
      if (run->batches[i].line != expected) {
        Differ(name, absl::StrCat("\n  expected  ", expected, "\n  found     ",
                                  run->batches[i].line, FirstElement(first + i, run->batches[i])));
        return absl::OkStatus();
      }
    }
    num_compared_ += run->batches.size();
    if (whole && (first + run->batches.size() != reference_.batches.size() ||
                  run->ended != reference_.ended)) {
      Differ(name, absl::StrFormat("it ended after %d batches", run->batches.size()));
      return absl::OkStatus();
    }
    std::printf("%-44s %d batches, the same\n", name.c_str(),
                static_cast<int>(run->batches.size()));
    std::fflush(stdout);
    return absl::OkStatus();
  }

  // A line that says which element is the first that differs, in batch `number` of the stream.
  std::string FirstElement(size_t number, const Taken& found) const {
    if (number >= reference_.batches.size()) return "";
    uint64_t before = 0;
    for (size_t i = 0; i < number; ++i) before += reference_.batches[i].rows.size();
    const std::vector<uint32_t>& expected = reference_.batches[number].rows;
    const auto [row, other] =
        std::mismatch(expected.begin(), expected.end(), found.rows.begin(), found.rows.end());
    if (row == expected.end() && other == found.rows.end()) return "";
    const auto place = static_cast<uint64_t>(row - expected.begin());
    return absl::StrFormat("\n  first     element %d of the stream: row %d of that batch",
                           before + place, place);
  }

  void Differ(const std::string& name, const std::string& how) {
    same_ = false;
    std::printf("%-44s DIFFERENT: %s\n", name.c_str(), how.c_str());
  }

  const v1::SpecSource source_;
  const SelftestArguments& arguments_;
  std::mt19937_64 dice_;
  int workers_;
  Run reference_;
  bool same_ = true;
  ProgressBar progress_;
  uint64_t num_begun_ = 0;
  int num_runs_ = 1;
  uint64_t num_compared_ = 0;
};

// With seeds as drawn once, so that every run has the same ones.
absl::StatusOr<v1::SpecSource> Settle(const v1::SpecSource& given) {
  auto daemon = DaemonConnection::OpenOrStart("");
  if (!daemon.ok()) return daemon.status();
  const auto validated = daemon->Validate(given);
  if (!validated.ok()) return validated.status();
  BuildNeededIndices(*validated);
  v1::SpecSource settled;
  *settled.mutable_spec() = validated->pipeline().spec();
  settled.set_base_directory(given.base_directory());
  settled.mutable_overrides()->set_name(absl::StrCat("selftest-", getpid()));
  return settled;
}

int RunSelftest(SelftestArguments& arguments) {
  if (arguments.seed == 0) arguments.seed = static_cast<uint64_t>(absl::GetCurrentTimeNanos());
  const auto source = arguments.spec.Read();
  if (!source.ok()) return Report("selftest", source.status());
  auto settled = Settle(*source);
  if (!settled.ok()) return Report("selftest", settled.status());
  const auto same = Selftest(*std::move(settled), arguments).Test();
  if (!same.ok()) return Report("selftest", same.status());
  return *same ? kDone : kFailed;
}

}  // namespace

void AddSelftest(Command root, const std::string&) {
  Command command = root.AddCommand(
      "selftest",
      "Run a spec with 1 and N workers, resumed and killed at random places; compare all bytes");
  auto arguments = std::make_shared<SelftestArguments>();
  SpecArguments::Add(command, &arguments->spec);
  command.Add("--steps", &arguments->steps, "Batches of the undisturbed run (50)").Positive();
  command.Add("--resumes", &arguments->resumes, "Runs that go on from a random batch (5)")
      .InRange(0.0, 1000.0);
  command.Add("--kills", &arguments->kills, "Daemons that are killed with SIGKILL (3)")
      .InRange(0.0, 1000.0);
  command.Add("--seed", &arguments->seed, "Chooses the random places; a failure prints it");
  command.Runs([arguments] { return RunSelftest(*arguments); });
}

}  // namespace penstock::ctl
