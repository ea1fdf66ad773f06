// Where iterables stood: what a cursor gets.
#include "server/python/iterator_states.h"

#include <string>

#include "tests/support/catch.h"

using penstock::python::IteratorStates;

TEST_CASE("the latest state in front of an element is found, of its pass alone") {
  IteratorStates states;
  REQUIRE(states.Find(0, 100).number == 0);
  REQUIRE(states.Find(0, 100).bytes.empty());
  states.Add(0, {10, "ten"});
  states.Add(0, {20, "twenty"});
  states.Add(1, {15, "another pass"});
  REQUIRE(states.Find(0, 9).bytes.empty());
  REQUIRE(states.Find(0, 10).bytes == "ten");
  REQUIRE(states.Find(0, 19).bytes == "ten");
  REQUIRE(states.Find(0, 1000).bytes == "twenty");
  REQUIRE(states.Find(1, 1000).number == 15);
  REQUIRE(states.Find(2, 1000).number == 0);
  // Behind a failure they come again, and in another order.
  states.Add(0, {12, "twelve"});
  REQUIRE(states.Find(0, 1000).bytes == "twenty");
  REQUIRE(states.Find(0, 13).bytes == "twelve");
}

TEST_CASE("states that are too long are none, and the oldest ones go") {
  IteratorStates states;
  states.Add(0, {5, std::string(IteratorStates::kMaxStateBytes + 1, 'x')});
  REQUIRE(states.Find(0, 10).bytes.empty());
  states.Add(0, {5, std::string(IteratorStates::kMaxStateBytes, 'x')});
  REQUIRE(states.Find(0, 10).bytes.size() == IteratorStates::kMaxStateBytes);
  for (uint64_t i = 0; i < IteratorStates::kMaxStates; ++i) states.Add(0, {10 + i, "later"});
  REQUIRE(states.Find(0, 9).bytes.empty());
  REQUIRE(states.Find(0, 10).bytes == "later");
}
