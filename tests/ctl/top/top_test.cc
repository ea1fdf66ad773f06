// What `penstock top` draws: its lines, the lanes of trainers, and a screen of them.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/top/top_lanes.h"
#include "client/ctl/top/top_lines.h"
#include "client/ctl/top/top_screen.h"
#include "tests/support/catch.h"

namespace penstock::ctl {
namespace {

using Kind = TopLine::Kind;

v1::PipelineStats Stats(const std::string& name) {
  v1::PipelineStats stats;
  stats.set_name(name);
  stats.set_state(v1::PIPELINE_STATE_RUNNING);
  stats.set_workers(1);
  v1::Analysis* now = stats.mutable_analysis();
  now->set_sentence("map-bound");
  now->set_bottleneck("map");
  for (const char* stage : {"tfrecord", "map"}) {
    stats.add_stages()->set_name(stage);
    now->add_stage_busy(0.5);
    now->add_stage_starved(0.5);
  }
  v1::ConsumerStats* consumer = stats.add_consumers();
  consumer->set_id(1);
  consumer->set_pid(123);
  consumer->set_group("default");
  return stats;
}

std::vector<TopLine> Heads(int count) {
  std::vector<TopLine> lines;
  for (int i = 0; i < count; ++i) {
    lines.push_back({Kind::kPipeline, absl::StrCat("head ", i)});
    lines.push_back({Kind::kPlain, absl::StrCat("below ", i)});
  }
  return lines;
}

TopView View(size_t rows, size_t columns) {
  TopView view;
  view.rows = rows;
  view.columns = columns;
  view.colours = false;
  return view;
}

TEST_CASE("a pipeline's lines say what they are") {
  std::string kinds;
  for (const TopLine& line : TopLines(Stats("p"), {"its lane"})) {
    if (line.kind == Kind::kPipeline) CHECK(line.text == "p  running");
    if (line.kind == Kind::kSentence) CHECK(line.text == "  map-bound");
    if (line.kind == Kind::kStage)
      CHECK(absl::StrContains(line.text, "tfrecord  50.0 % ████████████·"));
    if (line.kind == Kind::kBottleneck) CHECK(absl::StrContains(line.text, "> map"));
    if (line.kind == Kind::kLane) CHECK(line.text == "its lane");
    kinds += std::to_string(static_cast<int>(line.kind));
  }
  // Head, sentence, three lines of numbers, two stages, the table's head, a consumer, its lane.
  CHECK(kinds == "2400067809");
}

TEST_CASE("a helper has a line, and one that is left out is a warning with its reason") {
  v1::PipelineStats stats = Stats("p");
  v1::HelperStats* helper = stats.add_helpers();
  helper->set_address("10.0.0.7:9466");
  helper->set_state("ready");
  helper->set_steps_away(1);
  helper->set_steps(12);
  helper->set_bytes(3 << 20);
  helper->set_step_ms(14.25);
  *stats.add_helpers() = *helper;
  helper = stats.mutable_helpers(1);
  helper->set_state("left out");
  helper->set_given_back(2);
  helper->set_left_out(1);
  helper->set_reason("no sign of life");
  std::vector<TopLine> found;
  for (const TopLine& line : TopLines(stats, {}))
    if (absl::StrContains(line.text, "helper ")) found.push_back(line);
  REQUIRE(found.size() == 2);
  CHECK(found[0].kind == Kind::kPlain);
  CHECK(found[0].text ==
        "  helper 10.0.0.7:9466: ready, has 1 step, made 12 (3.0 MiB), 14.2 ms a step");
  CHECK(found[1].kind == Kind::kWarning);
  CHECK(absl::StrContains(found[1].text,
                          "2 were made by others instead; left out 1 time, at last: no sign"));
}

TEST_CASE("a lane has a bar for each look, as high as the trainer waited") {
  TopLanes lanes;
  v1::PipelineStats stats = Stats("p");
  std::vector<std::string> seen;
  for (const double empty : {0.0, 0.5, 1.0, 0.04}) {
    stats.mutable_consumers(0)->set_empty(empty);
    lanes.BeginLook();
    seen = lanes.Look("daemon", stats);
  }
  CHECK(seen == std::vector<std::string>{"      waits ▁▅█▁ now 4 %, at most 100 %"});
  // Of the last looks only.
  for (size_t i = 0; i < TopLanes::kLooks; ++i) {
    lanes.BeginLook();
    seen = lanes.Look("daemon", stats);
  }
  CHECK(absl::StrContains(seen[0], "at most 4 %"));
  // Who was not seen in the last look begins anew, and another process of that number is another
  // one.
  lanes.BeginLook();
  lanes.BeginLook();
  CHECK(lanes.Look("daemon", stats)[0] == "      waits ▁ now 4 %, at most 4 %");
  stats.mutable_consumers(0)->set_pid(124);
  CHECK(lanes.Look("daemon", stats)[0] == "      waits ▁ now 4 %, at most 4 %");
}

TEST_CASE("a screen is cut to its size, and nothing scrolls") {
  const std::string screen = TopScreen(Heads(3), View(4, 6));
  CHECK(screen == "\x1b[Hhead 0\x1b[K\nbelow \x1b[K\nhead 1\x1b[K\n\x1b[J");
  // A character of several bytes takes one column.
  CHECK(TopScreen({{Kind::kStage, "██··"}}, View(4, 3)) == "\x1b[H██·\x1b[K\n\x1b[J");
  CHECK(TopScreen({}, View(1, 1)) == "\x1b[H\x1b[J");
}

TEST_CASE("a screen begins where the chosen pipeline is seen") {
  TopView view = View(4, 80);
  view.chosen = 1;
  CHECK(absl::StrContains(TopScreen(Heads(3), view), "\x1b[Hhead 1\x1b[K\nbelow 1"));
  // No further than there are lines, and of fewer pipelines the last.
  view.chosen = 7;
  CHECK(absl::StrContains(TopScreen(Heads(3), view), "\x1b[Hbelow 1\x1b[K\nhead 2"));
}

TEST_CASE("colours stand around what has them, and end with the line") {
  TopView view = View(24, 80);
  view.colours = true;
  CHECK(TopScreen({{Kind::kStage, "a █·"}}, view) ==
        "\x1b[Ha \x1b[0m\x1b[32m█\x1b[0m\x1b[2m·\x1b[0m\x1b[K\n\x1b[J");
  CHECK(absl::StrContains(TopScreen({{Kind::kError, "bad"}}, view), "\x1b[31mbad\x1b[0m"));
  // The chosen head is seen among several, and of one alone it is plain which.
  CHECK(absl::StrContains(TopScreen(Heads(2), view), "\x1b[1m\x1b[7mhead 0\x1b[0m"));
  CHECK_FALSE(absl::StrContains(TopScreen(Heads(1), view), "\x1b[7m"));
}

TEST_CASE("what names hold is shown and not done, and the bar of keys stands in the last row") {
  TopView view = View(5, 200);
  view.has_keys = true;
  view.notice = "held";
  const std::string screen = TopScreen({{Kind::kPlain, "a\x1b[2Jb"}}, view);
  CHECK(absl::StrContains(screen, "a\\x1b[2Jb"));
  CHECK(absl::StrContains(screen, "\x1b[5;1Hq quit"));
  CHECK(absl::StrContains(screen, "interval   held"));
}

}  // namespace
}  // namespace penstock::ctl
