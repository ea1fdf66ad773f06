// Profiles as traces: the text is read by a parser of JSON, and has what went in.
#include "server/service/watch/profile_json.h"

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using nlohmann::json;

// The events of a profile's text, without the text's other fields, which have to be as the format
// says.
std::vector<json> EventsOf(const std::string& text) {
  const json read = json::parse(text);
  REQUIRE(read.size() == 2);
  CHECK(read.at("displayTimeUnit") == "ms");
  return read.at("traceEvents").get<std::vector<json>>();
}

json ProcessName(const std::string& name) {
  return {{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", name}}}};
}

json ThreadName(int thread, const std::string& name) {
  return {{"ph", "M"},
          {"pid", 1},
          {"tid", thread},
          {"name", "thread_name"},
          {"args", {{"name", name}}}};
}

json Span(int thread, double from_us, double us, const std::string& name) {
  return {{"ph", "X"}, {"pid", 1}, {"tid", thread}, {"ts", from_us}, {"dur", us}, {"name", name}};
}

TEST_CASE("a profile has the spans that went in, each in its worker's thread") {
  WorkSpans spans;
  spans.spans = {
      {.begin = 0, .end = 1500, .detail = 0, .worker = 1, .kind = WorkKind::kFront},
      {.begin = 1, .end = 2, .detail = 0, .worker = 0, .kind = WorkKind::kRead},
      {.begin = 2000,
       .end = 9000,
       .detail = 18446744073709551615u,
       .worker = 1,
       .kind = WorkKind::kBlock},
      {.begin = 2000, .end = 3000, .detail = 0, .worker = 1, .kind = WorkKind::kStage},
      {.begin = 3000, .end = 9000, .detail = 1, .worker = 1, .kind = WorkKind::kStage},
      // A stage that the list of names has not.
      {.begin = 9000, .end = 9000, .detail = 2, .worker = 1, .kind = WorkKind::kStage},
      {.begin = 10'000, .end = 10'001, .detail = 0, .worker = 12, .kind = WorkKind::kSection},
      {.begin = 11'000, .end = 12'000, .detail = 0, .worker = 12, .kind = WorkKind::kErrand},
      {.begin = 12'000, .end = 13'000, .detail = 0, .worker = 12, .kind = WorkKind::kWaitForSlot},
      // A day after the beginning, to the nanosecond.
      {.begin = 86'400'000'000'001,
       .end = 86'400'000'000'003,
       .detail = 0,
       .worker = 0,
       .kind = WorkKind::kSleep},
  };
  const std::vector<json> events = EventsOf(ProfileJson("chess", {"parse_example", "map"}, spans));
  const std::vector<json> expected = {
      ProcessName("penstockd: chess"),
      ThreadName(1, "worker 0"),
      ThreadName(2, "worker 1"),
      ThreadName(13, "worker 12"),
      Span(2, 0, 1.5, "front"),
      Span(1, 0.001, 0.001, "read"),
      Span(2, 2, 7, "block of step 18446744073709551615"),
      Span(2, 2, 1, "parse_example"),
      Span(2, 3, 6, "map"),
      Span(2, 9, 0, "stage"),
      Span(13, 10, 0.001, "section"),
      Span(13, 11, 1, "errand"),
      Span(13, 12, 1, "waits for a slot"),
      Span(1, 86'400'000'000.001, 0.002, "sleeps"),
  };
  REQUIRE(events.size() == expected.size());
  for (size_t i = 0; i < events.size(); ++i) CHECK(events[i] == expected[i]);
}

TEST_CASE("functions of a map lie in its stage, and consumers have threads with their waits") {
  WorkSpans spans;
  spans.functions = {"decode_jpeg, resize", "divide"};
  spans.spans = {
      {.begin = 0, .end = 3000, .detail = 7, .worker = 0, .kind = WorkKind::kBlock},
      {.begin = 0, .end = 3000, .detail = 0, .worker = 0, .kind = WorkKind::kStage},
      {.begin = 0, .end = 2000, .detail = 0, .worker = 0, .kind = WorkKind::kFunction},
      {.begin = 2000, .end = 2500, .detail = 1, .worker = 0, .kind = WorkKind::kFunction},
      // One that the list of names has not.
      {.begin = 2500, .end = 2600, .detail = 2, .worker = 0, .kind = WorkKind::kFunction},
  };
  const std::vector<ConsumerWait> waits = {{1, 4, "consumer 4 \"a\"", 1000, 3000},
                                           {2, 4, "consumer 4 of another stream", 0, 0},
                                           {1, 4, "consumer 4 \"a\"", 5000, 6000}};
  const std::vector<json> events = EventsOf(ProfileJson("p", {"map"}, spans, waits));
  const auto of_consumers = [](json event) {
    event["pid"] = 3;
    return event;
  };
  const std::vector<json> expected = {
      ProcessName("penstockd: p"),
      ThreadName(1, "worker 0"),
      Span(1, 0, 3, "block of step 7"),
      Span(1, 0, 3, "map"),
      Span(1, 0, 2, "decode_jpeg, resize"),
      Span(1, 2, 0.5, "divide"),
      Span(1, 2.5, 0.1, "function"),
      of_consumers(ProcessName("consumers: p")),
      of_consumers(ThreadName(1, "consumer 4 \"a\"")),
      of_consumers(Span(1, 1, 2, "waits for a batch")),
      of_consumers(ThreadName(2, "consumer 4 of another stream")),
      of_consumers(Span(1, 5, 1, "waits for a batch")),
  };
  REQUIRE(events.size() == expected.size());
  for (size_t i = 0; i < events.size(); ++i) CHECK(events[i] == expected[i]);
}

TEST_CASE("names in a profile are quoted, whatever they hold") {
  const std::string name = "a \"b\" \\c\x01\x1f\n\t}],\xc3\xa4\xe2\x99\x9e";
  WorkSpans spans;
  spans.spans = {{.begin = 0, .end = 1000, .detail = 0, .worker = 0, .kind = WorkKind::kStage}};
  const std::vector<json> events = EventsOf(ProfileJson(name, {name}, spans));
  const std::vector<json> expected = {ProcessName("penstockd: " + name), ThreadName(1, "worker 0"),
                                      Span(1, 0, 1, name)};
  REQUIRE(events.size() == expected.size());
  for (size_t i = 0; i < events.size(); ++i) CHECK(events[i] == expected[i]);
}

TEST_CASE("a profile without spans is one all the same") {
  const std::vector<json> events = EventsOf(ProfileJson("chess", {}, {}));
  REQUIRE(events.size() == 1);
  CHECK(events[0] == ProcessName("penstockd: chess"));
}

}  // namespace
}  // namespace penstock
