// What top and autotune conclude from measured shares, against what another number of workers
// brings on the simulated clock.

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "server/service/tune/autotune.h"
#include "server/service/watch/analysis.h"
#include "server/service/watch/helper_gain.h"
#include "tests/sim/clocked_pipeline.h"
#include "tests/sim/recent_looks.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace {

constexpr double kWarmUpSeconds = 2;
constexpr double kWindowSeconds = 20;

struct Measured {
  double steps_per_s = 0;
  double trainer_wait = 0;
  v1::Analysis analysis;
};

Measured Measure(const ClockedOptions& options, int processors) {
  ClockedPipeline pipeline(options);
  pipeline.RunFor(kWarmUpSeconds);
  const Look from = pipeline.TakeLook();
  const double steps = pipeline.steps_taken(), waited = pipeline.trainer_waited_s();
  pipeline.RunFor(kWindowSeconds);
  Measured measured;
  measured.steps_per_s = (pipeline.steps_taken() - steps) / kWindowSeconds;
  measured.trainer_wait = (pipeline.trainer_waited_s() - waited) / kWindowSeconds;
  measured.analysis = Analyse(from, pipeline.TakeLook(), processors);
  return measured;
}

// Declared costs of a decoder between two cheap stages, in microseconds of a block.
ClockedOptions Pipeline(double decode_us, int workers, double trainer_us, uint64_t seed) {
  ClockedOptions options;
  options.stages = {{"read", 20}, {"decode", decode_us}, {"batch", 30}};
  options.workers = workers;
  options.trainer_us = trainer_us;
  options.seed = seed;
  return options;
}

TEST_CASE("what another worker would bring is what it brings") {
  const struct {
    double decode_us;
    int workers;
    double trainer_us;
    std::string bottleneck;
  } kCases[] = {
      {1000, 2, 100, "decode"},   // the trainer waits for nearly everything
      {1000, 3, 100, "decode"},   //
      {1000, 2, 3500, "decode"},  // a worker more is nearly enough
      {1000, 4, 1900, "decode"},  //
      {1000, 7, 1100, "decode"},  // an eighth is enough
      {400, 1, 2000, "decode"},   //
      {1000, 8, 4000, "consumer"},
  };
  for (const auto& one : kCases) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(one.decode_us, one.workers, one.trainer_us, seed);
      const Measured now =
          Measure(Pipeline(one.decode_us, one.workers, one.trainer_us, seed), /*processors=*/64);
      CAPTURE(now.analysis.sentence(), now.trainer_wait);
      CHECK(now.analysis.bottleneck() == one.bottleneck);
      CHECK(now.analysis.steps_per_s() == Approx(now.steps_per_s).epsilon(0.01));
      // It is looked at forty times a second.
      CHECK(now.analysis.trainer_wait() == Approx(now.trainer_wait).margin(0.06));
      const Measured then = Measure(Pipeline(one.decode_us, one.workers + 1, one.trainer_us, seed),
                                    /*processors=*/64);
      const double growth = then.steps_per_s / now.steps_per_s - 1;
      CHECK(now.analysis.one_more_worker() == Approx(growth).margin(0.08));
      if (one.bottleneck != "consumer")
        CHECK(now.analysis.trainer_wait_with_one_more() == Approx(then.trainer_wait).margin(0.08));
    }
  }
}

// The same with helpers, and a ring that has room for their steps.
ClockedOptions Helped(int helpers, double helper_us, double trainer_us, uint64_t seed) {
  ClockedOptions options = Pipeline(/*decode_us=*/1000, /*workers=*/2, trainer_us, seed);
  options.slots = 64;
  options.helpers = helpers;
  options.helper_us = helper_us;
  return options;
}

// 0 where the sentence does not say it.
double NumberBehind(const std::string& sentence, const std::string& words) {
  const size_t at = sentence.find(words);
  return at == sentence.npos ? 0 : std::stod(sentence.substr(at + words.size()));
}

TEST_CASE("what another helper would bring is what it brings") {
  // Two workers make a step in some 4,200 us.
  const struct {
    int helpers;
    double helper_us, trainer_us;
  } kCases[] = {
      {1, 4200, 100},    // the trainer takes whatever comes
      {2, 8000, 100},    //
      {1, 4200, 1000},   // two more are enough, or three
      {2, 6000, 600},    //
      {3, 12000, 1900},  // one more is nearly enough
      {1, 30000, 3000},  // each brings a seventh
      {2, 4200, 4000},   // there are enough
  };
  for (const auto& one : kCases) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const auto with = [&](int more) {
        return Measure(Helped(one.helpers + more, one.helper_us, one.trainer_us, seed), 2);
      };
      const Measured now = with(0);
      const std::string gain = HelperGainIn(now.analysis.sentence());
      const int missing = static_cast<int>(NumberBehind(gain, "; with "));
      CAPTURE(one.helpers, one.helper_us, one.trainer_us, seed, missing, now.trainer_wait, gain);
      const double growth = with(1).steps_per_s / now.steps_per_s - 1;
      if (now.trainer_wait < 0.005) {
        CHECK(missing == 0);
        CHECK(absl::StrContains(gain, "more would change nothing"));
        CHECK(growth == Approx(0).margin(0.02));
        continue;
      }
      CHECK(NumberBehind(gain, "+1 helper ≈ +") / 100 == Approx(growth).margin(0.08));
      if (now.trainer_wait > 0.93) CHECK(missing == 0);
      if (missing == 0) continue;
      // So many are enough, and two fewer are not: forty looks a second see the wait roughly.
      CHECK(with(missing).trainer_wait < 0.06);
      if (missing > 1) CHECK(with(missing - 2).trainer_wait > 0.02);
    }
  }
}

TEST_CASE("helpers that bring little, or that nobody needs, are told as such") {
  const auto told = [](const ClockedOptions& options) {
    return HelperGainIn(Measure(options, 2).analysis.sentence());
  };
  CHECK(told(Helped(0, 4200, 100, 1)).empty());
  const std::string little = told(Helped(1, 400'000, 100, 1));
  INFO(little);
  CHECK(
      absl::StrContains(little, "helpers: 1 makes 2 % of the steps: more like these would change"));
  // The trainer is slower than the workers are.
  CHECK(absl::StrContains(told(Helped(1, 4200, 20'000, 1)), "more would change nothing"));
  // A ring that is too short for one more is told.
  ClockedOptions small = Helped(2, 8000, 100, 1);
  small.slots = 9;
  CHECK(absl::StrContains(told(small), "if the ring has room (ring { slots: 12 } in the spec)"));
}

TEST_CASE("autotune says what helpers would bring where more workers are not to be had") {
  ClockedOptions options = Helped(1, 8000, 1500, 1);
  ClockedPipeline pipeline(options);
  Autotuner tuner(2, 2);
  RecentLooks looks(pipeline);
  for (int second = 0; second < 20; ++second) CHECK(tuner.Look(looks.NextSecond(), 2) == 2);
  INFO(tuner.reason());
  CHECK(
      absl::StrContains(tuner.reason(), "2 workers are as many as there may be; helpers: 1 makes"));
  CHECK(absl::StrContains(tuner.reason(), " more the trainer would wait for nothing"));
}

// The fewest workers with which the trainer waits for less than a fiftieth of its time.
int Fewest(double decode_us, double trainer_us, int most) {
  for (int workers = 1; workers < most; ++workers) {
    if (Measure(Pipeline(decode_us, workers, trainer_us, 9), 64).trainer_wait < 0.02)
      return workers;
  }
  return most;
}

// A minute after minute of a tuner that looks once a second.
int Tune(ClockedPipeline& pipeline, Autotuner& tuner, int workers, int seconds,
         std::string* reason) {
  RecentLooks looks(pipeline);
  for (int second = 0; second < seconds; ++second) {
    const int wanted = tuner.Look(looks.NextSecond(), workers);
    CHECK(wanted >= 1);
    CHECK(wanted <= tuner.most());
    workers = wanted;
    pipeline.SetWorkers(workers);
  }
  *reason = tuner.reason();
  return workers;
}

TEST_CASE("autotune finds the fewest workers that the trainer needs, and follows it") {
  const struct {
    double decode_us, trainer_us;
    int begin;
  } kCases[] = {{1000, 2800, 16}, {1000, 2800, 1}, {1000, 20'000, 16},
                {1000, 1200, 1},  {400, 700, 16},  {1000, 100, 2}};
  constexpr int kMost = 16;
  for (const auto& one : kCases) {
    CAPTURE(one.decode_us, one.trainer_us, one.begin);
    ClockedOptions options = Pipeline(one.decode_us, one.begin, one.trainer_us, 5);
    ClockedPipeline pipeline(options);
    Autotuner tuner(kMost, kMost);
    std::string reason;
    const int chosen = Tune(pipeline, tuner, one.begin, 240, &reason);
    const int fewest = Fewest(one.decode_us, one.trainer_us, kMost);
    CAPTURE(reason);
    CHECK(chosen >= fewest);
    // A sixth of the work is kept free, and no more.
    CHECK(chosen <= std::min(kMost, static_cast<int>(std::ceil(fewest * 1.2)) + 1));
    CHECK(!reason.empty());

    const double waited = pipeline.trainer_waited_s();
    const double began = pipeline.now_s();
    Tune(pipeline, tuner, chosen, 60, &reason);
    if (fewest < kMost)
      CHECK((pipeline.trainer_waited_s() - waited) / (pipeline.now_s() - began) < 0.05);

    // The trainer becomes twice as quick: nobody waits for long.
    pipeline.SetTrainer(one.trainer_us / 2);
    const int more = Tune(pipeline, tuner, chosen, 120, &reason);
    CHECK(more >= Fewest(one.decode_us, one.trainer_us / 2, kMost));
  }
}

TEST_CASE("autotune leaves a pipeline alone that workers would not help") {
  v1::PipelineStats stats;
  stats.set_state(v1::PIPELINE_STATE_RUNNING);
  stats.add_consumers();
  v1::Analysis* now = stats.mutable_analysis();
  now->set_seconds(5);
  now->set_trainer_wait(0.9);
  now->set_busy(0.1);  // files are slow
  now->set_starved(0.9);
  Autotuner tuner(8, 8);
  for (int i = 0; i < 100; ++i) REQUIRE(tuner.Look(stats, 4) == 4);
  CHECK(tuner.reason().find("more would not help") != std::string::npos);
  CHECK(tuner.changes() == 0);
  // One that does nothing yet, and one that has ended.
  stats.set_state(v1::PIPELINE_STATE_PAUSED);
  now->set_busy(1);
  for (int i = 0; i < 100; ++i) REQUIRE(tuner.Look(stats, 4) == 4);
  // More than there may be.
  stats.set_state(v1::PIPELINE_STATE_RUNNING);
  CHECK(tuner.Look(stats, 9) == 8);
}

}  // namespace
}  // namespace penstock::test
