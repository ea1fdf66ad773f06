// Which ops count elements that fail in front of them, where an ignore_errors follows. Behind one
// that leaves them out, ignore_errors gives what a filter in front of the op would have given;
// behind one that counts them (OpTraits::counts_failures) it gives something else.
// tests/arrows/test_failing_elements.py holds what people read to the registrations.
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/spec/op_traits.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// Numbers, of which every seventh fails, or is not there.
constexpr char kNumbers[] = "range { stop: 60 } | ";
constexpr char kFails[] =
    "map { out: 'value = value + string_to_number(where(value % 7 == 3, \"none\", \"0\"), "
    "\"int64\")' structure: 'null' }";
constexpr char kFiltered[] = "filter { predicate: 'value % 7 != 3' }";

// An op, and $IN, the numbers, as its input.
struct Case {
  const char* op;
  const char* pipeline;
};
constexpr Case kCases[] = {
    {"take", "$IN | take { count: 20 }"},
    {"skip", "$IN | skip { count: 20 }"},
    {"shard", "$IN | shard { num_shards: 3 index: 1 }"},
    {"shuffle", "$IN | shuffle { buffer_size: 8 seed: 1 }"},
    {"enumerate", "$IN | enumerate {}"},
    {"repeat", "$IN | repeat { count: 2 }"},
    {"batch", "$IN | batch { batch_size: 4 }"},
    {"padded_batch", "$IN | map { out: 'a = arange(value)' } | padded_batch { batch_size: 4 }"},
    {"ragged_batch", "$IN | map { out: 'a = arange(value)' } | ragged_batch { batch_size: 4 }"},
    {"sparse_batch",
     "$IN | map { out: 'a = arange(value)' } | sparse_batch { batch_size: 4 row_shape: -1 }"},
    {"rebatch", "$IN | batch { batch_size: 4 } | rebatch { batch_size: 3 }"},
    {"unbatch", "$IN | map { out: 'a = value * [1, 2, 3]' } | unbatch {}"},
    {"map", "$IN | map { out: 'a = value * 2' }"},
    {"filter", "$IN | filter { predicate: 'value % 2 == 0' }"},
    {"take_while", "$IN | take_while { predicate: 'value < 30' }"},
    {"scan",
     "$IN | scan { initial_state { name: 's' int_value: 1 } state: 's = s + value' out: 'n = s' }"},
    {"reduce", "$IN | reduce { initial_state { name: 's' int_value: 1 } state: 's = s + value' }"},
    {"unique", "$IN | map { out: 'value = value % 9' structure: 'null' } | unique {}"},
    {"flat_map", "$IN | flat_map { (| repeat { count: 2 } |) }"},
    {"interleave",
     "$IN | interleave { (| repeat { count: 3 } |) cycle_length: 2 block_length: 2 }"},
    {"window", "$IN | window { size: 5 (| batch { batch_size: 5 } |) }"},
    {"window", "$IN | window { size: 5 (| window_part {} | batch { batch_size: 5 } |) }"},
    {"group_by_window",
     "$IN | group_by_window { key: 'value % 2' window_size: 4 (| batch { batch_size: 4 } |) }"},
    {"bucket_by_sequence_length",
     "$IN | map { out: 'a = arange(value)' } | bucket_by_sequence_length { element_length: "
     "'shape(a)[0]' bucket_boundary: 20 bucket_batch_size: 3 bucket_batch_size: 2 }"},
    {"cache", "$IN | cache {}"},
    {"snapshot", "$IN | snapshot { path: 'FOLDER/snapshot' }"},
    {"save", "$IN | save { path: 'FOLDER/saved' }"},
    {"concatenate", "$IN | concatenate { (| range { stop: 3 } |) }"},
    {"zip", "zip { (| $IN |) (| range { stop: 60 } |) }"},
    {"sample_from_datasets",
     "sample_from_datasets { (| $IN |) (| range { start: 100 stop: 130 } |) seed: 3 }"},
    {"choose_from_datasets",
     "range { stop: 60 } | map { out: 'value = value % 2' structure: 'null' } | "
     "choose_from_datasets { (| $IN |) (| range { start: 100 stop: 130 } |) }"},
    {"assert_cardinality", "$IN | assert_cardinality { cardinality: 60 }"},
    {"pad_to_cardinality",
     "$IN | map { out: 'a = value' } | pad_to_cardinality { cardinality: 70 }"},
    {"rejection_resample",
     "$IN | rejection_resample { class_func: 'value % 2' target_dist: 0.5 target_dist: 0.5 "
     "initial_dist: 0.5 initial_dist: 0.5 seed: 4 }"},
    {"pack",
     "$IN | map { out: 'a = arange(value % 5)' } | pack { sequence_length: 8 tokens: 'a' }"},
    {"prefetch", "$IN | prefetch { buffer_size: 2 }"},
    {"parse_example",
     "$IN | map { out: 'value = where(value < 0, \"x\", \"\")' structure: 'null' } | parse_example "
     "{ feature { key: 'n' int64 { "
     "default_value: 1 } } }"},
    {"parse_sequence_example",
     "$IN | map { out: 'value = where(value < 0, \"x\", \"\")' structure: 'null' } | batch { "
     "batch_size: 4 } | "
     "parse_sequence_example { context { key: 'n' int64 { default_value: 1 } } }"},
    {"decode_json",
     "$IN | map { out: 'value = where(value < 0, \"x\", \"{}\")' structure: 'null' } | decode_json "
     "{ feature { name: 'n' dtype: "
     "'int64' default_value { ints: 3 } } }"},
};

// They want an interpreter, and each of their elements makes one: as `map`.
constexpr const char* kOfPython[] = {"python", "from_generator"};

// How the stream goes on, and ends.
struct Outcome {
  std::vector<std::vector<std::vector<std::string>>> batches;
  absl::Status status;
};

Outcome Run(const std::string& pipeline, const std::string& input) {
  const ScratchFolder folder;
  std::string text = absl::StrReplaceAll(pipeline, {{"$IN", input}, {"FOLDER", folder.path()}});
  const RunResult result = RunText(Stages(text + " | ignore_errors {} | take { count: 200 }"));
  Outcome outcome{{}, result.status};
  for (const Batch& batch : result.batches) outcome.batches.push_back(batch.parts);
  return outcome;
}

TEST_CASE("Elements that fail count in the ops that say so, and in no others") {
  std::set<std::string> tried(std::begin(kOfPython), std::end(kOfPython));
  const auto* const ops = v1::Stage::descriptor()->FindOneofByName("op");
  for (const auto& [op, pipeline] : kCases) {
    INFO(pipeline);
    const bool counts = TraitsOf(v1::Stage::descriptor()->FindFieldByName(op)).counts_failures;
    const Outcome failing = Run(pipeline, absl::StrCat(kNumbers, kFails));
    const Outcome filtered = Run(pipeline, absl::StrCat(kNumbers, kFiltered));
    INFO(failing.status.ToString() << "; " << filtered.status.ToString());
    CHECK(!failing.batches.empty());
    const bool differs =
        failing.batches != filtered.batches || failing.status.code() != filtered.status.code();
    CHECK(differs == counts);
    tried.insert(op);
  }
  for (int i = 0; i < ops->field_count(); ++i) {
    const auto* const op = ops->field(i);
    INFO(op->name());
    const OpTraits& traits = TraitsOf(op);
    CHECK((traits.place == OpPlace::kSource || traits.reads_ignored != nullptr ||
           tried.count(op->name()) == 1));
  }
}

}  // namespace
}  // namespace penstock::test
