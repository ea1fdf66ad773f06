// What the tuners answer, and why, look by look: written down, so that a change of either shows.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/service/tune/autotune.h"
#include "server/service/tune/depth_tuner.h"
#include "server/service/tune/read_ahead_tuner.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

// Looks one after the other, and a line for each after which a number or its reason is another one.
class Record {
 public:
  explicit Record(int64_t value) : value_(value) {}

  int64_t value() const { return value_; }

  void Note(int64_t value, const std::string& reason) {
    ++look_;
    if (value != value_ || reason != reason_)
      lines_.push_back(absl::StrCat("look ", look_, ": ", value, ", ", reason));
    value_ = value;
    reason_ = reason;
  }

  void Check(const std::vector<std::string>& expected) const {
    for (const std::string& line : lines_) UNSCOPED_INFO(line);
    REQUIRE(lines_.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) CHECK(lines_[i] == expected[i]);
  }

 private:
  int look_ = 0;
  int64_t value_;
  std::string reason_ = "nothing was measured yet";
  std::vector<std::string> lines_;
};

// What a number of looks in a row see.
struct Seen {
  int looks = 1;
  double wait = 0;
  double busy = 0;     // the workers' share
  double blocked = 0;  // the time of a full ring
  bool is_read = true;
  v1::PipelineState state = v1::PIPELINE_STATE_RUNNING;
  double seconds = 5;
};

v1::PipelineStats StatsOf(const Seen& seen) {
  v1::PipelineStats stats;
  stats.set_state(seen.state);
  if (seen.is_read) stats.add_consumers();
  v1::Analysis* analysis = stats.mutable_analysis();
  analysis->set_seconds(seen.seconds);
  analysis->set_trainer_wait(seen.wait);
  analysis->set_busy(seen.busy);
  analysis->set_blocked(seen.blocked);
  return stats;
}

void Look(const std::vector<Seen>& all, Autotuner* tuner, Record* record) {
  for (const Seen& seen : all) {
    for (int i = 0; i < seen.looks; ++i) {
      const int workers = tuner->Look(StatsOf(seen), static_cast<int>(record->value()));
      record->Note(workers, tuner->reason());
    }
  }
}

void Look(const std::vector<Seen>& all, uint32_t most, DepthTuner* tuner, Record* record) {
  for (const Seen& seen : all) {
    for (int i = 0; i < seen.looks; ++i) {
      const uint32_t slots =
          tuner->Look(StatsOf(seen), static_cast<uint32_t>(record->value()), most);
      record->Note(slots, tuner->reason());
    }
  }
}

TEST_CASE("workers: what is answered, and why") {
  Autotuner tuner(8, 8);
  Record record(2);
  Look({{.looks = 2, .wait = 0.4, .busy = 0.9, .seconds = 0},
        {.looks = 2, .wait = 0.4, .busy = 0.9, .state = v1::PIPELINE_STATE_PAUSED},
        {.wait = 0.4, .busy = 0.9},
        {.looks = 5, .wait = 0.9, .busy = 1},  // settles
        {.looks = 2, .wait = 0.3, .busy = 0.69},
        {.looks = 2, .wait = 0.02, .busy = 0.95},
        {.looks = 5, .wait = 0.01, .busy = 0.3},
        {.looks = 5, .wait = 0, .busy = 0.4},
        {.looks = 4, .wait = 0, .busy = 0.4},
        {.wait = 0, .busy = 0.99},  // which is no quiet look
        {.looks = 6, .wait = 0.9, .busy = 0.4, .is_read = false},
        {.looks = 5, .wait = 0.9, .busy = 1},
        {.wait = 0.97, .busy = 1},
        {.looks = 5},
        {.looks = 8, .wait = 0.8, .busy = 1},
        {.wait = 0.5, .busy = 1}},
       &tuner, &record);
  record.Check(
      {"look 5: 4, 2 to 4: consumers waited 40 % of their time",
       "look 11: 4, consumers wait 30 % of their time, but workers are busy for 69 % only: more "
       "would not help",
       "look 13: 4, consumers wait 2 % of their time, and 4 workers are busy for 95 %",
       "look 19: 3, 4 to 3: consumers wait 1 % of their time, and 4 workers were busy for 30 % "
       "only",
       "look 29: 3, consumers wait 0 % of their time, and 3 workers are busy for 99 %",
       "look 34: 2, 3 to 2: consumers wait 0 % of their time, and 3 workers were busy for 40 % "
       "only",
       "look 40: 4, 2 to 4: consumers waited 90 % of their time",
       "look 47: 8, 4 to 8: consumers waited 80 % of their time",
       "look 53: 8, consumers wait 80 % of their time, and 8 workers are as many as there may be",
       "look 55: 8, consumers wait 50 % of their time, and 8 workers are as many as there may be"});
}

TEST_CASE("workers: a step down that made somebody wait is made later each time, within a limit") {
  Autotuner tuner(8, 8);
  Record record(4);
  for (int i = 0; i < 8; ++i) {
    Look({{.looks = 400, .wait = 0, .busy = 0.6}, {.looks = 6, .wait = 0.1, .busy = 0.9}}, &tuner,
         &record);
  }
  record.Check(
      {"look 5: 3, 4 to 3: consumers wait 0 % of their time, and 4 workers were busy for 60 % only",
       "look 11: 3, consumers wait 0 % of their time, and 3 workers are busy for 60 %",
       "look 401: 4, 3 to 4: consumers waited 10 % of their time",
       "look 416: 3, 4 to 3: consumers wait 0 % of their time, and 4 workers were busy for 60 % "
       "only",
       "look 422: 3, consumers wait 0 % of their time, and 3 workers are busy for 60 %",
       "look 807: 4, 3 to 4: consumers waited 10 % of their time",
       "look 832: 3, 4 to 3: consumers wait 0 % of their time, and 4 workers were busy for 60 % "
       "only",
       "look 838: 3, consumers wait 0 % of their time, and 3 workers are busy for 60 %",
       "look 1213: 4, 3 to 4: consumers waited 10 % of their time",
       "look 1258: 3, 4 to 3: consumers wait 0 % of their time, and 4 workers were busy for 60 % "
       "only",
       "look 1264: 3, consumers wait 0 % of their time, and 3 workers are busy for 60 %",
       "look 1619: 4, 3 to 4: consumers waited 10 % of their time",
       "look 1704: 3, 4 to 3: consumers wait 0 % of their time, and 4 workers were busy for 60 % "
       "only",
       "look 1710: 3, consumers wait 0 % of their time, and 3 workers are busy for 60 %",
       "look 2025: 4, 3 to 4: consumers waited 10 % of their time",
       "look 2190: 3, 4 to 3: consumers wait 0 % of their time, and 4 workers were busy for 60 % "
       "only",
       "look 2196: 3, consumers wait 0 % of their time, and 3 workers are busy for 60 %",
       "look 2431: 4, 3 to 4: consumers waited 10 % of their time",
       "look 2756: 3, 4 to 3: consumers wait 0 % of their time, and 4 workers were busy for 60 % "
       "only",
       "look 2762: 3, consumers wait 0 % of their time, and 3 workers are busy for 60 %",
       "look 2837: 4, 3 to 4: consumers waited 10 % of their time",
       "look 3162: 3, 4 to 3: consumers wait 0 % of their time, and 4 workers were busy for 60 % "
       "only",
       "look 3168: 3, consumers wait 0 % of their time, and 3 workers are busy for 60 %",
       "look 3243: 4, 3 to 4: consumers waited 10 % of their time"});
}

TEST_CASE("workers: those that there may be are no more than that") {
  Autotuner tuner(8, 8);
  Record record(12);
  Look({{.looks = 7, .wait = 0.2, .busy = 1}}, &tuner, &record);
  record.Check(
      {"look 1: 8, 12 to 8: there may be 8",
       "look 7: 8, consumers wait 20 % of their time, and 8 workers are as many as there may be"});
}

TEST_CASE("slots: what is answered, and why") {
  DepthTuner tuner;
  Record record(4);
  Look({{.looks = 5, .wait = 0.4, .blocked = 0.4},  // the beginning is out of sight
        {.looks = 2, .wait = 0.4, .blocked = 0.4, .seconds = 0},
        {.looks = 2, .wait = 0.4, .blocked = 0.4, .state = v1::PIPELINE_STATE_PAUSED},
        {.looks = 2, .wait = 0.02, .blocked = 0.4},
        {.looks = 2, .wait = 0.4, .blocked = 0.4, .is_read = false},
        {.looks = 2, .wait = 0.4, .blocked = 0.049},
        {.wait = 0.4, .blocked = 0.2},
        {.looks = 5, .wait = 0.9, .blocked = 0.9},
        {.wait = 0.3, .blocked = 0.2},  // it helped
        {.looks = 5, .wait = 0.9, .blocked = 0.9},
        {.looks = 40, .wait = 0.25, .blocked = 0.2},  // it did not
        {.looks = 2, .wait = 0.01, .blocked = 0.5},
        {.looks = 40, .wait = 0.1, .blocked = 0.5},
        {.looks = 2, .wait = 0.08, .blocked = 0.5}},
       14, &tuner, &record);
  record.Check(
      {"look 10: 4, consumers wait 2 % of their time",
       "look 12: 4, consumers wait 0 % of their time",
       "look 14: 4, consumers wait 40 % of their time, but the ring is hardly ever full: more "
       "slots would stay empty",
       "look 16: 6, 4 to 6: consumers waited 40 % of their time, and the ring was full for 20 %",
       "look 22: 9, 6 to 9: consumers waited 30 % of their time, and the ring was full for 20 %",
       "look 28: 9, consumers wait 25 % of their time as before: 9 slots are no better than fewer",
       "look 58: 13, 9 to 13: consumers waited 25 % of their time, and the ring was full for 20 %",
       "look 64: 13, consumers wait 25 % of their time as before: 13 slots are no better than "
       "fewer"});
}

TEST_CASE("slots: what did not help is tried again later each time, within a limit") {
  DepthTuner tuner;
  Record record(4);
  Look({{.looks = 8000, .wait = 0.5, .blocked = 0.5}}, 4096, &tuner, &record);
  record.Check(
      {"look 6: 6, 4 to 6: consumers waited 50 % of their time, and the ring was full for 50 %",
       "look 12: 6, consumers wait 50 % of their time as before: 6 slots are no better than fewer",
       "look 42: 9, 6 to 9: consumers waited 50 % of their time, and the ring was full for 50 %",
       "look 48: 9, consumers wait 50 % of their time as before: 9 slots are no better than fewer",
       "look 108: 13, 9 to 13: consumers waited 50 % of their time, and the ring was full for 50 %",
       "look 114: 13, consumers wait 50 % of their time as before: 13 slots are no better than "
       "fewer",
       "look 234: 19, 13 to 19: consumers waited 50 % of their time, and the ring was full for 50 "
       "%",
       "look 240: 19, consumers wait 50 % of their time as before: 19 slots are no better than "
       "fewer",
       "look 480: 28, 19 to 28: consumers waited 50 % of their time, and the ring was full for 50 "
       "%",
       "look 486: 28, consumers wait 50 % of their time as before: 28 slots are no better than "
       "fewer",
       "look 966: 42, 28 to 42: consumers waited 50 % of their time, and the ring was full for 50 "
       "%",
       "look 972: 42, consumers wait 50 % of their time as before: 42 slots are no better than "
       "fewer",
       "look 1932: 63, 42 to 63: consumers waited 50 % of their time, and the ring was full for 50 "
       "%",
       "look 1938: 63, consumers wait 50 % of their time as before: 63 slots are no better than "
       "fewer",
       "look 3858: 94, 63 to 94: consumers waited 50 % of their time, and the ring was full for 50 "
       "%",
       "look 3864: 94, consumers wait 50 % of their time as before: 94 slots are no better than "
       "fewer",
       "look 5784: 141, 94 to 141: consumers waited 50 % of their time, and the ring was full for "
       "50 %",
       "look 5790: 141, consumers wait 50 % of their time as before: 141 slots are no better than "
       "fewer",
       "look 7710: 211, 141 to 211: consumers waited 50 % of their time, and the ring was full for "
       "50 %",
       "look 7716: 211, consumers wait 50 % of their time as before: 211 slots are no better than "
       "fewer"});
}

// A source whose every look has a second and so much time spent on reading so many bytes.
struct Source {
  v1::PipelineStats stats;
  ReadAheadTuner tuner;
  Record record;

  explicit Source(int64_t bytes) : record(bytes) {
    stats.set_state(v1::PIPELINE_STATE_RUNNING);
    stats.set_workers(2);
    stats.add_consumers();
    stats.add_stages();
    stats.add_stages();
  }

  void Look(int looks, double wait, uint64_t read_ms, double bytes_per_ms, int64_t most) {
    v1::StageStats* source = stats.mutable_stages(1);
    for (int i = 0; i < looks; ++i) {
      stats.set_running_ns(stats.running_ns() + 1'000'000'000);
      stats.mutable_analysis()->set_trainer_wait(wait);
      source->set_read_ns(source->read_ns() + read_ms * 1'000'000);
      source->set_read_bytes(source->read_bytes() +
                             static_cast<uint64_t>(static_cast<double>(read_ms) * bytes_per_ms));
      const int64_t bytes = tuner.Look(stats, 1, record.value(), most);
      record.Note(bytes, tuner.reason());
    }
  }
};

constexpr int64_t kMiB = int64_t{1} << 20;

TEST_CASE("read-ahead: what is answered, and why") {
  Source source(kMiB);
  source.Look(7, 0.02, 900, 1e5, 8 * kMiB);  // nobody waits
  source.Look(7, 0.02, 390, 1e5, 8 * kMiB);
  source.Look(2, 0.4, 390, 1e5, 8 * kMiB);     // reading takes less than a fifth
  source.Look(1, 0.4, 1000, 1e5, 8 * kMiB);    // more
  source.Look(6, 0.4, 1000, 2e5, 8 * kMiB);    // it helped
  source.Look(6, 0.4, 1000, 2.1e5, 8 * kMiB);  // it did not
  source.Look(66, 0.4, 1000, 2.1e5, 8 * kMiB);
  source.Look(6, 0.4, 1000, 4e5, 8 * kMiB);
  source.Look(7, 0.4, 1000, 8e5, 8 * kMiB);  // as many as there may be
  source.Look(7, 0.4, 1000, 8e5, 2 * kMiB);  // which become fewer
  source.stats.set_state(v1::PIPELINE_STATE_PAUSED);
  source.Look(6, 0.9, 1000, 8e5, 8 * kMiB);
  source.stats.set_state(v1::PIPELINE_STATE_RUNNING);
  source.stats.mutable_stages(1)->set_read_bytes(0);  // another stream
  source.Look(6, 0.9, 1000, 4e5, 8 * kMiB);
  source.stats.clear_consumers();
  source.Look(10, 0.9, 1000, 9e5, 64 * kMiB);
  source.record.Check(
      {"look 6: 1048576, consumers wait 2 % of their time, and reading takes 45 % of the workers'",
       "look 8: 1048576, consumers wait 2 % of their time, and reading takes 40 % of the workers'",
       "look 9: 1048576, consumers wait 2 % of their time, and reading takes 35 % of the workers'",
       "look 10: 1048576, consumers wait 2 % of their time, and reading takes 30 % of the workers'",
       "look 11: 1048576, consumers wait 2 % of their time, and reading takes 25 % of the workers'",
       "look 12: 1048576, consumers wait 2 % of their time, and reading takes 20 % of the workers'",
       "look 15: 1048576, consumers wait 40 % of their time, and reading takes 20 % of the "
       "workers'",
       "look 17: 2097152, 1048576 to 2097152: consumers waited 40 % of their time, and reading "
       "took 26 % of the workers'",
       "look 23: 4194304, 2097152 to 4194304: consumers waited 40 % of their time, and reading "
       "took 50 % of the workers'",
       "look 29: 2097152, 4194304 to 2097152: reading was no quicker with more",
       "look 95: 4194304, 2097152 to 4194304: consumers waited 40 % of their time, and reading "
       "took 50 % of the workers'",
       "look 101: 8388608, 4194304 to 8388608: consumers waited 40 % of their time, and reading "
       "took 50 % of the workers'",
       "look 107: 8388608, consumers wait 40 % of their time, and 8388608 bytes are as many as "
       "there may be",
       "look 109: 2097152, 8388608 to 2097152: there may be 2097152",
       "look 115: 2097152, consumers wait 40 % of their time, and 2097152 bytes are as many as "
       "there may be",
       "look 127: 4194304, 2097152 to 4194304: consumers waited 90 % of their time, and reading "
       "took 50 % of the workers'",
       "look 133: 4194304, consumers wait 0 % of their time, and reading takes 50 % of the "
       "workers'"});
}

TEST_CASE("read-ahead: what did not help is tried again later each time, within a limit") {
  Source source(kMiB);
  source.Look(12'000, 0.5, 1500, 1e5, 8 * kMiB);
  source.record.Check(
      {"look 6: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading took "
       "75 % of the workers'",
       "look 12: 1048576, 2097152 to 1048576: reading was no quicker with more",
       "look 78: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading "
       "took 75 % of the workers'",
       "look 84: 1048576, 2097152 to 1048576: reading was no quicker with more",
       "look 210: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading "
       "took 75 % of the workers'",
       "look 216: 1048576, 2097152 to 1048576: reading was no quicker with more",
       "look 462: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading "
       "took 75 % of the workers'",
       "look 468: 1048576, 2097152 to 1048576: reading was no quicker with more",
       "look 954: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading "
       "took 75 % of the workers'",
       "look 960: 1048576, 2097152 to 1048576: reading was no quicker with more",
       "look 1926: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading "
       "took 75 % of the workers'",
       "look 1932: 1048576, 2097152 to 1048576: reading was no quicker with more",
       "look 3858: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading "
       "took 75 % of the workers'",
       "look 3864: 1048576, 2097152 to 1048576: reading was no quicker with more",
       "look 7710: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading "
       "took 75 % of the workers'",
       "look 7716: 1048576, 2097152 to 1048576: reading was no quicker with more",
       "look 11562: 2097152, 1048576 to 2097152: consumers waited 50 % of their time, and reading "
       "took 75 % of the workers'",
       "look 11568: 1048576, 2097152 to 1048576: reading was no quicker with more"});
}

}  // namespace
}  // namespace penstock
