// Who waits for whom.
#include "server/service/watch/explain.h"

#include "server/service/watch/analysis.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

v1::ConsumerStats* AddConsumer(v1::PipelineStats* stats, uint32_t id, uint64_t position,
                               double empty) {
  v1::ConsumerStats* consumer = stats->add_consumers();
  consumer->set_id(id);
  consumer->set_group("g");
  consumer->set_pid(static_cast<int>(100 + id));
  consumer->set_position(position);
  consumer->set_lag(stats->steps() - position);
  consumer->set_empty(empty);
  return consumer;
}

v1::PipelineStats Stats(const char* bottleneck) {
  v1::PipelineStats stats;
  stats.set_state(v1::PIPELINE_STATE_RUNNING);
  stats.set_steps(50);
  stats.set_slots(4);
  stats.set_workers(2);
  stats.mutable_analysis()->set_bottleneck(bottleneck);
  stats.mutable_analysis()->add_stage_busy(0.25);
  stats.mutable_analysis()->add_stage_busy(0.7);
  stats.mutable_analysis()->set_starved(0.9);
  return stats;
}

TEST_CASE("one consumer waits for another one, which holds the ring") {
  v1::PipelineStats stats = Stats("consumer");
  AddConsumer(&stats, 1, 50, 0.9);
  AddConsumer(&stats, 2, 46, 0)->set_leases(2);
  AddConsumer(&stats, 3, 10, 0)->set_replay(true);
  const std::vector<std::string> told = Explain(stats);
  REQUIRE(told.size() == 3);
  CHECK(told[0] ==
        "consumer 1 of group g (process 101) waits for step 50, which has no slot as long as "
        "consumer 2 of group g (process 102) has not taken step 46");
  CHECK(told[1] ==
        "the workers wait for a free slot: all 4 hold steps that were not taken, or not let go of");
  CHECK(told[2] ==
        "consumer 2 of group g (process 102) is the one they wait for: it stands at step 46, 4 "
        "behind, holds 2 and takes 0 steps/s");
}

TEST_CASE("what the processes of a Python function do is told of each such stage") {
  v1::PipelineStats stats = Stats("map");
  stats.add_stages()->set_name("range");
  v1::StageStats* stage = stats.add_stages();
  stage->set_name("map");
  v1::PythonWorkers* workers = stage->mutable_python_workers();
  workers->set_workers(2);
  workers->set_most_workers(2);
  stats.mutable_analysis()->add_python_busy(0);
  stats.mutable_analysis()->add_python_busy(0.9);
  AddConsumer(&stats, 1, 50, 0.9);
  std::vector<std::string> told = Explain(stats);
  REQUIRE(told.size() == 3);
  CHECK(told[1] == "batches wait for stage map, whose rows a Python function computes");
  CHECK(told[2] == "stage map has 2 Python workers of at most 2, at rows 90 % of the time");
  workers->set_workers(1);
  workers->set_chosen(true);
  workers->set_oldest_row_seconds(12.34);
  workers->set_started(4);
  workers->set_deaths(3);
  told = Explain(stats);
  CHECK(told.back() ==
        "stage map has 1 Python worker of at most 2, as many as its rows need, at rows 90 % of the "
        "time; a row has taken 12.3 s so far; 3 of the 4 that were started have died");
  workers->set_oldest_row_seconds(0);
  workers->set_deaths(0);
  workers->set_loading_seconds(71.26);
  told = Explain(stats);
  CHECK(told.back() ==
        "stage map has 1 Python worker of at most 2, as many as its rows need, at rows 90 % of the "
        "time; one has been loading the function for 71.3 s so far");
}

TEST_CASE("fault 64: rows that wait for another user's workers say for whose, and what helps") {
  v1::PipelineStats stats = Stats("map");
  v1::StageStats* stage = stats.add_stages();
  stage->set_name("map");
  v1::PythonWorkers* workers = stage->mutable_python_workers();
  workers->set_most_workers(2);
  workers->set_uid(1000);
  workers->set_offers(0);
  CHECK(WaitForOffer(*stage).empty());
  workers->set_waits_for_offer_seconds(2.51);
  const std::string none = WaitForOffer(*stage);
  CHECK(none ==
        "rows of stage map have waited 2.5 s for Python workers of user 1000: no process of that "
        "user offers any; the process that made the pipeline offers them while it lives, and "
        "penstock.offer_workers() does in another one that has the function");
  CHECK(Explain(stats).back() == none);
  workers->set_offers(1);
  CHECK(WaitForOffer(*stage).find(": of 1 process that offers some, none has this function;") !=
        std::string::npos);
  workers->set_offers(3);
  CHECK(WaitForOffer(*stage).find(": of 3 processes that offer some, none has") !=
        std::string::npos);
  // It is what the pipeline waits for, whatever else there is.
  CHECK(Analyse({0, stats}, {1'000'000'000, stats}, 2).sentence() == WaitForOffer(*stage));
}

v1::WaitedFor* AddWaitedFor(v1::PipelineStats* stats, const char* mode, uint32_t consumer) {
  v1::WaitedFor* party = stats->add_waited_for();
  party->set_group("evil");
  party->set_mode(mode);
  party->set_consumer(consumer);
  party->set_pid(consumer == 0 ? 0 : static_cast<int>(100 + consumer));
  party->set_uid(12345);
  party->set_seconds(12.04);
  return party;
}

TEST_CASE("fault 69: who is waited for is named, with its user and for how long") {
  v1::PipelineStats stats = Stats("consumer");
  AddConsumer(&stats, 1, 50, 0.9);
  v1::ConsumerStats* idle = AddConsumer(&stats, 2, 46, 1);
  idle->set_group("evil");
  AddWaitedFor(&stats, "split", 2)->set_most_seconds(20);
  std::vector<std::string> told = Explain(stats);
  REQUIRE(told.size() == 2);
  CHECK(told[0] ==
        "consumer 1 of group g (process 101) waits for step 50, which has no slot as long as group "
        "evil (split, of user 12345) does not go on");
  CHECK(told[1] ==
        "group evil (split, of user 12345) is the one they wait for, for 12 s: its consumer 2 "
        "(process 102) asks for no batch; they wait for 20 s at most");
  // Before there were looks enough for an analysis, too.
  stats.clear_analysis();
  CHECK(Explain(stats) == told);
  stats.clear_waited_for();
  AddWaitedFor(&stats, "split", 0);
  CHECK(Explain(stats).back() ==
        "group evil (split, of user 12345) is the one they wait for, for 12 s: nobody takes its "
        "batches, and it is kept for who comes back; they wait as long as it takes");
  stats.clear_waited_for();
  v1::WaitedFor* ranks = AddWaitedFor(&stats, "rank", 2);
  ranks->set_missing(63);
  ranks->set_first_missing_rank(1);
  ranks->set_world_size(64);
  CHECK(
      Explain(stats).back() ==
      "group evil (rank, of user 12345) is the one they wait for, for 12 s: 63 of its places, the "
      "first of rank 1 of 64, are not taken; they wait as long as it takes");
  stats.clear_waited_for();
  AddWaitedFor(&stats, "broadcast", 2);
  CHECK(Explain(stats).back() ==
        "consumer 2 of group evil (process 102, user 12345) is the one they wait for, for 12 s: it "
        "stands at step 46, 4 behind, holds 0 and takes 0 steps/s; they wait as long as it takes");
}

TEST_CASE("who was sent away or has left waits for nothing, and nobody waits for it") {
  v1::PipelineStats stats = Stats("consumer");
  AddConsumer(&stats, 1, 46, 0)->set_leases(2);
  AddConsumer(&stats, 2, 3, 1)->set_detached(true);
  AddConsumer(&stats, 3, 3, 1)->set_left(true);
  const std::vector<std::string> told = Explain(stats);
  REQUIRE(told.size() == 2);
  CHECK(told[1].substr(0, 10) == "consumer 1");
  stats.mutable_analysis()->set_bottleneck("map");
  CHECK(Explain(stats).size() == 1);
  stats.mutable_analysis()->set_bottleneck("consumer");
  stats.mutable_consumers(0)->set_detached(true);
  CHECK(Explain(stats).back() == "nobody reads: the first consumer that attaches lets it go on");
}

TEST_CASE("what of its NUMA node a pipeline has not comes first") {
  v1::PipelineStats stats = Stats("map");
  stats.mutable_numa()->add_notice("there is no NUMA node 7");
  REQUIRE(Explain(stats).size() == 2);
  CHECK(Explain(stats).front() == "there is no NUMA node 7");
  stats.clear_analysis();
  CHECK(Explain(stats).size() == 2);
}

TEST_CASE("fault 28: a read that hangs is what the others wait for") {
  v1::PipelineStats stats = Stats("reading");
  v1::ReadUnderWay* read = stats.mutable_oldest_read();
  read->set_doing("reading");
  read->set_file("/data/a");
  read->set_offset(4096);
  read->set_seconds(12.4);
  const std::string hung =
      "reading /data/a at offset 4096 has not returned for 12 s: a disk or a network hangs";
  CHECK(Explain(stats) ==
        std::vector<std::string>{
            "the 2 workers wait 90 % of their time for files to be read, or for the order", hung});
  stats.mutable_analysis()->set_bottleneck("map");
  CHECK(Explain(stats).back() == hung);
  // Batches are ready still.
  stats.mutable_analysis()->set_bottleneck("consumer");
  CHECK(Explain(stats).front() == hung);
  stats.clear_analysis();
  CHECK(Explain(stats).back() == hung);
  read->set_doing("opening");
  CHECK(Explain(stats).back() ==
        "opening /data/a has not returned for 12 s: a disk or a network hangs");
}

TEST_CASE("fault 28: a write that hangs is told, with a read that does too in front of it") {
  v1::PipelineStats stats = Stats("map");
  v1::ReadUnderWay* write = stats.mutable_oldest_write();
  write->set_doing("writing");
  write->set_file("/kept/a.partial");
  write->set_offset(4096);
  write->set_seconds(12.4);
  CHECK(Explain(stats).back() ==
        "writing /kept/a.partial at offset 4096 has not returned for 12 s: a disk or a network "
        "hangs");
  CHECK(Explain(stats).size() == 2);
  write->set_doing("syncing");
  stats.mutable_oldest_read()->set_doing("opening");
  const std::vector<std::string> both = Explain(stats);
  REQUIRE(both.size() == 3);
  CHECK(both[1] == "opening  has not returned for 0 s: a disk or a network hangs");
  CHECK(both[2] ==
        "syncing /kept/a.partial has not returned for 12 s: a disk or a network hangs, or has much "
        "to write");
}

TEST_CASE("rows that others compute and that do not come back are told") {
  v1::PipelineStats stats = Stats("map");
  v1::ReadUnderWay* work = stats.mutable_oldest_work();
  work->set_doing("computing");
  work->set_file("process 7");
  work->set_seconds(12.4);
  stats.set_tasks_away(3);
  CHECK(
      Explain(stats).back() ==
      "computing process 7 has not returned for 12 s: those who do it are slow, or hang (3 of its "
      "tasks are away)");
}

TEST_CASE("consumers wait for a stage, for reading, for a resume, or not at all") {
  v1::PipelineStats stats = Stats("map");
  AddConsumer(&stats, 1, 50, 0.8);
  CHECK(Explain(stats) ==
        std::vector<std::string>{
            "consumer 1 of group g (process 101) waits 80 % of its time for batches that are not "
            "made yet",
            "batches wait for stage map, in which the 2 workers spend 70 % of their time"});
  CHECK(Explain(Stats("reading")) ==
        std::vector<std::string>{
            "the 2 workers wait 90 % of their time for files to be read, or for the order"});
  v1::PipelineStats barren = Stats("reading");
  barren.mutable_analysis()->set_barren("stage filter gave no element");
  CHECK(Explain(barren) == std::vector<std::string>{"stage filter gave no element"});
  CHECK(Explain(Stats("consumer")).back() ==
        "nobody reads: the first consumer that attaches lets it go on");
  stats.set_state(v1::PIPELINE_STATE_PAUSED);
  CHECK(Explain(stats).front() ==
        "consumers wait for step 50: the pipeline is paused until it is resumed");
  stats.set_state(v1::PIPELINE_STATE_FINISHED);
  CHECK(Explain(stats).front() == "nobody waits: the stream has ended with step 50");
  stats.set_state(v1::PIPELINE_STATE_FAILED);
  stats.mutable_error()->set_message("broken");
  CHECK(Explain(stats).front() ==
        "every consumer gets the error that stopped the pipeline: broken");
  v1::PipelineStats rests = Stats("");
  rests.set_resting(true);
  CHECK(Explain(rests) ==
        std::vector<std::string>{"nobody waits: nobody reads it, and it rests; who attaches gets "
                                 "step 50"});
  const std::vector<std::string> told = Explain(rests);
  rests.set_state(v1::PIPELINE_STATE_FINISHED);
  CHECK(Explain(rests) == told);
  CHECK(Explain(Stats("")).front() == "it has run for too short a time to tell");
  v1::PipelineStats young;
  young.set_state(v1::PIPELINE_STATE_RUNNING);
  CHECK(Explain(young).front() == "it has run for too short a time to tell");
}

TEST_CASE("who waits for bytes of other machines is told how many requests are under way") {
  v1::PipelineStats stats = Stats("reading");
  v1::RemoteStats* remote = stats.mutable_remote();
  remote->set_requests(40);
  remote->set_under_way(16);
  remote->set_request_limit(20);
  remote->set_queued(7);
  const auto told = [&stats] {
    std::string all;
    for (const std::string& sentence : Explain(stats)) all += sentence + "\n";
    return all;
  };
  // Nobody waits for any.
  CHECK(told().find("addresses") == std::string::npos);
  remote->set_waiting(2);
  remote->set_first_byte_ms(51.4);
  remote->set_retries(3);
  CHECK(told().find("2 reads wait for bytes of files at addresses: 16 requests are under way of at "
                    "most 20, and 7 ranges wait for one; a first byte takes 51 ms; 3 of 40 "
                    "requests were sent again\n") != std::string::npos);
}

TEST_CASE("of helpers it is told how many make steps, and why others do not") {
  v1::PipelineStats stats = Stats("reading");
  const auto add = [&stats](const char* address, const char* state, const char* reason, int steps) {
    v1::HelperStats* helper = stats.add_helpers();
    helper->set_address(address);
    helper->set_state(state);
    helper->set_reason(reason);
    helper->set_steps(steps);
  };
  add("a:1", "ready", "", 7);
  add("b:2", "left out", "it refuses: other files", 3);
  add("c:3", "connecting", "", 0);
  add("d:4", "resting", "", 1);
  std::string all;
  for (const std::string& sentence : Explain(stats)) all += sentence + "\n";
  INFO(all);
  CHECK(all.find("helper b:2 is left out: it refuses: other files; its steps are made by others, "
                 "with the same bytes\n") != std::string::npos);
  CHECK(all.find("helper c:3 has not been reached yet; its steps") != std::string::npos);
  CHECK(all.find("helper d:4 rests: its steps came later") != std::string::npos);
  CHECK(all.find("helper a:1") == std::string::npos);
  CHECK(all.find("1 of 4 helpers makes steps: 11 so far\n") != std::string::npos);
  // What they bring is said as it is said everywhere.
  stats.mutable_analysis()->set_sentence("map-bound; helpers: 4 make 40 % of the steps; more");
  CHECK(Explain(stats).back() == "helpers: 4 make 40 % of the steps; more");
}

}  // namespace
}  // namespace penstock
