#include "server/service/watch/analysis.h"

#include <string>
#include <vector>

#include "server/service/http/metrics.h"
#include "server/service/tune/autotune.h"
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

TEST_CASE("metrics stand by family, with labels escaped") {
  v1::PipelineStats stats = After(10, 0.25, 0.5, 0.5).stats;
  stats.mutable_stages(0)->set_name("a \"b\"\\\n");
  stats.mutable_consumers(0)->set_lag(3);
  v1::ConsumerStats* sent_away = stats.add_consumers();
  *sent_away = stats.consumers(0);
  sent_away->set_lag(1000);
  sent_away->set_detached(true);
  v1::ConsumerStats* gone = stats.add_consumers();
  *gone = stats.consumers(0);
  gone->set_lag(2000);
  gone->set_left(true);
  // A counter begins at 0 with its stream, whatever step that begins at.
  stats.set_steps(5100);
  stats.set_made_steps(100);
  v1::PipelineStats other = stats;
  other.set_name("q");
  other.mutable_oldest_read()->set_seconds(12.5);
  other.mutable_oldest_write()->set_seconds(3.5);
  other.mutable_oldest_work()->set_seconds(1.5);
  other.set_tasks_away(5);
  other.set_work_bytes(1000);
  other.set_max_work_bytes(4000);
  other.mutable_stages(0)->set_away_ns(2'500'000'000);
  v1::RemoteStats* remote = other.mutable_remote();
  remote->set_bytes(8000);
  remote->set_requests(12);
  remote->set_retries(2);
  remote->set_hedges(1);
  remote->set_hits(30);
  remote->set_misses(4);
  remote->set_cached_bytes(500);
  remote->set_waiting(3);
  remote->set_under_way(9);
  remote->set_first_byte_ms(62.5);
  v1::PythonWorkers* python = other.mutable_stages(0)->mutable_python_workers();
  python->set_workers(3);
  python->set_busy_ns(4'500'000'000);
  python->set_oldest_row_seconds(1.25);
  python->set_started(9);
  python->set_deaths(6);
  python->set_memory_bytes(77);
  const std::string text = MetricsText({stats, other}, 4, {.no_right = 3},
                                       {.files = 2, .bytes = 900}, {1.5, 4096, 7, 1e9});
  const auto has = [&text](const std::string& line) {
    return text.find("\n" + line + "\n") != text.npos;
  };
  CHECK(has("penstock_pipelines 2"));
  CHECK(has("penstock_pipelines_returning 4"));
  CHECK(has("penstock_refusals_total{reason=\"no right\"} 3"));
  CHECK(has("penstock_pipeline_steps_total{pipeline=\"p\"} 100"));
  CHECK(has("penstock_pipeline_slot_wait_seconds_total{pipeline=\"p\"} 5"));
  CHECK(has("penstock_pipeline_oldest_read_seconds{pipeline=\"p\"} 0"));
  CHECK(has("penstock_pipeline_oldest_read_seconds{pipeline=\"q\"} 12.5"));
  CHECK(has("penstock_pipeline_oldest_write_seconds{pipeline=\"p\"} 0"));
  CHECK(has("penstock_pipeline_oldest_write_seconds{pipeline=\"q\"} 3.5"));
  CHECK(has("penstock_pipeline_oldest_work_seconds{pipeline=\"p\"} 0"));
  CHECK(has("penstock_pipeline_oldest_work_seconds{pipeline=\"q\"} 1.5"));
  CHECK(has("penstock_pipeline_tasks_away{pipeline=\"q\"} 5"));
  CHECK(has("penstock_pipeline_fetched_bytes_total{pipeline=\"q\"} 8000"));
  CHECK(has("penstock_pipeline_fetch_requests_total{pipeline=\"q\"} 12"));
  CHECK(has("penstock_pipeline_fetch_retries_total{pipeline=\"q\"} 2"));
  CHECK(has("penstock_pipeline_fetch_hedges_total{pipeline=\"q\"} 1"));
  CHECK(has("penstock_pipeline_fetch_hits_total{pipeline=\"q\"} 30"));
  CHECK(has("penstock_pipeline_fetch_misses_total{pipeline=\"q\"} 4"));
  CHECK(has("penstock_pipeline_fetch_cached_bytes_total{pipeline=\"q\"} 500"));
  CHECK(has("penstock_pipeline_fetch_waiting{pipeline=\"q\"} 3"));
  CHECK(has("penstock_fetch_under_way 9"));
  CHECK(has("penstock_fetch_first_byte_seconds 0.0625"));
  CHECK(!has("penstock_pipeline_fetch_requests_total{pipeline=\"p\"} 0"));
  CHECK(has("penstock_pipeline_work_bytes{pipeline=\"q\"} 1000"));
  CHECK(has("penstock_pipeline_work_limit_bytes{pipeline=\"q\"} 4000"));
  CHECK(has("penstock_stage_away_seconds_total{pipeline=\"q\",stage=\"a \\\"b\\\"\\\\\\n\"} 2.5"));
  const std::string stage = "{pipeline=\"q\",stage=\"a \\\"b\\\"\\\\\\n\"} ";
  CHECK(has("penstock_stage_python_workers" + stage + "3"));
  CHECK(has("penstock_stage_python_busy_seconds_total" + stage + "4.5"));
  CHECK(has("penstock_stage_python_oldest_row_seconds" + stage + "1.25"));
  CHECK(has("penstock_stage_python_started_total" + stage + "9"));
  CHECK(has("penstock_stage_python_deaths_total" + stage + "6"));
  CHECK(has("penstock_stage_python_bytes" + stage + "77"));
  CHECK(text.find("penstock_stage_python_workers{pipeline=\"p\"") == text.npos);
  CHECK(has("penstock_pipeline_state{pipeline=\"q\",state=\"running\"} 1"));
  CHECK(has("penstock_pipeline_state{pipeline=\"q\",state=\"failed\"} 0"));
  CHECK(has("penstock_stage_busy_seconds_total{pipeline=\"p\",stage=\"a \\\"b\\\"\\\\\\n\"} 5"));
  CHECK(has("penstock_group_lag_steps{pipeline=\"p\",group=\"default\"} 3"));
  CHECK(has("penstock_group_consumers{pipeline=\"p\",group=\"default\"} 1"));
  CHECK(has("penstock_mapped_files 2"));
  CHECK(has("penstock_mapped_bytes 900"));
  CHECK(has("process_cpu_seconds_total 1.5"));
  // Each family once, its series together.
  const size_t type = text.find("# TYPE penstock_pipeline_rows_total counter\n");
  REQUIRE(type != text.npos);
  CHECK(text.find("# TYPE penstock_pipeline_rows_total", type + 1) == text.npos);
}

}  // namespace
}  // namespace penstock
