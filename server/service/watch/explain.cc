#include "server/service/watch/explain.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/watch/analysis.h"
#include "server/service/watch/helper_gain.h"
#include "server/service/watch/percent.h"
#include "server/service/watch/remote_stats.h"

namespace penstock {
namespace {

// At this share of the looks there was nothing for a consumer: it waits.
constexpr double kMostly = 0.5;
// Seconds: a row that takes as long is worth a word.
constexpr double kLongRow = 1;

std::string NameOf(const v1::ConsumerStats& consumer) {
  return absl::StrCat("consumer ", consumer.id(), " of group ", consumer.group(), " (process ",
                      consumer.pid(), ")");
}

// Where it stands; of a split group, where that does.
uint64_t StepOf(const v1::PipelineStats& stats, const v1::ConsumerStats& consumer) {
  return stats.steps() - std::min(stats.steps(), consumer.lag());
}

// Others hold some batches still, and wait for none.
bool Takes(const v1::ConsumerStats& consumer) { return !consumer.detached() && !consumer.left(); }

// The one that has the most before it; null without any.
const v1::ConsumerStats* Slowest(const v1::PipelineStats& stats) {
  const v1::ConsumerStats* slowest = nullptr;
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    if (!Takes(consumer)) continue;
    if (!consumer.replay() && (slowest == nullptr || consumer.lag() > slowest->lag()))
      slowest = &consumer;
  }
  return slowest;
}

std::string SecondsOf(double seconds) {
  return absl::StrCat(std::lround(10 * seconds) / 10.0, " s");
}

// Of a broadcast its consumer, else the group.
std::string NameOf(const v1::WaitedFor& party) {
  const std::string user = party.has_uid() ? absl::StrCat("user ", party.uid()) : "";
  if (party.mode() == "broadcast") {
    return absl::StrCat("consumer ", party.consumer(), " of group ", party.group(), " (process ",
                        party.pid(), user.empty() ? "" : ", ", user, ")");
  }
  return absl::StrCat("group ", party.group(), " (", party.mode(), user.empty() ? "" : ", of ",
                      user, ")");
}

// What keeps it from taking batches.
std::string ReasonOf(const v1::PipelineStats& stats, const v1::WaitedFor& party) {
  const std::string member =
      absl::StrCat("consumer ", party.consumer(), " (process ", party.pid(), ")");
  if (party.missing() > 0) {
    return absl::StrCat(party.missing(), " of its places, the first of rank ",
                        party.first_missing_rank(), " of ", party.world_size(), ", are not taken");
  }
  if (party.consumer() == 0) return "nobody takes its batches, and it is kept for who comes back";
  if (party.mode() == "split") return absl::StrCat("its ", member, " asks for no batch");
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    if (consumer.id() != party.consumer() || consumer.replay()) continue;
    return absl::StrCat(party.mode() == "rank" ? absl::StrCat("its ", member) : "it",
                        " stands at step ", StepOf(stats, consumer), ", ", consumer.lag(),
                        " behind, holds ", consumer.leases(), " and takes ",
                        std::lround(10 * consumer.steps_per_s()) / 10.0, " steps/s");
  }
  return "it takes no batch";
}

void ExplainWaitedFor(const v1::PipelineStats& stats, std::vector<std::string>* out) {
  for (const v1::WaitedFor& party : stats.waited_for()) {
    out->push_back(absl::StrCat(
        NameOf(party), " is the one they wait for, for ", SecondsOf(party.seconds()), ": ",
        ReasonOf(stats, party), "; they wait ",
        party.has_most_seconds() ? absl::StrCat("for ", SecondsOf(party.most_seconds()), " at most")
                                 : "as long as it takes"));
  }
}

// Whether others wait for it, or for its group.
bool IsWaitedFor(const v1::PipelineStats& stats, const v1::ConsumerStats& consumer) {
  return std::any_of(stats.waited_for().begin(), stats.waited_for().end(),
                     [&consumer](const v1::WaitedFor& party) {
                       return party.mode() == "broadcast" ? party.consumer() == consumer.id()
                                                          : party.group() == consumer.group();
                     });
}

void ExplainHoldUp(const v1::PipelineStats& stats, std::vector<std::string>* out) {
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    if (!Takes(consumer) || consumer.replay() || consumer.empty() < kMostly ||
        IsWaitedFor(stats, consumer)) {
      continue;
    }
    out->push_back(absl::StrCat(NameOf(consumer), " waits for step ", StepOf(stats, consumer),
                                ", which has no slot as long as ", NameOf(stats.waited_for(0)),
                                " does not go on"));
  }
  ExplainWaitedFor(stats, out);
}

void ExplainFullRing(const v1::PipelineStats& stats, std::vector<std::string>* out) {
  if (stats.waited_for_size() > 0) {
    ExplainHoldUp(stats, out);
    return;
  }
  const v1::ConsumerStats* slowest = Slowest(stats);
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    if (!Takes(consumer)) continue;
    if (&consumer == slowest || consumer.replay() || consumer.empty() < kMostly) continue;
    out->push_back(absl::StrCat(NameOf(consumer), " waits for step ", StepOf(stats, consumer),
                                ", which has no slot as long as ", NameOf(*slowest),
                                " has not taken step ", StepOf(stats, *slowest)));
  }
  const uint32_t used = stats.used_slots() > 0 ? stats.used_slots() : stats.slots();
  out->push_back(absl::StrCat("the workers wait for a free slot: all ", used,
                              " hold steps that were not taken, or not let go of"));
  if (slowest == nullptr) {
    out->push_back("nobody reads: the first consumer that attaches lets it go on");
    return;
  }
  out->push_back(absl::StrCat(NameOf(*slowest), " is the one they wait for: it stands at step ",
                              StepOf(stats, *slowest), ", ", slowest->lag(), " behind, holds ",
                              slowest->leases(), " and takes ",
                              std::lround(10 * slowest->steps_per_s()) / 10.0, " steps/s"));
}

void ExplainWait(const v1::PipelineStats& stats, std::vector<std::string>* out) {
  const v1::Analysis& now = stats.analysis();
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    if (!Takes(consumer) || consumer.replay() || consumer.empty() < kMostly) continue;
    out->push_back(absl::StrCat(NameOf(consumer), " waits ", Percent(consumer.empty()),
                                " of its time for batches that are not made yet"));
  }
  if (!now.barren().empty()) {
    out->push_back(now.barren());
    return;
  }
  if (now.bottleneck() == "reading") {
    out->push_back(absl::StrCat("the ", stats.workers(), " workers wait ", Percent(now.starved()),
                                " of their time for files to be read, or for the order"));
    return;
  }
  for (int i = 0; i < stats.stages_size(); ++i) {
    // What its own processes do is said of all such stages.
    if (stats.stages(i).name() == now.bottleneck() && stats.stages(i).has_python_workers() &&
        i < now.python_busy_size() && now.python_busy(i) >= kBusyWorkers) {
      out->push_back(absl::StrCat("batches wait for stage ", now.bottleneck(),
                                  ", whose rows a Python function computes"));
      return;
    }
  }
  const auto busiest = std::max_element(now.stage_busy().begin(), now.stage_busy().end());
  const double share = busiest == now.stage_busy().end() ? 0 : *busiest;
  out->push_back(absl::StrCat("batches wait for stage ", now.bottleneck(), ", in which the ",
                              stats.workers(), " workers spend ", Percent(share),
                              " of their time"));
}

// Of each stage whose rows a Python function computes: its processes.
void ExplainPython(const v1::PipelineStats& stats, std::vector<std::string>* out) {
  for (int i = 0; i < stats.stages_size(); ++i) {
    if (!stats.stages(i).has_python_workers()) continue;
    const v1::PythonWorkers& workers = stats.stages(i).python_workers();
    const double busy =
        i < stats.analysis().python_busy_size() ? stats.analysis().python_busy(i) : 0;
    std::string text =
        absl::StrCat("stage ", stats.stages(i).name(), " has ", workers.workers(), " Python worker",
                     workers.workers() == 1 ? "" : "s", " of at most ", workers.most_workers(),
                     workers.chosen() ? ", as many as its rows need" : "", ", at rows ",
                     Percent(busy), " of the time");
    if (workers.oldest_row_seconds() >= kLongRow)
      absl::StrAppend(&text, "; a row has taken ", SecondsOf(workers.oldest_row_seconds()),
                      " so far");
    if (workers.loading_seconds() >= kLongRow)
      absl::StrAppend(&text, "; one has been loading the function for ",
                      SecondsOf(workers.loading_seconds()), " so far");
    if (workers.deaths() > 0)
      absl::StrAppend(&text, "; ", workers.deaths(), " of the ", workers.started(),
                      " that were started have died");
    out->push_back(std::move(text));
    const std::string unoffered = WaitForOffer(stats.stages(i));
    if (!unoffered.empty()) out->push_back(unoffered);
  }
}

// Of each that was left out: why. Of all: what they do, and what they bring.
void ExplainHelpers(const v1::PipelineStats& stats, std::vector<std::string>* out) {
  int ready = 0;
  uint64_t steps = 0;
  for (const v1::HelperStats& helper : stats.helpers()) {
    ready += helper.state() == "ready";
    steps += helper.steps();
    if (helper.state() == "ready") continue;
    if (helper.state() == "resting") {
      out->push_back(
          absl::StrCat("helper ", helper.address(),
                       " rests: its steps came later than this host's workers would have made "
                       "them; ring { slots } in the spec can give it more time"));
      continue;
    }
    out->push_back(absl::StrCat("helper ", helper.address(),
                                helper.reason().empty()
                                    ? " has not been reached yet"
                                    : absl::StrCat(" is left out: ", helper.reason()),
                                "; its steps are made by others, with the same bytes"));
  }
  if (stats.helpers_size() == 0) return;
  out->push_back(absl::StrCat(ready, " of ", stats.helpers_size(),
                              stats.helpers_size() == 1 ? " helper" : " helpers",
                              ready == 1 ? " makes" : " make", " steps: ", steps, " so far"));
  if (const std::string gain = HelperGainIn(stats.analysis().sentence()); !gain.empty())
    out->push_back(gain);
}

// A read, a write and work of others that have not returned, if there are such.
std::vector<std::string> HungCalls(const v1::PipelineStats& stats) {
  std::vector<std::string> out;
  const auto add = [&out](const v1::ReadUnderWay& call) {
    const bool has_offset = call.doing() == "reading" || call.doing() == "writing";
    out.push_back(absl::StrCat(call.doing(), " ", call.file(),
                               has_offset ? absl::StrCat(" at offset ", call.offset()) : "",
                               " has not returned for ", std::lround(call.seconds()),
                               " s: a disk or a network hangs",
                               call.doing() == "syncing" ? ", or has much to write" : ""));
  };
  if (stats.has_oldest_read()) add(stats.oldest_read());
  if (stats.has_oldest_write()) add(stats.oldest_write());
  if (stats.has_oldest_work()) {
    const v1::ReadUnderWay& work = stats.oldest_work();
    out.push_back(absl::StrCat(
        work.doing(), " ", work.file(), " has not returned for ", std::lround(work.seconds()),
        " s: those who do it are slow, or hang (", stats.tasks_away(), " of its tasks are away)"));
  }
  return out;
}

}  // namespace

std::vector<std::string> Explain(const v1::PipelineStats& stats) {
  // Its steps are those that were taken, also of a stream that has ended; a pause outlasts the
  // rest.
  if (stats.resting() && stats.state() != v1::PIPELINE_STATE_PAUSED) {
    return {absl::StrCat("nobody waits: nobody reads it, and it rests; who attaches gets step ",
                         stats.steps())};
  }
  switch (stats.state()) {
    case v1::PIPELINE_STATE_FAILED:
      return {absl::StrCat("every consumer gets the error that stopped the pipeline: ",
                           stats.error().message())};
    case v1::PIPELINE_STATE_FINISHED:
      return {absl::StrCat("nobody waits: the stream has ended with step ", stats.steps())};
    case v1::PIPELINE_STATE_PAUSED:
      return {absl::StrCat("consumers wait for step ", stats.steps(),
                           ": the pipeline is paused until it is resumed")};
    default:
      break;
  }
  std::vector<std::string> out(stats.numa().notice().begin(), stats.numa().notice().end());
  const size_t before = out.size();
  const bool ring_is_full = stats.waited_for_size() > 0 ||
                            (stats.has_analysis() && stats.analysis().bottleneck() == "consumer");
  if (!ring_is_full && (!stats.has_analysis() || stats.analysis().bottleneck().empty())) {
    out.push_back("it has run for too short a time to tell");
  } else if (ring_is_full) {
    ExplainFullRing(stats, &out);
  } else {
    ExplainWait(stats, &out);
  }
  ExplainPython(stats, &out);
  ExplainHelpers(stats, &out);
  // With a full ring nobody waits for them.
  if (!ring_is_full) ExplainRemote(stats, &out);
  const std::vector<std::string> hung = HungCalls(stats);
  // While batches are ready it is news, and not the cause yet.
  out.insert(ring_is_full ? out.begin() + before : out.end(), hung.begin(), hung.end());
  return out;
}

}  // namespace penstock
