// When consumers wait, by looks at them.
#include "server/service/watch/consumer_waits.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

ring::ConsumerStats At(uint32_t id, uint64_t position, bool waits) {
  ring::ConsumerStats stats;
  stats.id = id;
  stats.group = "default";
  stats.pid = 123;
  stats.position = position;
  stats.waits = waits;
  return stats;
}

TEST_CASE("a wait goes from the look that finds it to the one that finds its end") {
  ConsumerWaits waits;
  waits.Look(1, {At(1, 5, false), At(2, 5, true)}, 10);
  waits.Look(1, {At(1, 5, true), At(2, 5, true)}, 20);
  waits.Look(1, {At(1, 5, true), At(2, 6, false)}, 30);
  waits.Look(1, {At(1, 6, false), At(2, 6, false)}, 40);
  waits.Look(1, {At(1, 6, true), At(2, 6, false)}, 50);
  const std::vector<ConsumerWait> ended = waits.End(60);
  REQUIRE(ended.size() == 3);
  CHECK(ended[0].consumer == 2);
  CHECK(ended[0].begin_ns == 10);
  CHECK(ended[0].end_ns == 30);
  CHECK(ended[1].consumer == 1);
  CHECK(ended[1].begin_ns == 20);
  CHECK(ended[1].end_ns == 40);
  CHECK(ended[1].name == "consumer 1 of group default (process 123)");
  // What goes on ends with the profile.
  CHECK(ended[2].consumer == 1);
  CHECK(ended[2].begin_ns == 50);
  CHECK(ended[2].end_ns == 60);
  CHECK(waits.dropped() == 0);
}

TEST_CASE("two waits of which no look lies between are two where a step was taken") {
  ConsumerWaits waits;
  waits.Look(1, {At(1, 5, true)}, 10);
  waits.Look(1, {At(1, 6, true)}, 20);
  const std::vector<ConsumerWait> ended = waits.End(30);
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].end_ns == 20);
  CHECK(ended[1].begin_ns == 20);
}

TEST_CASE("consumers of the same number at two streams are two, and one without waits is seen") {
  ConsumerWaits waits;
  waits.Look(1, {At(1, 5, true)}, 10);
  waits.Look(2, {At(1, 0, false)}, 10);
  ring::ConsumerStats gone = At(3, 0, true);
  gone.left = true;
  waits.Look(2, {gone}, 15);
  const std::vector<ConsumerWait> ended = waits.End(20);
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].stream == 1);
  CHECK(ended[0].end_ns - ended[0].begin_ns == 10);
  CHECK(ended[1].stream == 2);
  CHECK(ended[1].end_ns == ended[1].begin_ns);
}

TEST_CASE("waits beyond the limit are counted") {
  ConsumerWaits waits;
  for (uint64_t i = 0; i <= ConsumerWaits::kMost; ++i) waits.Look(1, {At(1, i, true)}, i);
  CHECK(waits.End(1 + ConsumerWaits::kMost).size() == ConsumerWaits::kMost);
  CHECK(waits.dropped() == 1);
}

}  // namespace
}  // namespace penstock
