#include "server/service/watch/analysis.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/nanoseconds.h"
#include "server/engine/run/executor_stats.h"
#include "server/service/watch/helper_gain.h"
#include "server/service/watch/percent.h"

namespace penstock {
namespace {

// Workers that wait for files or the order for less of their time than this have those at hand.
constexpr double kHardlyStarved = 0.2;
// A trainer that waits for less than this has what it wants.
constexpr double kHardlyWaits = 0.01;

// Shorter looks may lie between two steps.
constexpr double kShortestLook = 0.9;

double Growth(uint64_t from, uint64_t to) { return to > from ? static_cast<double>(to - from) : 0; }

// The share of its time in which the consumer that waits most waited; negative where nobody was
// looked at for long enough.
double TrainerWait(const std::vector<WaitLooks>& from, const std::vector<WaitLooks>& to) {
  constexpr uint64_t kFewestLooks = 10;
  double most = -1;
  for (const WaitLooks& now : to) {
    for (const WaitLooks& before : from) {
      if (before.stream != now.stream || before.id != now.id ||
          now.looks < before.looks + kFewestLooks)
        continue;
      most = std::max(most, Growth(before.waiting, now.waiting) / Growth(before.looks, now.looks));
    }
  }
  return most;
}

// The rate is the workers' processor time over that of a step, until another thing is the limit:
// the processors, or the consumer that waits most, who takes more until it waits no longer.
double OneMoreWorker(const v1::Analysis& analysis, int workers, int processors, double wait) {
  if (workers >= processors || analysis.busy() < kBusyWorkers) return 0;
  const double growth = analysis.busy() / workers;
  if (wait < 0) return growth;
  return wait < 1 ? std::min(growth, wait / (1 - wait)) : growth;
}

// The first stage of which nothing came, behind the last one that gave something; "" where there is
// none, or steps are made.
std::string Barren(const Look& from, const Look& to) {
  if (to.stats.steps() > from.stats.steps() || from.stats.stages_size() != to.stats.stages_size())
    return "";
  const double seconds = static_cast<double>(to.at_ns - from.at_ns) / kNsPerSecond;
  if (seconds < kShortestLook) return "";
  for (int i = to.stats.stages_size() - 1; i > 0; --i) {
    const v1::StageStats& before = to.stats.stages(i - 1);
    const double given = Growth(from.stats.stages(i - 1).elements(), before.elements());
    if (Growth(from.stats.stages(i).elements(), to.stats.stages(i).elements()) > 0) return "";
    if (given == 0) continue;
    return absl::StrCat("stage ", to.stats.stages(i).name(), " gave no element in the last ",
                        std::lround(10 * seconds) / 10.0, " s, while stage ", before.name(),
                        " gave ", std::llround(given));
  }
  return "";
}

// Of the time of each stage's own worker processes, that at rows.
void AddPythonBusy(const Look& from, const Look& to, v1::Analysis* analysis) {
  const auto ns = static_cast<double>(to.at_ns - from.at_ns);
  for (int i = 0; i < to.stats.stages_size(); ++i) {
    const v1::PythonWorkers& now = to.stats.stages(i).python_workers();
    const uint64_t before =
        i < from.stats.stages_size() ? from.stats.stages(i).python_workers().busy_ns() : 0;
    analysis->add_python_busy(
        std::min(1.0, Growth(before, now.busy_ns()) / ns / std::max<uint32_t>(now.workers(), 1)));
  }
}

// The stage whose own worker processes are what the others wait for; null for none.
const v1::StageStats* BusyInPython(const v1::Analysis& analysis, const v1::PipelineStats& stats) {
  const auto most = std::max_element(analysis.python_busy().begin(), analysis.python_busy().end());
  if (most == analysis.python_busy().end() || *most < kBusyWorkers) return nullptr;
  return &stats.stages(static_cast<int>(most - analysis.python_busy().begin()));
}

std::string PythonSentence(const v1::Analysis& analysis, const v1::StageStats& stage) {
  const v1::PythonWorkers& workers = stage.python_workers();
  const double busy =
      *std::max_element(analysis.python_busy().begin(), analysis.python_busy().end());
  return absl::StrCat(stage.name(), "-bound: its ", workers.workers(), " Python ",
                      workers.workers() == 1 ? "worker is" : "workers are", " at rows ",
                      Percent(busy), " of the time",
                      workers.workers() < workers.most_workers()
                          ? ""
                          : "; they are as many as there may be (workers=)");
}

std::string Sentence(const v1::Analysis& analysis, const v1::PipelineStats& stats, int processors,
                     bool knows_wait) {
  if (stats.state() == v1::PIPELINE_STATE_FINISHED) return "the stream has ended";
  if (stats.state() == v1::PIPELINE_STATE_PAUSED) return "paused until it is resumed";
  if (stats.state() == v1::PIPELINE_STATE_FAILED) return "the pipeline has failed";
  if (stats.resting())
    return "it rests, as nobody reads it: its memory and threads are given back until a consumer "
           "attaches";
  for (const v1::StageStats& stage : stats.stages()) {
    if (std::string unoffered = WaitForOffer(stage); !unoffered.empty()) return unoffered;
  }
  if (analysis.bottleneck().empty()) return "no worker is at work yet";
  if (analysis.bottleneck() == "consumer") {
    if (stats.consumers().empty()) return "no consumer is attached, and the ring is full";
    return absl::StrCat("consumer-bound: batches wait for the trainer ",
                        Percent(analysis.blocked()),
                        " of the time; more workers would change nothing");
  }
  if (!analysis.barren().empty()) return analysis.barren();
  const v1::StageStats* const in_python = BusyInPython(analysis, stats);
  if (in_python != nullptr && in_python->name() == analysis.bottleneck())
    return PythonSentence(analysis, *in_python);
  if (analysis.bottleneck() == "reading") {
    return absl::StrCat("reading-bound: workers wait for files or the order ",
                        Percent(analysis.starved()),
                        " of their time; more workers would change little");
  }
  const std::string most =
      Percent(*std::max_element(analysis.stage_busy().begin(), analysis.stage_busy().end()));
  const std::string share =
      absl::StrCat(analysis.bottleneck(), "-bound: ", most, " of the workers' time");
  if (analysis.one_more_worker() > 0) {
    const std::string growth = absl::StrCat("; +1 worker ≈ +", Percent(analysis.one_more_worker()));
    if (!knows_wait) return share + growth;
    return absl::StrCat(share, growth, "; the trainer would then wait ",
                        Percent(analysis.trainer_wait_with_one_more()));
  }
  if (knows_wait && analysis.trainer_wait() < kHardlyWaits)
    return absl::StrCat(share, "; the trainer waits for nothing");
  if (analysis.busy() < kBusyWorkers) {
    return absl::StrCat(analysis.bottleneck(), " takes most, ", most,
                        " of the workers' time, but they are busy for ", Percent(analysis.busy()),
                        " only: more workers would change little");
  }
  if (static_cast<int>(stats.workers()) < processors) return share;
  return absl::StrCat(share, "; all ", processors, " processors are in use");
}

}  // namespace

std::string WaitForOffer(const v1::StageStats& stage) {
  const v1::PythonWorkers& workers = stage.python_workers();
  if (workers.waits_for_offer_seconds() <= 0) return "";
  const std::string since = absl::StrCat("rows of stage ", stage.name(), " have waited ",
                                         std::lround(10 * workers.waits_for_offer_seconds()) / 10.0,
                                         " s for Python workers of user ", workers.uid());
  const char* const remedy =
      "; the process that made the pipeline offers them while it lives, and "
      "penstock.offer_workers() does in another one that has the function";
  if (workers.offers() == 0)
    return absl::StrCat(since, ": no process of that user offers any", remedy);
  return absl::StrCat(since, ": of ", workers.offers(),
                      workers.offers() == 1 ? " process that offers" : " processes that offer",
                      " some, none has this function", remedy);
}

v1::Analysis Analyse(const Look& from, const Look& to, int processors) {
  v1::Analysis analysis;
  const double ns = static_cast<double>(to.at_ns - from.at_ns);
  if (ns <= 0) return analysis;
  const v1::PipelineStats& stats = to.stats;
  if (const int of_node = static_cast<int>(stats.numa().processors()); of_node > 0)
    processors = std::min(processors, of_node);
  const double seconds = ns / kNsPerSecond;
  // Whether anything could hold it back: nobody works on what has ended, is paused or rests.
  const bool runs = stats.state() == v1::PIPELINE_STATE_RUNNING && !stats.resting();
  const int workers = std::max<int>(stats.workers(), 1);
  analysis.set_seconds(seconds);
  analysis.set_steps_per_s(Growth(from.stats.steps(), stats.steps()) / seconds);
  analysis.set_rows_per_s(Growth(from.stats.rows(), stats.rows()) / seconds);
  analysis.set_read_bytes_per_s(Growth(from.stats.bytes_read(), stats.bytes_read()) / seconds);

  double busy = 0;
  int busiest = -1;
  for (int i = 0; i < stats.stages_size(); ++i) {
    const uint64_t before = i < from.stats.stages_size() ? from.stats.stages(i).busy_ns() : 0;
    const double share = std::min(1.0, Growth(before, stats.stages(i).busy_ns()) / ns / workers);
    analysis.add_stage_busy(share);
    if (busiest < 0 || share > analysis.stage_busy(busiest)) busiest = i;
    busy += share;
  }
  busy = std::min(busy, 1.0);
  if (stats.workers() == 0) {
    // At rest, or failed: no worker's time is spent on anything.
    analysis.set_sentence(Sentence(analysis, stats, processors, false));
    return analysis;
  }
  // One worker waits for a slot on behalf of all.
  const double full = std::min(1.0, Growth(from.stats.slot_wait_ns(), stats.slot_wait_ns()) / ns);
  analysis.set_busy(busy);
  analysis.set_blocked(std::min(full, 1 - busy));
  analysis.set_starved(1 - busy - analysis.blocked());
  AddPythonBusy(from, to, &analysis);
  const v1::StageStats* const in_python = BusyInPython(analysis, stats);
  if (!runs) {
    analysis.clear_bottleneck();
  } else if (IsHeldByConsumers(full, busy)) {
    analysis.set_bottleneck("consumer");
  } else if (in_python != nullptr && busy < kBusyWorkers) {
    // The daemon's own workers wait for it.
    analysis.set_bottleneck(in_python->name());
  } else if (busiest < 0 || analysis.starved() > std::max(busy, kHardlyStarved)) {
    analysis.set_bottleneck("reading");
  } else {
    analysis.set_bottleneck(stats.stages(busiest).name());
  }
  for (const double share : analysis.stage_busy()) {
    analysis.add_stage_blocked(std::min(analysis.blocked(), 1 - share));
    analysis.add_stage_starved(std::max(0.0, 1 - share - analysis.blocked()));
  }
  if (runs && analysis.bottleneck() != "consumer") analysis.set_barren(Barren(from, to));
  const double wait = stats.consumers().empty() ? -1 : TrainerWait(from.waits, to.waits);
  analysis.set_trainer_wait(std::max(0.0, wait));
  if (runs && analysis.bottleneck() != "consumer" && analysis.bottleneck() != "reading")
    analysis.set_one_more_worker(OneMoreWorker(analysis, workers, processors, wait));
  // It works as long as before on each step, and gets them so much faster.
  analysis.set_trainer_wait_with_one_more(
      std::max(0.0, 1 - (1 - analysis.trainer_wait()) * (1 + analysis.one_more_worker())));
  analysis.set_sentence(Sentence(analysis, stats, processors, wait >= 0));
  if (const std::string gain = runs ? HelperGain(from, to, wait, analysis) : ""; !gain.empty())
    absl::StrAppend(analysis.mutable_sentence(), "; ", gain);
  return analysis;
}

}  // namespace penstock
