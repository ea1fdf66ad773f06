// What a pipeline tells, and when.
#include "server/service/pipeline/pipeline_events.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("what could not be had is told once, and not before others know of the pipeline") {
  std::vector<std::string> told;
  PipelineEvents events("p", [&told](v1::Event event) {
    CHECK(event.kind() == v1::EVENT_KIND_MISPLACED);
    CHECK(event.pipeline() == "p");
    told.push_back(event.text());
  });
  events.TellMisplaced("no memory");
  events.TellMisplaced("no memory");
  CHECK(told.empty());
  events.Announce();
  CHECK(told == std::vector<std::string>{"no memory"});
  events.Announce();
  events.TellMisplaced("no memory");
  events.TellMisplaced("no processors");
  CHECK(told == std::vector<std::string>{"no memory", "no processors"});
}

TEST_CASE("a change is told without the stages that an epoch begins with") {
  std::vector<v1::Event> told;
  const PipelineEvents events("p", [&told](v1::Event event) { told.push_back(event); });
  v1::Change change;
  change.add_stage()->set_name("many files");
  events.Tell(v1::EVENT_KIND_UPDATED, "from step 3 on", {}, &change);
  change.set_epoch(4);
  events.Tell(v1::EVENT_KIND_UPDATED, "from epoch 4 on", {}, &change);
  REQUIRE(told.size() == 2);
  CHECK(told[0].change().stage_size() == 1);
  CHECK(told[1].change().stage_size() == 0);
  CHECK(told[1].change().epoch() == 4);
  CHECK_FALSE(told[0].has_uid());
  events.Tell(v1::EVENT_KIND_PAUSED, "it begins no further batch", {1000, "user 1000"});
  CHECK(told.back().uid() == 1000);
  // Nobody listens.
  PipelineEvents("p", nullptr).Tell(v1::EVENT_KIND_PAUSED, "it begins no further batch");
}

}  // namespace
}  // namespace penstock
