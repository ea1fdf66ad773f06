#include "tests/sim/drawn_pipeline.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::test {
namespace {

using State = PooledShard::State;

// Nothing can be written there, not even by root: an index stays in memory.
constexpr char kFolder[] = "/proc/none";

constexpr char kParse[] =
    "parse_example { feature { key: 'n' int64 {} } feature { key: 'd' bytes {} } }";

}  // namespace

DrawnPipeline::DrawnPipeline(Dice& dice, SimulatedFiles& files) : dice_(dice), files_(files) {
  text_ = Chain(5, /*depth=*/0);
  if (!dice_.OneIn(12)) {
    // Most are small; large ones have several blocks.
    const uint64_t rows = dice_.OneIn(6) ? dice_.Between(64, 200) : dice_.Between(1, 12);
    absl::StrAppend(&text_, " | batch { batch_size: ", rows,
                    dice_.OneIn(3) ? " drop_remainder: true" : "", " }");
    for (uint64_t ops = dice_.Below(3); ops > 0; --ops)
      absl::StrAppend(&text_, " | ", CountingOp(6));
  }
}

std::string DrawnPipeline::AddFiles(const std::vector<State>& states, int count) {
  std::vector<const PooledShard*> fitting;
  for (const PooledShard& shard : ShardPool()) {
    if (std::find(states.begin(), states.end(), shard.state) != states.end())
      fitting.push_back(&shard);
  }
  const std::string prefix = absl::StrCat(kFolder, "/", num_sources_++, "-");
  bool empty = true;
  for (int i = 0; i < count || empty; ++i) {
    const PooledShard& shard = *fitting[dice_.Below(fitting.size())];
    empty = empty && shard.bytes->empty();
    files_.Add(absl::StrCat(prefix, i), shard.bytes);
  }
  return absl::StrCat("files: '", prefix, "*'");
}

std::string DrawnPipeline::Shards(bool* parses) {
  std::vector<State> states = {State::kWhole};
  std::string options;
  bool skips_shard = false;
  *parses = true;
  switch (dice_.Below(12)) {
    case 0:
      states = {State::kGzip};
      options = " compression: 'GZIP'";
      break;
    case 1:
    case 2:
      states = {State::kWhole, State::kWhole, State::kDamagedData, State::kDamagedLength,
                State::kCut};
      options = " damage { on_damage: SKIP_RECORD }";
      finds_flips_ = false;
      break;
    case 3:
      states = {State::kWhole, State::kDamagedData, State::kDamagedLength, State::kCut};
      options = " damage { on_damage: SKIP_SHARD }";
      finds_flips_ = false;
      skips_shard = true;
      break;
    case 4:
      // The stream ends with an error.
      states = {State::kWhole, State::kDamagedData, State::kDamagedLength, State::kCut,
                State::kNoExample};
      break;
    default:
      break;
  }
  std::string text =
      absl::StrCat("tfrecord { ", AddFiles(states, static_cast<int>(dice_.Between(1, 4))), options);
  if (dice_.OneIn(2)) absl::StrAppend(&text, " cycle_length: ", dice_.Between(1, 4));
  if (dice_.OneIn(3)) absl::StrAppend(&text, " block_length: ", dice_.Between(1, 5));
  text += " }";
  if (dice_.OneIn(6) && states[0] == State::kWhole && !skips_shard)
    absl::StrAppend(&text, " | shuffle { global: true seed: ", dice_.Below(99),
                    dice_.OneIn(3) ? " reshuffle_each_iteration: false" : "",
                    dice_.OneIn(3) ? " block_size: 3 buffer_size: 7" : "",
                    dice_.OneIn(4) ? " read_first: true" : "", " }");
  return text;
}

std::string DrawnPipeline::Source(bool* parses) {
  *parses = false;
  switch (dice_.Below(9)) {
    case 8:
      return absl::StrCat("counter { start: ", dice_.Below(9),
                          " } | take { count: ", dice_.Below(90), " }");
    case 0:
      return absl::StrCat("range { start: ", dice_.Below(9), " stop: ", dice_.Below(120),
                          " step: ", dice_.Between(1, 3), " }");
    case 2:
      // A dataset of each file.
      *parses = true;
      return absl::StrCat(
          "list_files { ", AddFiles({State::kWhole}, static_cast<int>(dice_.Between(1, 4))),
          " seed: ", dice_.Below(9), " } | interleave { (| tfrecord {} | ", CountingOp(9),
          " |) cycle_length: ", dice_.Between(1, 3), " block_length: ", dice_.Between(1, 3), " }");
    case 1:
      finds_flips_ = false;
      return absl::StrCat("text_line { ", AddFiles({State::kLines}, 2), " }");
    default:
      return Shards(parses);
  }
}

std::string DrawnPipeline::CountingOp(int most) {
  const uint64_t count = dice_.Below(most);
  const uint64_t shards = dice_.Between(1, 4);
  switch (dice_.Below(6)) {
    case 0:
      return absl::StrCat("take { count: ", count * 2, " }");
    case 1:
      return absl::StrCat("skip { count: ", count, " }");
    case 2:
      return absl::StrCat("shard { num_shards: ", shards, " index: ", dice_.Below(shards), " }");
    case 3:
      return "repeat {}";
    default:
      return absl::StrCat("repeat { count: ", dice_.Below(4), " }");
  }
}

std::string DrawnPipeline::DecidingOp(const std::string& number) {
  looks_ahead_ = true;
  switch (dice_.Below(number.empty() ? 6 : 9)) {
    case 0:
      return absl::StrCat("batch { batch_size: ", dice_.Between(1, 9), " } | unbatch {}");
    case 1:
      return absl::StrCat("batch { batch_size: ", dice_.Between(1, 9),
                          " } | shuffle { buffer_size: ", dice_.Between(1, 9),
                          " seed: ", dice_.Below(99), " } | unbatch {}");
    case 2:
      return "ignore_errors {}";
    case 3:
      // Some elements of a whole window are left, or an endless input would come to nothing.
      return absl::StrCat(
          "window { size: ", dice_.Between(4, 9), " shift: ", dice_.Between(1, 9),
          " stride: ", dice_.Between(1, 3), dice_.OneIn(3) ? " drop_remainder: true" : "", " (| ",
          dice_.OneIn(2) ? "take" : "skip", " { count: ", dice_.Between(1, 3), " } |) }");
    case 4:
      return absl::StrCat("window { size: ", dice_.Between(1, 9), " shift: ", dice_.Between(1, 9),
                          " } ");
    case 5:
      return absl::StrCat("batch { batch_size: ", dice_.Between(1, 9),
                          " } | rebatch { batch_size: ", dice_.Between(1, 9),
                          " batch_size: ", dice_.Between(1, 9), " } | unbatch {}");
    case 6:
      return absl::StrCat("group_by_window { key: '", number, " % ", dice_.Between(1, 4),
                          "' window_size: ", dice_.Between(1, 9),
                          " (| shuffle { buffer_size: 3 seed: ", dice_.Below(99), " } |) }");
    case 7:
      return absl::StrCat("take_while { predicate: '", number, " % 50 != ", dice_.Below(60), "' }");
    default:
      return absl::StrCat("filter { predicate: '", number, " % ", dice_.Between(2, 4),
                          " != ", dice_.Below(3), "' }");
  }
}

std::string DrawnPipeline::Chain(int ops_max, int depth) {
  bool parses = false;
  std::string text = Source(&parses);
  if (parses && dice_.OneIn(2)) {
    absl::StrAppend(&text, " | ", kParse);
    if (dice_.OneIn(3)) text += " | map { let: 'm = feature(\"n\") * 3 + 1' out: 'n = m' }";
  }
  // The number of an element, as long as there is one.
  const std::string number = absl::StrContains(text, kParse)   ? "n"
                             : absl::StartsWith(text, "range") ? "value"
                                                               : "";
  const std::string alone = text;  // other elements of the same kind, for a concatenation
  bool same_kind = true;
  for (uint64_t ops = dice_.Below(ops_max + 1); ops > 0; --ops) {
    const uint64_t kind = dice_.Below(12);
    if (kind >= 10) {
      absl::StrAppend(&text, " | ", DecidingOp(same_kind ? number : ""));
    } else if (kind < 4) {
      absl::StrAppend(&text, " | ", CountingOp(40));
    } else if (kind < 7) {
      absl::StrAppend(&text, " | shuffle { buffer_size: ", dice_.Between(1, 40),
                      " seed: ", dice_.Below(99),
                      dice_.OneIn(4) ? " reshuffle_each_iteration: false" : "", " }");
    } else if (kind == 7 || depth == 2) {
      absl::StrAppend(&text, " | enumerate { start: ", dice_.Below(7), " }");
      same_kind = false;
    } else if (kind == 8 && same_kind && dice_.OneIn(3)) {
      looks_ahead_ = true;
      absl::StrAppend(&text, " | sample_from_datasets { (| ", alone, " |) seed: ", dice_.Below(99),
                      dice_.OneIn(2) ? " stop_on_empty_dataset: true" : "", " }");
    } else if (kind == 8 && same_kind) {
      absl::StrAppend(&text, " | concatenate { (| ", alone, " | skip { count: ", dice_.Below(9),
                      " } |) (| ", alone, " | repeat { count: ", dice_.Below(3), " } |) }");
    } else {
      absl::StrAppend(&text, " | zip { (| ", Chain(3, depth + 1), " |) }");
      same_kind = false;
    }
  }
  return text;
}

}  // namespace penstock::test
