// A cursor outlives the build that made it: fingerprints do not change with the code that makes
// them. Every kind of option that an op can have (engine/spec/op_traits.h) is in some spec.
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/cursor.h"
#include "tests/ops/contract_files.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"

namespace penstock::test {
namespace {

std::string Shown(const v1::Fingerprint& fingerprint) {
  return absl::StrCat(absl::Hex(fingerprint.order()), " ", absl::Hex(fingerprint.seeds()), " ",
                      absl::Hex(fingerprint.work()), " ", absl::Hex(fingerprint.names()), " ",
                      fingerprint.batch_size());
}

TEST_CASE("Fingerprints of specs are those that they have always had") {
  ContractFiles files;
  const std::string numbers = ReadFile(files.folder / "numbers.npy");
  WriteFile(files.folder / "numbers.npz", Zip({{.name = "x.npy", .plain = numbers}}));
  const struct {
    const char* spec;
    const char* fingerprint;
  } cases[] = {
      {"$TURNS | shuffle { buffer_size: 10 seed: 1 } | $PARSE | map { out: 'm = n * 2' } | repeat "
       "{ count: 3 } | take { count: 100 } | batch { batch_size: 7 }",
       "d08109e386118dad edfb4b5ca3cab4d4 f2b9dadfd9664717 148037310caf89cb 7"},
      {"$LIST | interleave { (| text_line {} | shuffle { buffer_size: 4 seed: 3 } |) } | skip { "
       "count: 1 } | padded_batch { batch_size: 5 }",
       "da00739445517e88 d7008de87c358326 50454e53544f434b c74dd35be2914ae1 5"},
      {"$WHOLE | map { out: 'n = label' } | batch { batch_size: 2 remainder: DROP } | repeat {}",
       "1837c5f39e376b4a 50454e53544f434b 7114b2657fa67392 c74dd35be2914ae1 2"},
      {"$PIECES | prefetch { buffer_size: 1 } | batch { batch_size: 3 } | batch { batch_size: 2 }",
       "303398a714c0eacf 50454e53544f434b 50454e53544f434b 6d87fd1704fa924a 2"},
      {"csv { files: 'FOLDER/more.txt' column { dtype: 'string' } } | batch { batch_size: 1 }",
       "133162fc9beda5a2 50454e53544f434b 50454e53544f434b a9b0b75dff0be2c1 1"},
      {"$NPY | shard { num_shards: 2 index: 1 } | batch { batch_size: 7 }",
       "ff494c52c59177e8 50454e53544f434b 50454e53544f434b 89877ac28bd7b797 7"},
      {"from_tensor_slices { npz: 'FOLDER/numbers.npz' } | batch { batch_size: 7 }",
       "b53f8db75596b5c3 50454e53544f434b 50454e53544f434b fd8106c4f035fb94 7"},
      {"from_tensors { tensor { name: 'x' npz: 'FOLDER/numbers.npz' } } | repeat { count: 4 }",
       "465c4f90283e1cfa 50454e53544f434b 50454e53544f434b fd8106c4f035fb94 0"},
      {"$RANGE | map { constant { name: 'c' npy: 'FOLDER/numbers.npy' } constant { name: 'w' "
       "text_line: 'FOLDER/more.txt' } out: 'n = c[0, 1] + value' out: 'w = w[0]' } | batch { "
       "batch_size: 7 }",
       "5a42510b32f32935 50454e53544f434b 7ee97c673ab3bda6 edfb4b5ca3cab4d4 7"},
      {"$RANGE | filter { constant { name: 'c' npy: 'FOLDER/numbers.npy' } let: 'm = value % 7' "
       "predicate: 'm < c[2, 0]' } | batch { batch_size: 7 }",
       "87f2ebceff32c3df 50454e53544f434b 50454e53544f434b edfb4b5ca3cab4d4 7"},
      {"$RANGE | map { out: 'value = value * 3' } | cache { filename: 'FOLDER/kept' max_bytes: "
       "100000 } | shuffle { buffer_size: 20 seed: 4 } | batch { batch_size: 7 }",
       "4737b1097ddb461d 1bd7d1ffb5dd7ecb 50454e53544f434b edfb4b5ca3cab4d4 7"},
      {"$RANGE | cache {} | snapshot { path: 'FOLDER/snapshot' } | save { path: 'FOLDER/saved' } | "
       "batch { batch_size: 7 }",
       "c22e13db878fdc3b 50454e53544f434b 50454e53544f434b edfb4b5ca3cab4d4 7"},
      {"sample_from_datasets { (| $RANGE | shuffle { buffer_size: 9 seed: 5 } |) (| random { seed: "
       "6 } |) weight: 1 weight: 3 seed: 7 } | batch { batch_size: 7 }",
       "b836e6c19752d12b b800124f17817a57 50454e53544f434b 20722f587ad60e08 7"},
      {"$RANGE | rejection_resample { class_func: 'value % 3' target_dist: 1 target_dist: 1 "
       "target_dist: 2 seed: 8 } | batch { batch_size: 7 }",
       "3283dfda686df4aa 92da643768866147 50454e53544f434b edfb4b5ca3cab4d4 7"},
      {"$RANGE | window { size: 5 (| zip { (| window_part {} |) (| window_part {} | skip { count: "
       "1 } |) } | batch { batch_size: 2 } |) } | unbatch {} | batch { batch_size: 7 }",
       "b828b69123946d8 50454e53544f434b 50454e53544f434b edfb4b5ca3cab4d4 7"},
      {"$LISTS | map { out: 'ints = ints' } | ragged_batch { batch_size: 6 }",
       "1d7bb11952bec81 50454e53544f434b 330f3ebca95b71a6 dbedd4323af0671 6"},
      {"$LISTS | map { out: 'value = ints' structure: 'null' } | sparse_batch { batch_size: 6 "
       "row_shape: -1 }",
       "669936f0c1e02992 50454e53544f434b e227e047ad49daa5 dbedd4323af0671 6"},
      {"$RANGE | scan { initial_state { name: 's' int_value: 0 } state: 's = s + value' out: 'n = "
       "s + value' } | window { size: 4 (| batch { batch_size: 4 } |) } | rebatch { batch_size: 3 "
       "batch_size: 5 }",
       "4860b86b5dcfd0f3 50454e53544f434b 50454e53544f434b edfb4b5ca3cab4d4 5"},
      {"$RANGE | group_by_window { key: 'value % 2' window_size: 4 (| batch { batch_size: 4 } |) } "
       "| unbatch {} | ignore_errors {} | batch { batch_size: 7 }",
       "cb55a482b6ff7d06 50454e53544f434b 50454e53544f434b edfb4b5ca3cab4d4 7"},
      {"name: 'a' range { stop: 40 } | name: 'b' draw_name: 'c' shuffle { buffer_size: 9 seed: 5 } "
       "| batch { batch_size: 7 }",
       "c1bf8c63d5f8f270 a7662282535bf8b0 50454e53544f434b edfb4b5ca3cab4d4 7"},
  };
  for (const auto& c : cases) {
    const auto plan = PlanText(files.Spec(c.spec));
    INFO(c.spec << " " << plan.status().ToString());
    REQUIRE(plan.ok());
    const auto fingerprint = FingerprintOf(**plan);
    REQUIRE(fingerprint.ok());
    CHECK(Shown(*fingerprint) == c.fingerprint);
  }
}

}  // namespace
}  // namespace penstock::test
