// Thousands of short histories, each out of one seed. (Longer: ./dev test sim.)
#include "tests/sim/history.h"

#include <string>

#include "tests/support/catch.h"

namespace penstock::test {
namespace {

TEST_CASE("Simulated histories keep every invariant") {
  HistoryReport total;
  CHECK(RunHistories(/*seed=*/1, /*count=*/8000, &total) == "");
  CHECK(total.lives > 16000);
  CHECK(total.steps > 60000);
  CHECK(total.broken > 1000);
  CHECK(total.ends);
  CHECK(total.fails);
}

TEST_CASE("A simulated history is the same each time") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    HistoryReport reports[2];
    for (HistoryReport& report : reports) RunHistories(seed, 1, &report);
    CHECK(reports[0].steps == reports[1].steps);
    CHECK(reports[0].lives == reports[1].lives);
    CHECK(reports[0].broken == reports[1].broken);
  }
}

}  // namespace
}  // namespace penstock::test
