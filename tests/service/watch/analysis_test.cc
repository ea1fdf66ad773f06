#include "server/service/watch/analysis.h"

#include <string>
#include <vector>

#include "server/service/tune/autotune.h"
#include "server/service/watch/helper_gain.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A pipeline of two workers that have spent these parts of their time since the beginning.
Look After(int64_t seconds, double parse, double map, double slot_wait, int consumers = 1) {
  Look look;
  look.at_ns = 100 * kSecond + seconds * kSecond;
  v1::PipelineStats& stats = look.stats;
  stats.set_name("p");
  stats.set_state(v1::PIPELINE_STATE_RUNNING);
  stats.set_workers(2);
  stats.set_steps(10 * seconds);
  stats.set_rows(640 * seconds);
  stats.set_slot_wait_ns(static_cast<uint64_t>(slot_wait * seconds * kSecond));
  const auto add = [&](const char* name, double share) {
    v1::StageStats* stage = stats.add_stages();
    stage->set_name(name);
    stage->set_busy_ns(static_cast<uint64_t>(share * 2 * seconds * kSecond));
  };
  add("parse", parse);
  add("map", map);
  for (int i = 0; i < consumers; ++i) stats.add_consumers()->set_group("default");
  return look;
}

TEST_CASE("the bottleneck and the sentence follow the shares") {
  const struct {
    double parse, map, slot_wait;
    int consumers, processors;
    std::string bottleneck, sentence;
  } kCases[] = {
      {0.05, 0.90, 0, 1, 4, "map", "map-bound: 90 % of the workers' time; +1 worker ≈ +48 %"},
      {0.50, 0.40, 0, 1, 4, "parse", "parse-bound: 50 % of the workers' time; +1 worker ≈ +45 %"},
      {0.05, 0.90, 0, 1, 2, "map",
       "map-bound: 90 % of the workers' time; all 2 processors are in use"},
      {0.05, 0.05, 0.9, 1, 4, "consumer",
       "consumer-bound: batches wait for the trainer 90 % of the time; more workers would change "
       "nothing"},
      {0.08, 0.16, 0.48, 1, 2, "consumer",
       "consumer-bound: batches wait for the trainer 48 % of the time; more workers would change "
       "nothing"},
      {0.05, 0.05, 0.95, 0, 4, "consumer", "no consumer is attached, and the ring is full"},
      {0.10, 0.10, 0.1, 1, 4, "reading",
       "reading-bound: workers wait for files or the order 70 % of their time; more workers would "
       "change little"},
  };
  for (const auto& c : kCases) {
    CAPTURE(c.sentence);
    const v1::Analysis analysis =
        Analyse(After(10, c.parse, c.map, c.slot_wait, c.consumers),
                After(20, c.parse, c.map, c.slot_wait, c.consumers), c.processors);
    CHECK(analysis.bottleneck() == c.bottleneck);
    CHECK(analysis.sentence() == c.sentence);
    CHECK(analysis.busy() + analysis.blocked() + analysis.starved() == Approx(1));
    CHECK(analysis.steps_per_s() == Approx(10));
    CHECK(analysis.rows_per_s() == Approx(640));
  }
}

// Two helpers in this state, each of which makes so many steps a second, while one step a second is
// missing to a trainer that waits for so much of its time.
v1::Analysis WithHelpers(const std::string& state, uint64_t steps_per_s, double wait,
                         uint32_t steps_away = 0) {
  Look from = After(10, 0.05, 0.90, 0), to = After(20, 0.05, 0.90, 0);
  for (Look* look : {&from, &to}) {
    for (const char* const address : {"a:1", "b:1"}) {
      v1::HelperStats* helper = look->stats.add_helpers();
      helper->set_address(address);
      helper->set_state(state);
      helper->set_steps(1000 + (look == &to ? 10 * steps_per_s : 0));
      helper->set_steps_away(steps_away);
    }
    look->stats.set_slots(64);
  }
  from.waits.push_back({1, 100, 0});
  to.waits.push_back({1, 1100, static_cast<uint64_t>(1000 * wait)});
  return Analyse(from, to, 2);
}

TEST_CASE("what helpers bring is told, and how many more would do") {
  const struct {
    std::string state;
    uint64_t steps_per_s;
    double wait;
    uint32_t steps_away;
    std::string told;
  } kCases[] = {
      // Of ten steps a second.
      {"ready", 2, 0.4, 1,
       "helpers: 2 make 40 % of the steps; +1 helper ≈ +20 %; with 4 more the trainer would wait "
       "for nothing"},
      {"ready", 4, 0.2, 1,
       "helpers: 2 make 80 % of the steps; +1 helper ≈ +25 %; with 1 more the trainer would wait "
       "for nothing"},
      // How fast it is nobody knows.
      {"ready", 2, 0.95, 1, "helpers: 2 make 40 % of the steps; +1 helper ≈ +20 %"},
      {"ready", 2, 1, 1, "helpers: 2 make 40 % of the steps; +1 helper ≈ +20 %"},
      {"ready", 2, 0, 1,
       "helpers: 2 make 40 % of the steps, and the trainer waits for nothing: more would change "
       "nothing"},
      {"ready", 0, 0, 1,
       "helpers: 2 made no step in the last seconds, and the trainer waits for nothing: more would "
       "change nothing"},
      {"ready", 0, 0.5, 1,
       "helpers: 2 bring nothing: none of their steps has come in the last seconds"},
      {"ready", 0, 0.5, 0,
       "helpers: 2 bring nothing: they got no step in the last seconds; more slots (ring { slots } "
       "in the spec) leave some for them"},
      {"resting", 0, 0.5, 0,
       "helpers: 2 bring nothing: their steps come later than this host's workers would have made "
       "them; more slots (ring { slots } in the spec) give them more time"},
      {"left out", 0, 0.5, 0,
       "helpers: 2 bring nothing: 2 of them are left out, and explain says why"},
      {"connecting", 0, 0.5, 0, "helpers: 2 bring nothing: none has been reached yet"},
  };
  for (const auto& one : kCases) {
    CAPTURE(one.told);
    const v1::Analysis analysis = WithHelpers(one.state, one.steps_per_s, one.wait, one.steps_away);
    CHECK(HelperGainIn(analysis.sentence()) == one.told);
    // Behind what is said without helpers.
    CHECK(analysis.sentence().starts_with("map-bound: 90 % of the workers' time; "));
  }
  // Without helpers, and while nobody reads.
  Look from = After(10, 0.05, 0.90, 0), to = After(20, 0.05, 0.90, 0);
  from.waits.push_back({1, 100, 0});
  to.waits.push_back({1, 1100, 500});
  CHECK(HelperGainIn(Analyse(from, to, 2).sentence()).empty());
  for (Look* look : {&from, &to}) {
    look->stats.add_helpers()->set_state("ready");
    look->stats.clear_consumers();
  }
  CHECK(HelperGainIn(Analyse(from, to, 2).sentence()).empty());
}

TEST_CASE(
    "a stage whose own processes are busy is the bottleneck while the daemon's workers wait") {
  const auto after = [](int64_t seconds, double python, uint32_t workers, double slot_wait = 0) {
    Look look = After(seconds, 0.02, 0.03, slot_wait);
    v1::PythonWorkers* of_map = look.stats.mutable_stages(1)->mutable_python_workers();
    of_map->set_workers(workers);
    of_map->set_most_workers(2);
    of_map->set_busy_ns(static_cast<uint64_t>(python * workers * seconds * kSecond));
    return look;
  };
  const v1::Analysis two = Analyse(after(10, 0.9, 2), after(20, 0.9, 2), 4);
  REQUIRE(two.python_busy_size() == 2);
  CHECK(two.python_busy(0) == 0);
  CHECK(two.python_busy(1) == Approx(0.9));
  CHECK(two.bottleneck() == "map");
  CHECK(two.sentence() ==
        "map-bound: its 2 Python workers are at rows 90 % of the time; they are as many as there "
        "may be (workers=)");
  CHECK(Analyse(after(10, 0.9, 1), after(20, 0.9, 1), 4).sentence() ==
        "map-bound: its 1 Python worker is at rows 90 % of the time");
  // Where they have little to do, they are not what anybody waits for.
  CHECK(Analyse(after(10, 0.2, 2), after(20, 0.2, 2), 4).bottleneck() == "reading");
  CHECK(Analyse(after(10, 0.9, 2, 0.9), after(20, 0.9, 2, 0.9), 4).bottleneck() == "consumer");
}

TEST_CASE("the first stage that gives nothing is told where no steps are made") {
  const auto after = [](int64_t seconds, uint64_t steps, uint64_t parse, uint64_t map) {
    Look look = After(seconds, 0.05, 0.05, 0);
    look.stats.set_steps(steps);
    look.stats.mutable_stages(0)->set_elements(parse);
    look.stats.mutable_stages(1)->set_elements(map);
    return look;
  };
  const v1::Analysis barren = Analyse(after(1, 7, 100, 50), after(3, 7, 5100, 50), 4);
  CHECK(barren.barren() ==
        "stage map gave no element in the last 2 s, while stage parse gave 5000");
  CHECK(barren.sentence() == barren.barren());
  for (const Look& now : {after(3, 8, 5100, 50), after(3, 7, 5100, 51), after(3, 7, 100, 50)})
    CHECK(Analyse(after(1, 7, 100, 50), now, 4).barren().empty());
}

TEST_CASE("what-if: a rate that only processors limit grows as the workers do") {
  // Two of four processors, both always busy: three workers make half as much again.
  const v1::Analysis analysis = Analyse(After(0, 0, 0, 0), After(10, 0.3, 0.7, 0), 4);
  CHECK(analysis.one_more_worker() == Approx(0.5));
  CHECK(Analyse(After(0, 0, 0, 0), After(10, 0.3, 0.7, 0), 2).one_more_worker() == 0);
  CHECK(Analyse(After(0, 0, 0, 0), After(10, 0.1, 0.1, 0.9), 4).one_more_worker() == 0);
}

TEST_CASE("what-if: workers on a NUMA node have that node's processors only") {
  const Look before = After(10, 0.05, 0.90, 0);
  Look now = After(20, 0.05, 0.90, 0);
  now.stats.mutable_numa()->set_processors(2);
  CHECK(Analyse(before, now, 4).sentence() ==
        "map-bound: 90 % of the workers' time; all 2 processors are in use");
  // They run on any.
  now.stats.mutable_numa()->set_processors(0);
  CHECK(Analyse(before, now, 4).one_more_worker() > 0);
}

TEST_CASE("what top says of the bottleneck and what autotune says of workers agree") {
  for (int percent = 0; percent <= 100; ++percent) {
    // A trainer that waits for most of the time.
    Look from = After(0, 0, 0, 0), to = After(10, 0.001 * percent, 0.009 * percent, 0);
    from.waits = {{1, 50, 7}};
    to.waits = {{1, 150, 97}};
    to.stats.set_state(v1::PIPELINE_STATE_RUNNING);
    *to.stats.mutable_analysis() = Analyse(from, to, 8);
    const v1::Analysis& analysis = to.stats.analysis();
    Autotuner tuner(8, 8);
    const bool goes_up = tuner.Look(to.stats, 2) > 2;
    CAPTURE(percent, analysis.sentence(), tuner.reason());
    const auto says = [&](const char* words) {
      return analysis.sentence().find(words) != std::string::npos;
    };
    CHECK(goes_up == says("map-bound"));
    CHECK(goes_up == (analysis.one_more_worker() > 0));
    CHECK(goes_up != says("more workers would change little"));
    CHECK(goes_up != (tuner.reason().find("more would not help") != std::string::npos));
  }
}

TEST_CASE("what-if: a trainer takes no more than it can") {
  // Workers always busy; the trainer waits for 80, 20 or 0 of 100 looks.
  const struct {
    uint64_t waiting;
    double grows, waits_then;
    std::string sentence;
  } kCases[] = {
      {80, 0.5, 0.7,
       "map-bound: 70 % of the workers' time; +1 worker ≈ +50 %; the trainer would then wait 70 %"},
      {20, 0.25, 0.0,
       "map-bound: 70 % of the workers' time; +1 worker ≈ +25 %; the trainer would then wait 0 %"},
      {0, 0, 0, "map-bound: 70 % of the workers' time; the trainer waits for nothing"},
  };
  for (const auto& one : kCases) {
    CAPTURE(one.waiting);
    Look from = After(0, 0, 0, 0), to = After(10, 0.3, 0.7, 0);
    from.waits = {{1, 50, 7}, {2, 50, 0}};
    to.waits = {{1, 150, 7 + one.waiting}, {3, 500, 500}};
    const v1::Analysis analysis = Analyse(from, to, 4);
    CHECK(analysis.trainer_wait() == Approx(static_cast<double>(one.waiting) / 100));
    CHECK(analysis.one_more_worker() == Approx(one.grows));
    CHECK(analysis.trainer_wait_with_one_more() == Approx(one.waits_then).margin(1e-9));
    CHECK(analysis.sentence() == one.sentence);
    for (int i = 0; i < analysis.stage_busy_size(); ++i) {
      CHECK(analysis.stage_busy(i) + analysis.stage_blocked(i) + analysis.stage_starved(i) ==
            Approx(1));
    }
  }
}

TEST_CASE("counters that go back, no time, and an end are no trouble") {
  CHECK(Analyse(After(10, 0.5, 0.5, 0), After(10, 0.5, 0.5, 0), 4).sentence().empty());
  const v1::Analysis back = Analyse(After(20, 0.5, 0.5, 0), After(10, 0.5, 0.5, 0), 4);
  CHECK(back.steps_per_s() == 0);
  Look end = After(20, 0.5, 0.5, 0);
  end.stats.set_state(v1::PIPELINE_STATE_FINISHED);
  CHECK(Analyse(After(10, 0.5, 0.5, 0), end, 4).sentence() == "the stream has ended");
}

TEST_CASE("nothing holds back what does not run") {
  const Look before = After(10, 0.1, 0.1, 0);
  Look now = After(20, 0.1, 0.1, 0);
  for (const v1::PipelineState state :
       {v1::PIPELINE_STATE_FINISHED, v1::PIPELINE_STATE_PAUSED, v1::PIPELINE_STATE_FAILED}) {
    now.stats.set_state(state);
    const v1::Analysis analysis = Analyse(before, now, 4);
    CHECK(analysis.bottleneck().empty());
    CHECK(analysis.one_more_worker() == 0);
    CHECK_FALSE(analysis.sentence().empty());
  }
  // No worker and no stage is left, nor is there one before a daemon that came back has begun.
  Look bare = now;
  bare.stats.set_state(v1::PIPELINE_STATE_RUNNING);
  bare.stats.clear_workers();
  bare.stats.clear_stages();
  CHECK(Analyse(before, bare, 4).sentence() == "no worker is at work yet");
  bare.stats.set_resting(true);
  const v1::Analysis rests = Analyse(before, bare, 4);
  CHECK(rests.bottleneck().empty());
  CHECK(rests.busy() + rests.blocked() + rests.starved() == 0);
  CHECK(rests.sentence() ==
        "it rests, as nobody reads it: its memory and threads are given back until a consumer "
        "attaches");
}

}  // namespace
}  // namespace penstock
