// The pipelines that the contract of every op is tried over (contract_test.cc): each op at least
// once, at several places, and in company.
#pragma once

namespace penstock::test {

// $NAME stands for sources and stages of contract_files.h.
inline constexpr const char* kContractPipelines[] = {
    // One op at a time, and each once more in company.
    "$RANGE | batch { batch_size: 7 }",
    "range { start: 100 stop: -100 step: -3 } | batch { batch_size: 8 drop_remainder: true }",
    "$RANGE | take { count: 50 } | batch { batch_size: 7 }",
    "$RANGE | batch { batch_size: 7 } | take { count: 9 }",
    "$RANGE | skip { count: 40 } | batch { batch_size: 7 }",
    "$RANGE | batch { batch_size: 7 } | skip { count: 5 }",
    "$RANGE | shard { num_shards: 3 index: 1 } | batch { batch_size: 7 }",
    "$RANGE | batch { batch_size: 4 } | shard { num_shards: 3 index: 2 } | repeat { count: 2 }",
    "$RANGE | repeat { count: 3 } | batch { batch_size: 9 }",
    "$RANGE | batch { batch_size: 16 } | repeat { count: 3 }",
    "$RANGE | enumerate { start: 5 } | batch { batch_size: 7 }",
    "$RANGE | enumerate {} | repeat {} | enumerate { start: -4 } | batch { batch_size: 9 }",
    "$RANGE | prefetch { buffer_size: 2 } | batch { batch_size: 7 }",
    "range { stop: 23 }",
    "range { stop: 0 } | batch { batch_size: 3 }",
    "range { stop: 0 } | repeat {} | batch { batch_size: 3 }",
    // shuffle, at every place.
    "$RANGE | shuffle { buffer_size: 10 seed: 1 } | batch { batch_size: 7 }",
    "$RANGE | shuffle { buffer_size: 500 seed: 2 } | batch { batch_size: 7 } | repeat { count: 3 }",
    "$RANGE | shuffle { buffer_size: 1 seed: 3 } | batch { batch_size: 7 }",
    "$RANGE | repeat { count: 3 } | shuffle { buffer_size: 150 seed: 4 } | batch { batch_size: 9 }",
    "$RANGE | repeat {} | shuffle { buffer_size: 30 seed: 5 } | batch { batch_size: 9 }",
    "$RANGE | shuffle { buffer_size: 30 seed: 6 } | repeat {} | batch { batch_size: 9 }",
    "$RANGE | shuffle { buffer_size: 30 seed: 6 reshuffle_each_iteration: false } | repeat {} | "
    "batch { batch_size: 9 }",
    "$RANGE | shuffle { buffer_size: 20 seed: 7 } | take { count: 11 } | repeat {} | batch { "
    "batch_size: 4 }",
    "$RANGE | take { count: 11 } | shuffle { buffer_size: 20 seed: 8 } | repeat {} | batch { "
    "batch_size: 4 }",
    "$RANGE | shuffle { buffer_size: 20 seed: 9 } | skip { count: 90 } | repeat {} | batch { "
    "batch_size: 4 }",
    "$RANGE | shuffle { buffer_size: 20 seed: 9 } | shard { num_shards: 4 index: 3 } | repeat {} | "
    "batch { batch_size: 4 }",
    "$RANGE | shuffle { buffer_size: 8 seed: 10 } | shuffle { buffer_size: 16 seed: 11 } | repeat "
    "{ count: 2 } | batch { batch_size: 5 }",
    "$RANGE | shuffle { buffer_size: 8 seed: 10 } | repeat { count: 2 } | shuffle { buffer_size: "
    "16 seed: 11 } | repeat { count: 2 } "
    "| batch { batch_size: 11 }",
    "$RANGE | enumerate { start: 3 } | shuffle { buffer_size: 25 seed: 12 } | enumerate {} | "
    "repeat { count: 2 } | batch { batch_size: 6 }",
    "$RANGE | repeat { count: 2 } | repeat { count: 3 } | shuffle { buffer_size: 5 seed: 1 } | "
    "batch { batch_size: 23 }",
    "range { stop: 5000 } | shuffle { buffer_size: 64 seed: 1 } | skip { count: 3000 } | batch { "
    "batch_size: 100 } | repeat { count: 2 }",
    "range { stop: 9000 } | skip { count: 100 } | shuffle { buffer_size: 3 seed: 1 } | repeat { "
    "count: 2 } | batch { batch_size: 500 }",
    "range { stop: 9000 } | shuffle { buffer_size: 3 seed: 1 } | repeat { count: 2 } | shuffle { "
    "buffer_size: 5000 seed: 2 } "
    "| shard { num_shards: 2 index: 1 } | batch { batch_size: 500 }",
    // Trees.
    "zip { (| $RANGE |) (| range { stop: 200 } | skip { count: 5 } |) } | batch { batch_size: 7 }",
    "$RANGE | shuffle { buffer_size: 40 seed: 1 } | zip { (| range { stop: 200 } | shuffle { "
    "buffer_size: 9 seed: 2 } |) } "
    "| repeat { count: 2 } | batch { batch_size: 9 }",
    "zip { (| range { stop: 7 } | shuffle { buffer_size: 3 seed: 1 } | repeat {} |) (| $RANGE | "
    "shuffle { buffer_size: 99 seed: 2 } |) } "
    "| repeat {} | batch { batch_size: 9 }",
    "zip { (| range { stop: 31 } |) (| range { stop: 7 } | repeat {} |) } | shuffle { buffer_size: "
    "12 seed: 3 } | repeat { count: 3 } "
    "| batch { batch_size: 9 }",
    "concatenate { (| range { stop: 31 } | shuffle { buffer_size: 9 seed: 1 } |) (| range { start: "
    "100 stop: 120 } |) } "
    "| repeat { count: 2 } | batch { batch_size: 9 }",
    "range { stop: 31 } | concatenate { (| range { start: 50 stop: 60 } | repeat { count: 2 } |) "
    "(| range { start: 70 stop: 75 } |) } "
    "| shuffle { buffer_size: 20 seed: 2 } | repeat {} | batch { batch_size: 9 }",
    "concatenate { (| range { stop: 3 } |) (| range { stop: 0 } |) (| range { stop: 40 } |) } | "
    "skip { count: 2 } "
    "| shard { num_shards: 2 index: 1 } | repeat {} | batch { batch_size: 6 }",
    "zip { (| concatenate { (| range { stop: 9 } |) (| range { start: 20 stop: 29 } |) } | repeat "
    "{} |) (| $RANGE |) } "
    "| enumerate {} | batch { batch_size: 6 }",
    "concatenate { (| range { stop: 20 } | map { out: 'a = value * 3' } |) "
    "(| zip { (| range { stop: 30 } |) (| range { start: 50 stop: 90 } |) } | map { out: 'a = "
    "feature(\"0\") - feature(\"1\")' } |) } "
    "| shuffle { buffer_size: 7 seed: 3 } | repeat { count: 2 } | batch { batch_size: 8 }",
    "$RANGE | map { out: 'a = value * 2 + 1' } | shuffle { buffer_size: 9 seed: 3 } | map { out: "
    "'b = a - 1' } | batch { batch_size: 8 }",
    // TFRecord files.
    "$SHARDS | batch { batch_size: 16 }",
    "$SHARDS | $PARSE | batch { batch_size: 16 drop_remainder: true } | repeat { count: 2 }",
    "$TURNS | $PARSE | batch { batch_size: 16 }",
    "$TURNS | $PARSE | shuffle { buffer_size: 40 seed: 1 } | repeat { count: 3 } | batch { "
    "batch_size: 16 }",
    "$TURNS | $PARSE | repeat {} | shuffle { buffer_size: 130 seed: 1 } | batch { batch_size: 16 }",
    "$TURNS | $PARSE | skip { count: 37 } | take { count: 30 } | repeat {} | batch { batch_size: 9 "
    "}",
    "$SHARDS | shard { num_shards: 3 index: 1 } | $PARSE | map { out: 'm = n * 2' out: 'k = n / 7' "
    "} | batch { batch_size: 5 }",
    "$SHARDS | $PARSE | map { out: 'm = float32(n) / 3' } | shuffle { buffer_size: 20 seed: 5 } | "
    "batch { batch_size: 5 } | repeat { count: 2 }",
    "$BIG | $PARSE | batch { batch_size: 100 } | repeat { count: 2 }",
    "$BIG | $PARSE | shuffle { buffer_size: 700 seed: 5 } | repeat { count: 2 } | batch { "
    "batch_size: 300 }",
    "$BIG | $PARSE | skip { count: 2900 } | repeat {} | batch { batch_size: 64 }",
    "$BIG | repeat { count: 2 } | skip { count: 3500 } | $PARSE | batch { batch_size: 300 }",
    "$LATE | batch { batch_size: 4 } | repeat { count: 2 }",
    "$LATE | shuffle { buffer_size: 9 seed: 1 } | $PARSE | batch { batch_size: 4 } | repeat { "
    "count: 2 }",
    "zip { (| $SHARDS | shuffle { buffer_size: 30 seed: 1 } |) (| $BIG | $PARSE |) } | repeat { "
    "count: 3 } | batch { batch_size: 16 }",
    "$SHARDS | zip { (| $SHARDS | skip { count: 1 } |) } | enumerate { start: 1 } | batch { "
    "batch_size: 16 }",
    "concatenate { (| $SHARDS | $PARSE |) (| $LATE | $PARSE |) (| $BIG | $PARSE | take { count: 50 "
    "} |) } "
    "| shuffle { buffer_size: 30 seed: 1 } | repeat { count: 2 } | batch { batch_size: 16 }",
    "concatenate { (| $LINES |) (| $SHARDS |) } | enumerate {} | batch { batch_size: 16 }",
    // Batches as elements that arrive bit by bit, and are dropped at the end.
    "$GZIP | batch { batch_size: 7 drop_remainder: true } | shuffle { buffer_size: 4 seed: 1 } | "
    "repeat { count: 2 }",
    "range { stop: 900 } | filter { predicate: 'value % 10 == 3' } | cache {} | batch { "
    "batch_size: "
    "7 drop_remainder: true } | repeat { count: 2 } | repeat { count: 2 } | map { out: 'u = value "
    "+ "
    "random_uniform(seed=1)' }",
    // Datasets of values that come to nothing, behind elements that are left out.
    "range { start: 8 stop: 32 step: 3 } | repeat { count: 2 } | filter { predicate: 'value % 5 != "
    "1' } | interleave { (| map { out: 'value = value + [0, 1000, 2000, 3000]' structure: 'null' } "
    "| unbatch {} | filter { predicate: 'value % 4 != 0' } |) cycle_length: 4 block_length: 3 } | "
    "batch { batch_size: 3 }",
    // Elements of padding beside those of files.
    "$LIST | flat_map { (| range { stop: 3 } | enumerate {} | map { out: 'n = feature(\"1\")' } | "
    "pad_to_cardinality { cardinality: 5 } |) } | filter { predicate: 'n >= 0' } | batch { "
    "batch_size: 8 }",
    // Random functions.
    "$BIG | $PARSE | map { out: 'u = random_uniform([3], seed=1)' out: 'n = n' } | shuffle { "
    "buffer_size: 700 seed: 5 } | repeat { count: 2 } | batch { batch_size: 300 }",
    "$WIDE | shuffle { global: true seed: 5 } | $PARSE | map { out: 'u = random_normal(seed=1)' } "
    "| repeat { count: 2 } | batch { batch_size: 1000 }",
    "$LATE | $PARSE | batch { batch_size: 4 } | map { out: 'u = random_uniform([3], seed=1)' out: "
    "'n = n' } | repeat { count: 2 }",
    "$GZIP | $PARSE | filter { predicate: 'random_uniform(seed=2) < 0.5' } | map { out: 'u = "
    "random_uniform([3], seed=1)' out: 'n = n' } | repeat { count: 3 } | batch { batch_size: 9 }",
    "$LISTS | map { out: 'n = n' } | batch { batch_size: 7 } | unbatch {} | map { out: 'u = n + "
    "random_uniform(seed=1)' } | shuffle { buffer_size: 9 seed: 2 } | batch { batch_size: 5 }",
    "zip { (| $SHARDS | $PARSE | map { out: 'u = random_uniform(seed=1)' } |) (| $NPY | repeat {} "
    "|) } | map { out: 'r = feature(\"0/u\") + random_uniform(seed=2)' } | repeat { count: 2 } | "
    "batch { batch_size: 16 }",
    // Copies of elements that draw.
    "$BIG | $PARSE | flat_map { (| repeat { count: 2 } |) } | map { out: 'u = random_uniform([3], "
    "seed=1)' out: 'n = n' } | shuffle { buffer_size: 300 seed: 5 } | repeat { count: 2 } | batch "
    "{ batch_size: 300 }",
    "$TURNS | $PARSE | map { out: 'n = n' out: 'a = random_uniform(seed=1)' } | interleave { (| "
    "map { out: 'n = n' out: 'a = a' out: 'c = random_uniform(seed=2)' } | filter { predicate: 'n "
    "% 3 != 0' } | repeat { count: 3 } | map { out: 's = a + c + random_uniform(seed=3)' } |) "
    "cycle_length: 3 block_length: 2 } | map { out: 's = s + random_uniform(seed=4)' } | batch { "
    "batch_size: 16 } | repeat { count: 2 }",
    "list_files { files: 'FOLDER/shard-*.tfrecord' seed: 3 } | interleave { (| tfrecord {} | "
    "repeat "
    "{ count: 2 } |) cycle_length: 3 block_length: 2 } | $PARSE | filter { predicate: "
    "'random_uniform(seed=2) < 0.7' } | map { out: 'u = n + random_uniform(seed=1)' } | batch { "
    "batch_size: 16 } | repeat { count: 2 }",
    "$LIST | flat_map { (| range { stop: 5 } | map { out: 'v = value' out: 'c = "
    "random_uniform(seed=1)' } | filter { predicate: 'c < 0.8' } |) } | map { out: 'u = c + "
    "random_uniform(seed=2)' } | batch { batch_size: 4 } | repeat {}",
    "$SHARDS | $PARSE | map { out: 'n = n' out: 'a = random_uniform(seed=1)' } | repeat { count: 2 "
    "} | window { size: 5 shift: 2 (| shuffle { buffer_size: 3 seed: 1 } | batch { batch_size: 3 } "
    "|) } | map { out: 'u = a + random_uniform([3], seed=2)[0]' } | repeat { count: 2 }",
    "$SHARDS | $PARSE | group_by_window { key: 'n % 4' window_size: 6 (| repeat { count: 2 } |) } "
    "| scan { initial_state { name: 's' int_value: 0 } state: 's = s + n' out: 'n = n + s' } | map "
    "{ out: 'u = n + random_uniform(seed=1)' } | batch { batch_size: 9 } | repeat { count: 2 }",
    "$SHARDS | $PARSE | map { out: 'u = n + random_uniform(seed=1)' } | repeat { count: 2 } | "
    "shuffle { buffer_size: 20 seed: 1 } | repeat {} | map { out: 'u = u + random_uniform(seed=2)' "
    "} | batch { batch_size: 16 }",
    "concatenate { (| $RANGE | map { out: 'u = value + random_uniform(seed=1)' } |) (| range { "
    "start: 900 stop: 905 } | map { out: 'u = value + random_uniform(seed=1)' } | repeat { count: "
    "4 "
    "} |) } | shuffle { buffer_size: 30 seed: 2 } | map { out: 'u = u + random_uniform(seed=2)' } "
    "| batch { batch_size: 16 } | repeat { count: 2 }",
    "$SHARDS | $PARSE | map { out: 'n = n' out: 'a = random_uniform(seed=1)' } | batch { "
    "batch_size: 9 remainder: WRAP } | map { out: 'u = n + a + random_uniform(seed=2)' } | repeat "
    "{ "
    "count: 2 }",
    "$RANGE | flat_map { (| repeat { count: 3 } |) } | cache { filename: 'FOLDER/kept' } | map { "
    "out: 'u = value + random_uniform(seed=1)' } | repeat { count: 2 } | batch { batch_size: 9 }",
    // Places that are sought.
    "$WIDE | $PARSE | skip { count: 5000 } | batch { batch_size: 400 } | repeat { count: 2 }",
    "$WIDE | $PARSE | shuffle { buffer_size: 50 seed: 3 } | batch { batch_size: 700 } | repeat { "
    "count: 2 }",
    "$WIDE | shuffle { buffer_size: 9000 seed: 4 } | repeat {} | $PARSE | batch { batch_size: 1000 "
    "}",
    "$WIDE | repeat { count: 2 } | shuffle { buffer_size: 64 seed: 4 } | skip { count: 14000 } | "
    "batch { batch_size: 500 }",
    "zip { (| $WIDE | skip { count: 4500 } |) (| range { stop: 90000 } |) } | repeat {} | shuffle "
    "{ buffer_size: 5 seed: 1 } "
    "| batch { batch_size: 999 }",
    "$WIDE | shuffle { global: true seed: 5 } | repeat { count: 2 } | $PARSE | batch { batch_size: "
    "1000 }",
    "$SHARDS | shuffle { global: true seed: 5 } | $PARSE | batch { batch_size: 7 } | repeat {}",
    "$WIDE | shuffle { global: true seed: 5 block_size: 4 buffer_size: 9 } | $PARSE | batch { "
    "batch_size: 7 } | repeat { count: 2 }",
    "$SHARDS | shuffle { global: true seed: 5 block_size: 3 buffer_size: 6 read_first: true } | "
    "repeat { count: 2 } | $PARSE | batch { batch_size: 7 }",
    "$SHARDS | shuffle { global: true seed: 5 } | shard { num_shards: 2 index: 1 } | repeat {} | "
    "$PARSE | batch { batch_size: 7 }",
    "$LATE | shuffle { global: true seed: 6 reshuffle_each_iteration: false } | take { count: 15 } "
    "| batch { batch_size: 4 } "
    "| repeat { count: 3 }",
    "zip { (| $SHARDS | shuffle { global: true seed: 1 } |) (| $BIG | shuffle { global: true seed: "
    "2 } |) } | repeat {} "
    "| batch { batch_size: 16 }",
    // Values that decide.
    "$RANGE | filter { predicate: 'value % 3 == 1' } | batch { batch_size: 7 }",
    "$RANGE | filter { predicate: 'value > 1000' } | batch { batch_size: 7 }",
    "$RANGE | filter { predicate: 'value > 1000' } | repeat {} | batch { batch_size: 7 }",
    "range { stop: 5000 } | filter { predicate: 'value % 10 == 3' } | batch { batch_size: 16 } | "
    "repeat { count: 2 }",
    "range { stop: 5000 } | filter { predicate: 'value % 10 == 3' } | shuffle { buffer_size: 40 "
    "seed: 1 } | repeat {} | batch { batch_size: 30 }",
    "$RANGE | shuffle { buffer_size: 30 seed: 1 } | filter { let: 'odd = value % 2' predicate: "
    "'odd "
    "== 1' } | map { out: 'a = value * 2' } "
    "| filter { predicate: 'a > 40' } | repeat { count: 3 } | batch { batch_size: 9 }",
    "$RANGE | repeat {} | filter { predicate: 'value != 5' } | skip { count: 120 } | batch { "
    "batch_size: 9 }",
    "$RANGE | take_while { predicate: 'value < 70' } | batch { batch_size: 9 }",
    "$RANGE | take_while { predicate: 'value < 0' } | batch { batch_size: 9 }",
    "$RANGE | shuffle { buffer_size: 101 seed: 3 } | take_while { predicate: 'value > 30' } | "
    "repeat { count: 9 } | batch { batch_size: 4 }",
    "$RANGE | take_while { predicate: 'value < 70' } | repeat { count: 3 } | shard { num_shards: 2 "
    "index: 1 } | batch { batch_size: 9 }",
    "$RANGE | shuffle { buffer_size: 90 seed: 2 } | take_while { predicate: 'value != 50' } | "
    "shuffle { buffer_size: 5 seed: 1 } | repeat {} | batch { batch_size: 9 }",
    "$RANGE | batch { batch_size: 7 } | unbatch {} | batch { batch_size: 5 } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 7 drop_remainder: true } | unbatch {} | shuffle { buffer_size: 9 "
    "seed: 1 } | repeat {} | batch { batch_size: 5 }",
    "$RANGE | batch { batch_size: 16 } | shard { num_shards: 2 index: 1 } | unbatch {} | skip { "
    "count: 20 } | batch { batch_size: 5 }",
    "$RANGE | map { out: 'a = value + [0, 100, 200]' out: 'b = -value - [[0, 1], [2, 3], [4, 5]]' "
    "} | "
    "unbatch {} | batch { batch_size: 5 }",
    "$RANGE | map { out: 'a = value + [0, 100, 200]' } | unbatch { block_size: 1 } | batch { "
    "batch_size: 7 }",
    "$RANGE | map { out: 'a = arange(value) * value' } | unbatch { block_size: 3 } | shuffle { "
    "buffer_size: 50 seed: 4 } | take { count: 900 } | repeat { count: 2 } | batch { batch_size: "
    "64 }",
    "$RANGE | map { out: 'a = arange(value) * value' out: 't = as_string(arange(value))' } | "
    "unbatch { block_size: 3 } | skip { count: 9 } | batch { batch_size: 64 } | repeat { count: 2 "
    "}",
    "$RANGE | map { out: 'a = arange(value + 9)' out: 't = as_string(arange(value + 9) * 12345)' } "
    "| filter { predicate: 'a[8] == 8' } | unbatch {} | map { out: 'a = a + 1' out: 't = t' } | "
    "take { count: 900 } | batch { batch_size: 50 }",
    "$RANGE | map { out: 'a = value + [0, 100, 200]' } | unbatch {} | filter { predicate: 'a % 2 "
    "== "
    "0' } | shuffle { buffer_size: 9 seed: 4 } | repeat { count: 2 } | batch { batch_size: 5 }",
    "$RANGE | filter { predicate: 'value % 4 != 0' } | enumerate {} | zip { (| $RANGE | take_while "
    "{ predicate: 'value < 60' } |) } | repeat { count: 2 } | batch { batch_size: 8 }",
    "concatenate { (| $RANGE | filter { predicate: 'value % 2 == 0' } |) (| $RANGE | filter { "
    "predicate: 'value > 90' } |) (| $RANGE |) } | filter { predicate: 'value % 5 != 0' } "
    "| shuffle { buffer_size: 11 seed: 1 } | repeat { count: 2 } | batch { batch_size: 8 }",
    "zip { (| $RANGE |) (| $RANGE | skip { count: 3 } |) } | filter { predicate: "
    "'feature(\"0\") % 3 == 0' } | shuffle { buffer_size: 9 seed: 1 } | batch { batch_size: 8 }",
    "$TURNS | $PARSE | filter { predicate: 'n % 2 == 1' } | shuffle { buffer_size: 10 seed: 1 } | "
    "repeat { count: 3 } | batch { batch_size: 6 }",
    "$BIG | $PARSE | filter { predicate: 'n % 100 < 7' } | batch { batch_size: 16 } | repeat { "
    "count: 2 }",
    "$BIG | repeat {} | shuffle { buffer_size: 100 seed: 1 } | $PARSE | filter { predicate: 'n % "
    "100 < 7' } | batch { batch_size: 16 }",
    "$LATE | $PARSE | filter { predicate: 'n % 4 != 0' } | batch { batch_size: 4 } | repeat { "
    "count: 2 }",
    "$GZIP | $PARSE | filter { predicate: 'n % 4 != 0' } | batch { batch_size: 4 } | repeat { "
    "count: 2 }",
    "$HURT | $PARSE | filter { predicate: 'n % 4 != 0' } | batch { batch_size: 4 } | repeat { "
    "count: 2 }",
    "$MIXED | $PARSE | ignore_errors {} | batch { batch_size: 7 } | repeat { count: 2 }",
    "$MIXED | $PARSE | batch { batch_size: 7 } | ignore_errors {} | repeat { count: 2 }",
    "$MIXED | batch { batch_size: 7 } | $PARSE | ignore_errors {} | repeat { count: 2 }",
    "$MIXED | $PARSE | filter { predicate: 'n % 3 != 0' } | batch { batch_size: 7 } | shuffle { "
    "buffer_size: 3 seed: 1 } | unbatch {} | take { count: 70 } | ignore_errors {} | batch { "
    "batch_size: 4 } | repeat { count: 2 }",
    "$MIXED | shuffle { buffer_size: 20 seed: 1 } | $PARSE | ignore_errors {} | filter { "
    "predicate: "
    "'n % 2 == 0' } | repeat {} | batch { batch_size: 7 }",
    // Rows whose size only the data tells.
    "$LISTS",
    "$LISTS | batch { batch_size: 1 } | repeat { count: 2 }",
    "$LISTS | padded_batch { batch_size: 70 } | repeat { count: 2 }",
    "$LISTS | shuffle { buffer_size: 30 seed: 1 } | padded_batch { batch_size: 9 padded_shape { "
    "feature: 'ints' shape: 8 } padding_value { feature: 'words' bytes_value: '-' } } | repeat { "
    "count: 2 }",
    "$LISTS | padded_batch { batch_size: 70 padding_value { feature: 'floats' float_value: 0.5 } "
    "remainder: PAD } | repeat { count: 2 }",
    "$LISTS | ragged_batch { batch_size: 70 } | repeat { count: 2 }",
    "$LISTS | repeat {} | shuffle { buffer_size: 30 seed: 1 } | ragged_batch { batch_size: 9 }",
    "$LISTS | map { out: 'a = ints * 2' out: 'words = words' out: 'n = n' } | ragged_batch { "
    "batch_size: 70 remainder: PAD } | repeat { count: 2 }",
    "$LISTS | ragged_batch { batch_size: 9 remainder: WRAP } | map { let: 'b = ints + 1' out: 'a = "
    "b "
    "* ints' out: 'w = words' out: 'f = float16(floats)' } | repeat { count: 2 }",
    "concatenate { (| $LISTS |) (| $LISTS | skip { count: 9 } |) } | shuffle { buffer_size: 50 "
    "seed: 2 } | ragged_batch { batch_size: 40 }",
    "zip { (| $LISTS |) (| $LISTS | shuffle { buffer_size: 9 seed: 1 } |) } | padded_batch { "
    "batch_size: 16 remainder: WRAP }",
    // Ragged and sparse batches that are elements.
    "$LISTS | ragged_batch { batch_size: 9 } | enumerate {} | repeat { count: 2 }",
    "$LISTS | ragged_batch { batch_size: 9 } | rebatch { batch_size: 4 } | repeat { count: 2 }",
    "$LISTS | ragged_batch { batch_size: 9 drop_remainder: true } | shuffle { buffer_size: 5 seed: "
    "1 } "
    "| batch { batch_size: 2 } | repeat {}",
    "$LISTS | map { out: 'a = ints' } | sparse_batch { batch_size: 9 row_shape: -1 } | cache {} | "
    "repeat { count: 2 }",
    // Sequences and sparse tensors, parsed in front of a batch and behind it.
    "$SEQUENCES | $STEPS | padded_batch { batch_size: 7 } | repeat { count: 2 }",
    "$SEQUENCES | $STEPS | shuffle { buffer_size: 20 seed: 3 } | ragged_batch { batch_size: 9 } | "
    "repeat {}",
    "$SEQUENCES | batch { batch_size: 8 } | $STEPS | repeat { count: 2 }",
    "$SEQUENCES | batch { batch_size: 8 } | parse_sequence_example { context { key: 'n' int64 {} } "
    "sequence { key: 'steps' sparse { dtype: 'string' } } } | repeat {}",
    "$LISTS | map { out: 'a = ints' } | sparse_batch { batch_size: 9 row_shape: 8 } | repeat { "
    "count: "
    "2 }",
    "$LISTS | shuffle { buffer_size: 20 seed: 3 } | map { out: 'a = ints * 2' } | sparse_batch { "
    "batch_size: 9 row_shape: -1 } | repeat {}",
    "tfrecord { files: 'FOLDER/lists-*.tfrecord' } | batch { batch_size: 10 } | parse_example { "
    "feature { key: 'ints' sparse { dtype: 'int64' } } feature { key: 'n' int64 {} } } | repeat {}",
    // The last batch.
    "$RANGE | batch { batch_size: 7 remainder: KEEP } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 7 remainder: DROP } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 7 remainder: PAD } | repeat { count: 2 }",
    "$LINES | batch { batch_size: 70 remainder: PAD } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 7 remainder: WRAP } | repeat { count: 3 }",
    "$RANGE | take { count: 5 } | batch { batch_size: 16 remainder: WRAP } | repeat { count: 5 }",
    "range { stop: 0 } | batch { batch_size: 16 remainder: WRAP } | repeat {}",
    "$RANGE | shuffle { buffer_size: 10 seed: 1 } | batch { batch_size: 7 remainder: WRAP } | "
    "repeat {}",
    "$RANGE | repeat { count: 2 } | shuffle { buffer_size: 10 seed: 1 } | batch { batch_size: 60 "
    "remainder: WRAP } | repeat { count: 3 }",
    "$TURNS | $PARSE | shuffle { buffer_size: 40 seed: 1 } | batch { batch_size: 9 remainder: WRAP "
    "} | repeat {}",
    "$GZIP | $PARSE | batch { batch_size: 10 remainder: WRAP } | repeat { count: 3 }",
    "$BIG | $PARSE | skip { count: 2900 } | batch { batch_size: 64 remainder: WRAP } | skip { "
    "count: 1 } | repeat { count: 4 }",
    "$SHARDS | shuffle { global: true seed: 5 } | batch { batch_size: 9 remainder: WRAP } | shard "
    "{ num_shards: 2 index: 1 } | repeat { count: 6 }",
    "$HURT | $PARSE | batch { batch_size: 50 remainder: WRAP } | repeat { count: 2 }",
    // Batches as elements.
    "$RANGE | batch { batch_size: 5 drop_remainder: true } | batch { batch_size: 3 } | repeat { "
    "count: "
    "2 }",
    "$RANGE | batch { batch_size: 4 } | shuffle { buffer_size: 6 seed: 1 } | repeat { count: 3 }",
    "$RANGE | batch { batch_size: 4 } | shuffle { buffer_size: 6 seed: 1 } | unbatch {} | batch { "
    "batch_size: 7 } | repeat {}",
    "range { stop: 9000 } | batch { batch_size: 4 drop_remainder: true } | shuffle { buffer_size: "
    "50 "
    "seed: 1 } | skip { count: 2100 } | batch { batch_size: 8 } | repeat { count: 2 }",
    "$TURNS | $PARSE | batch { batch_size: 4 drop_remainder: true } | filter { predicate: 'n[0] % "
    "2 == "
    "0' } | repeat { count: 2 }",
    "$TURNS | $PARSE | batch { batch_size: 4 } | enumerate {} | shuffle { buffer_size: 5 seed: 2 } "
    "| "
    "repeat { count: 2 }",
    "zip { (| $BIG | $PARSE | batch { batch_size: 40 drop_remainder: true } |) (| $RANGE |) } | "
    "skip { "
    "count: 30 } | batch { batch_size: 2 } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 4 drop_remainder: true } | map { out: 'a = value - value[::-1]' "
    "} | "
    "shuffle { buffer_size: 5 seed: 2 } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 4 remainder: PAD } | shuffle { buffer_size: 5 seed: 2 } | batch "
    "{ "
    "batch_size: 2 } | repeat { count: 2 }",
    // Datasets of files.
    "list_files { files: 'FOLDER/shard-*.tfrecord' shuffle: false } | interleave { (| tfrecord {} "
    "|) cycle_length: 3 "
    "block_length: 2 } | $PARSE | batch { batch_size: 16 } | repeat { count: 2 }",
    "list_files { files: 'FOLDER/shard-*.tfrecord' seed: 3 } | interleave { (| tfrecord {} | "
    "$PARSE | "
    "take { count: 9 } |) cycle_length: 2 } | shuffle { buffer_size: 9 seed: 1 } | repeat {} | "
    "batch { "
    "batch_size: 7 }",
    "list_files { files: 'FOLDER/shard-*.tfrecord' seed: 3 } | repeat {} | interleave { (| "
    "tfrecord {} "
    "| shuffle { buffer_size: 6 seed: 2 } |) cycle_length: 3 block_length: 4 } | $PARSE | batch { "
    "batch_size: 11 }",
    "list_files { files: 'FOLDER/*.txt' shuffle: false } | shard { num_shards: 2 index: 1 } | "
    "flat_map "
    "{ (| text_line {} | skip { count: 1 } | enumerate {} |) } | repeat { count: 3 } | batch { "
    "batch_size: 4 }",
    "list_files { files: 'FOLDER/wide-*.tfrecord' shuffle: false } | interleave { (| tfrecord {} "
    "|) "
    "cycle_length: 3 block_length: 16 } | skip { count: 9000 } | $PARSE | filter { predicate: 'n % "
    "3 "
    "== 0' } | batch { batch_size: 100 } | repeat { count: 2 }",
    "list_files { files: 'FOLDER/shard-*.tfrecord' shuffle: false } | interleave { (| tfrecord {} "
    "| "
    "$PARSE | filter { predicate: 'n % 2 == 0' } |) cycle_length: 2 } | batch { batch_size: 5 } | "
    "repeat { count: 2 }",
    // Datasets of elements' values.
    "range { stop: 30 } | interleave { (| repeat { count: 4 } |) cycle_length: 5 block_length: 3 } "
    "| repeat { count: 2 } | batch { batch_size: 9 }",
    "$RANGE | shuffle { buffer_size: 9 seed: 1 } | batch { batch_size: 7 } | interleave { (| "
    "unbatch {} | filter { predicate: 'value % 3 != 0' } | shuffle { buffer_size: 3 seed: 2 } |) "
    "cycle_length: 4 block_length: 2 } | repeat {} | batch { batch_size: 8 }",
    "$BIG | $PARSE | filter { predicate: 'n % 3 == 0' } | flat_map { (| map { out: 'a = n + [0, "
    "1000, 2000]' out: 'u = random_uniform([3], seed=1)' } | unbatch {} | enumerate {} |) } | "
    "batch { batch_size: 100 } | repeat { count: 2 }",
    "$LISTS | interleave { (| map { out: 'value = ints' structure: 'null' } | unbatch {} |) "
    "cycle_length: 16 } | batch { batch_size: 16 } | repeat { count: 2 }",
    "zip { (| $LINES |) (| $RANGE |) } | interleave { (| zip { (| window_part { component: 1 } | "
    "repeat { count: 3 } |) (| window_part { component: 0 } | repeat {} |) } |) cycle_length: 2 } "
    "| shuffle { buffer_size: 9 seed: 1 } | batch { batch_size: 16 } | repeat { count: 2 }",
    "$TURNS | $PARSE | repeat {} | interleave { (| range { start: 3 stop: 8 } | repeat { count: 2 "
    "} |) cycle_length: 3 block_length: 4 } | batch { batch_size: 11 }",
    "$MIXED | $PARSE | flat_map { (| range { stop: 3 } |) } | ignore_errors {} | batch { "
    "batch_size: 7 } | repeat { count: 2 }",
    "list_files { files: 'FOLDER/*.txt' seed: 4 } | interleave { (| text_line {} | zip { (| "
    "window_part {} | repeat {} |) } |) cycle_length: 2 } | map { out: 'line = feature(\"0\")' } "
    "| batch { batch_size: 9 } | repeat { count: 2 }",
    "range { stop: 40 } | interleave { (| map { out: 'a = value * [1, 2, 3, 4, 5]' } | unbatch {} "
    "| batch { batch_size: 2 } |) cycle_length: 3 } | repeat { count: 2 }",
    "range { stop: 40 } | batch { batch_size: 9 } | batch { batch_size: 2 } | flat_map { (| "
    "unbatch {} | interleave { (| unbatch {} |) cycle_length: 2 } | take { count: 11 } |) } | "
    "batch { batch_size: 4 } | repeat { count: 2 }",
    "zip { (| list_files { files: 'FOLDER/hurt-*.tfrecord' shuffle: false } | flat_map { (| "
    "tfrecord { "
    "damage { on_damage: SKIP_RECORD } } |) } |) (| $RANGE | filter { predicate: 'value > 3' } |) "
    "} | "
    "repeat { count: 2 } | batch { batch_size: 9 }",
    // Sources without end, and choices among datasets.
    "counter { start: 5 step: -2 } | shuffle { buffer_size: 9 seed: 1 } | batch { batch_size: 7 }",
    "counter {} | take { count: 30 } | repeat { count: 3 } | batch { batch_size: 7 }",
    "random { seed: 4 } | shard { num_shards: 3 index: 1 } | take { count: 20 } | repeat { count: "
    "2 } | batch { batch_size: 7 }",
    "random { seed: 4 rerandomize_each_iteration: true } | take { count: 20 } | repeat { count: 3 "
    "} "
    "| batch { batch_size: 7 }",
    "zip { (| counter {} |) (| random { seed: 4 } |) (| $RANGE |) } | batch { batch_size: 9 }",
    // Where little comes through, and by and by: blocks in parts.
    "counter {} | filter { predicate: '(value < 70)|(value % 9000 == 8999)' } | filter { "
    "predicate: 'value % 3 != 1' } | take { count: 60 } | batch { batch_size: 2 } | repeat { "
    "count: 2 }",
    "counter {} | filter { predicate: '(value % 100 < 40) & (value % 700 < 200)' } | enumerate {} "
    "| filter { predicate: 'feature(\"0\") % 7 != 2' } | take { count: 80 } | batch { batch_size: "
    "3 } | repeat { count: 2 }",
    // Elements in another order of features, and of other sizes.
    "$BIG | $PARSE | map { out: 'm = n % 5' out: 'n = n' } | concatenate { (| $SHARDS | $PARSE | "
    "map { out: 'n = n' out: 'm = n % 3' } |) } | shuffle { buffer_size: 40 seed: 3 } | repeat { "
    "count: 2 } | batch { batch_size: 90 }",
    "range { stop: 60 } | batch { batch_size: 4 drop_remainder: true } | concatenate { (| $RANGE | "
    "batch { batch_size: 7 drop_remainder: true } |) } | shuffle { buffer_size: 9 seed: 3 } | "
    "unbatch {} | batch { batch_size: 9 }",
    "sample_from_datasets { (| $RANGE |) (| range { stop: 30 } |) seed: 1 } | batch { batch_size: "
    "9 "
    "} | repeat { count: 2 }",
    "sample_from_datasets { (| $RANGE | shuffle { buffer_size: 9 seed: 2 } |) (| range { stop: 30 "
    "} "
    "| filter { predicate: 'value % 3 != 0' } |) (| counter {} |) weight: 1 weight: 2.5 weight: 0 "
    "seed: 1 rerandomize_each_iteration: true } | repeat { count: 3 } | batch { batch_size: 9 }",
    "$TURNS | $PARSE | sample_from_datasets { (| $BIG | $PARSE | repeat {} |) seed: 1 "
    "stop_on_empty_dataset: true } | shuffle { buffer_size: 20 seed: 2 } | repeat {} | batch { "
    "batch_size: 9 }",
    "range { stop: 3 } | repeat {} | choose_from_datasets { (| $RANGE |) (| range { stop: 30 } | "
    "shuffle { buffer_size: 9 seed: 2 } |) (| counter {} |) } | repeat { count: 2 } | batch { "
    "batch_size: 9 }",
    "random { seed: 3 } | map { out: 'value = value % 2' structure: 'null' } | "
    "choose_from_datasets "
    "{ (| $SHARDS | $PARSE |) (| $LATE | $PARSE |) stop_on_empty_dataset: false } | repeat { "
    "count: "
    "2 } | batch { batch_size: 9 }",
    "range { stop: 40 } | map { out: 'value = value % 2' structure: 'null' } | shuffle { "
    "buffer_size: 20 seed: 1 } | choose_from_datasets { (| $RANGE | enumerate {} |) (| zip { (| "
    "$RANGE |) (| $RANGE | filter { predicate: 'value > 9' } |) } |) } | batch { batch_size: 9 }",
    // Windows.
    "$RANGE | window { size: 5 (| batch { batch_size: 5 } |) } | repeat { count: 2 }",
    "$RANGE | enumerate {} | window { size: 7 shift: 3 (| zip { (| window_part { component: 0 } | "
    "skip { count: 1 } |) (| window_part { component: 1 } | shuffle { buffer_size: 4 seed: 2 } |) "
    "} "
    "| batch { batch_size: 4 } |) } | repeat { count: 2 }",
    "$RANGE | enumerate {} | window { size: 6 (| window_part {} | batch { batch_size: 4 } |) } | "
    "shuffle { buffer_size: 5 seed: 3 } | repeat { count: 2 }",
    "$RANGE | window { size: 9 shift: 2 stride: 3 drop_remainder: true (| batch { batch_size: 9 } "
    "|) "
    "} | repeat { count: 2 }",
    "$RANGE | window { size: 3 shift: 70 (| batch { batch_size: 5 } |) }",
    "range { stop: 1000 } | window { size: 150 shift: 40 } | shuffle { buffer_size: 30 seed: 1 } | "
    "batch { batch_size: 90 }",
    "$RANGE | shuffle { buffer_size: 9 seed: 1 } | window { size: 7 shift: 3 (| shuffle { "
    "buffer_size: 4 seed: 2 } | take { count: 5 } | batch { batch_size: 3 } |) } | repeat { count: "
    "2 "
    "} | skip { count: 5 }",
    "$RANGE | filter { predicate: 'value % 3 != 1' } | window { size: 6 shift: 1 (| filter { "
    "predicate: 'value % 2 == 0' } | batch { batch_size: 2 } |) } | repeat { count: 2 } | take { "
    "count: 60 }",
    "$TURNS | $PARSE | window { size: 4 shift: 2 (| batch { batch_size: 4 } |) } | shuffle { "
    "buffer_size: 5 seed: 2 } | repeat { count: 2 }",
    "$LATE | window { size: 4 shift: 2 (| $PARSE | batch { batch_size: 4 } |) } | repeat { count: "
    "2 }",
    "$BIG | $PARSE | window { size: 3 shift: 200 (| enumerate {} |) } | repeat {} | batch { "
    "batch_size: 5 }",
    "$RANGE | repeat {} | window { size: 6 shift: 5 (| window { size: 3 shift: 1 (| batch { "
    "batch_size: 3 } |) } |) }",
    "$RANGE | enumerate {} | window { size: 5 shift: 3 (| zip { (| window_part { component: 0 } | "
    "batch { batch_size: 2 } |) (| window_part { component: 1 } | skip { count: 1 } |) } |) } | "
    "shuffle { buffer_size: 6 seed: 1 } | repeat { count: 2 } | batch { batch_size: 1 }",
    "$LISTS | window { size: 4 shift: 3 (| padded_batch { batch_size: 4 } |) } | repeat { count: 2 "
    "}",
    "$HURT | $PARSE | window { size: 4 shift: 3 (| batch { batch_size: 4 } |) } | repeat { count: "
    "2 }",
    "$RANGE | batch { batch_size: 7 } | rebatch { batch_size: 5 } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 7 } | rebatch { batch_size: 5 batch_size: 1 batch_size: 3 "
    "drop_remainder: true } | skip { count: 2 } | repeat { count: 2 }",
    "$RANGE | map { out: 'a = value + [0, 100, 200]' } | rebatch { batch_size: 5 batch_size: 1 } | "
    "shuffle { buffer_size: 4 seed: 1 } | repeat { count: 2 } | take { count: 50 }",
    // Groups.
    "$RANGE | group_by_window { key: 'value % 3' window_size: 4 (| batch { batch_size: 4 } |) } | "
    "repeat { count: 2 }",
    "$RANGE | shuffle { buffer_size: 20 seed: 1 } | group_by_window { key: 'value % 4' "
    "window_size_of_key: 'key * 2 + 1' (| shuffle { buffer_size: 3 seed: 2 } |) } | repeat {} | "
    "batch { batch_size: 9 }",
    "$TURNS | $PARSE | group_by_window { key: 'n % 3' window_size: 5 (| filter { predicate: 'n % 2 "
    "== 0' } |) } | batch { batch_size: 4 } | repeat { count: 2 }",
    "$LISTS | bucket_by_sequence_length { element_length: 'shape(ints)[0]' bucket_boundary: 2 "
    "bucket_boundary: 4 bucket_batch_size: 9 bucket_batch_size: 5 bucket_batch_size: 3 } | repeat "
    "{ "
    "count: 2 }",
    "$LISTS | shuffle { buffer_size: 30 seed: 1 } | bucket_by_sequence_length { element_length: "
    "'shape(ints)[0]' bucket_boundary: 3 bucket_boundary: 40 bucket_batch_size: 8 "
    "bucket_batch_size: 4 bucket_batch_size: 1 padded_shape { feature: 'words' shape: 50 } "
    "padded_shape { feature: 'floats' shape: 50 } pad_to_bucket_boundary: true drop_remainder: "
    "true "
    "} | repeat {}",
    // Sequences of documents.
    "$LISTS | pack { sequence_length: 7 tokens: 'ints' end_id: -1 segment_ids: true positions: "
    "true window: 20 } | batch { batch_size: 4 } | repeat { count: 2 }",
    "$LISTS | shuffle { buffer_size: 30 seed: 1 } | pack { sequence_length: 16 tokens: 'ints' "
    "method: 'best_fit' window: 70 cu_seqlens: true max_documents: 5 loss_mask: true } | shuffle { "
    "buffer_size: 9 seed: 2 } | batch { batch_size: 3 } | repeat {}",
    "$LISTS | pack { sequence_length: 3 tokens: 'ints' method: 'first_fit_decreasing' "
    "segment_ids: true window: 9 } | shard { num_shards: 3 index: 1 } | batch { batch_size: 2 } | "
    "repeat { count: 2 }",
    "$RANGE | map { out: 'tokens = arange(value % 13) + value * 100' out: 'begin = value % 13 // "
    "2' } | filter { predicate: 'begin != 3' } | pack { sequence_length: 8 tokens: 'tokens' "
    "split_documents: false loss_mask: true answer_begin: 'begin' window: 10 cu_seqlens: true } | "
    "skip { count: 3 } | repeat { count: 3 }",
    "$RANGE | map { out: 'tokens = arange(value % 30)' } | pack { sequence_length: 10 tokens: "
    "'tokens' long_documents: 'error' positions: true drop_remainder: true window: 40 } | map { "
    "out: 'tokens = tokens' out: 'drawn = random_uniform([2], seed=3)' } | ignore_errors {} | "
    "batch "
    "{ batch_size: 4 } | repeat { count: 2 }",
    "$RANGE | repeat { count: 3 } | window { size: 30 (| map { out: 't = arange(value % 5)' } | "
    "pack { sequence_length: 6 window: 12 method: 'best_fit' } |) } | batch { batch_size: 5 }",
    // States.
    "$RANGE | map { out: 'value = value * value % 23' structure: 'null' } | unique {} | batch { "
    "batch_size: 4 } | repeat { count: 3 }",
    "$LINES | repeat { count: 2 } | unique {} | shuffle { buffer_size: 9 seed: 1 } | batch { "
    "batch_size: 16 }",
    "$RANGE | scan { initial_state { name: 's' int_value: 1 } state: 's = s * 3 % 101 + value' "
    "out: "
    "'a = s' out: 'b = value' } | filter { predicate: 'a % 2 == 0' } | repeat { count: 2 } | batch "
    "{ "
    "batch_size: 9 }",
    "$TURNS | $PARSE | shuffle { buffer_size: 9 seed: 1 } | scan { initial_state { name: 's' "
    "string_value: 'x' } initial_state { name: 'k' value: 0 shape: 1 } state: 's = s' state: 'k = "
    "k "
    "* 0.5 + n' out: 'a = k' out: 's = s' } | shuffle { buffer_size: 9 seed: 1 } | repeat {} | "
    "batch "
    "{ batch_size: 9 }",
    "$RANGE | window { size: 6 shift: 2 (| map { out: 'x = value' } | reduce { initial_state { "
    "name: "
    "'s' int_value: 0 } state: 's = s + x' } |) } | batch { batch_size: 7 } | repeat { count: 2 }",
    "$RANGE | rejection_resample { class_func: 'value % 3' target_dist: 2 target_dist: 1 "
    "target_dist: 0 initial_dist: 1 initial_dist: 1 initial_dist: 1 seed: 3 } | batch { "
    "batch_size: "
    "5 } | repeat { count: 2 }",
    "$RANGE | shuffle { buffer_size: 9 seed: 1 } | rejection_resample { class_func: 'value % 3' "
    "target_dist: 3 target_dist: 1 target_dist: 1 seed: 3 } | repeat {} | batch { batch_size: 5 }",
    "$RANGE | filter { predicate: 'value % 2 == 0' } | assert_cardinality { cardinality: 51 } | "
    "shuffle { buffer_size: 9 seed: 1 } | batch { batch_size: 9 } | repeat { count: 2 }",
    "$LISTS | pad_to_cardinality { cardinality: 150 } | shuffle { buffer_size: 60 seed: 1 } | "
    "padded_batch { batch_size: 9 } | repeat { count: 2 }",
    // Records of formats with an index, in any order.
    "$LINES | shuffle { global: true seed: 1 } | batch { batch_size: 7 }",
    "text_line { files: 'FOLDER/lines.txt' cycle_length: 2 } | skip { count: 50 } | repeat { "
    "count: 2 } | batch { batch_size: 7 }",
    "$PIECES | shuffle { global: true seed: 2 } | repeat { count: 2 } | batch { batch_size: 7 }",
    "csv { files: 'FOLDER/lines.txt' column { dtype: 'string' } } | shuffle { global: true seed: 3 "
    "} | batch { batch_size: 7 }",
    "tar { files: 'FOLDER/samples-*.tar' $TAR_FEATURES } | ragged_batch { batch_size: 7 }",
    "tar { files: 'FOLDER/samples-*.tar' cycle_length: 2 $TAR_FEATURES } | shuffle { buffer_size: "
    "20 seed: 1 } | batch { batch_size: 7 } | repeat { count: 2 }",
    "tar { files: 'FOLDER/samples-*.tar' $TAR_FEATURES feature { extension: '__url__' } } | "
    "shuffle "
    "{ global: true seed: 4 } | batch { batch_size: 7 }",
    "tar { files: 'FOLDER/samples-*.tar.gz' compression: 'GZIP' $TAR_FEATURES } | shard { "
    "num_shards: 3 index: 1 } | batch { batch_size: 7 }",
    "tar { files: 'FOLDER/damaged-*.tar' $TAR_FEATURES damage { on_damage: SKIP_RECORD } } | batch "
    "{ batch_size: 7 }",
    // Rows of Arrow files.
    "$ARROW | batch { batch_size: 3 }",
    "$ARROW | shuffle { global: true seed: 5 } | batch { batch_size: 7 } | repeat { count: 3 }",
    "$ARROW | shuffle { buffer_size: 9 seed: 5 } | repeat { count: 2 } | shard { num_shards: 3 "
    "index: 1 } | batch { batch_size: 4 }",
    "arrow { files: 'FOLDER/numbers.arrow' feature { name: 'int64' } feature { name: 'x' column: "
    "'float32' } rows { start: 6 start: 0 count: 4 count: 5 row: 8 row: 0 row: 3 row: 8 row: 1 } } "
    "| skip { count: 1 } | repeat { count: 4 } | batch { batch_size: 6 }",
    "arrow { files: 'FOLDER/cut.arrows' feature { name: 'int32' } damage { on_damage: SKIP_RECORD "
    "} } | repeat { count: 3 } | batch { batch_size: 7 }",
    "$NESTED_ARROW | padded_batch { batch_size: 3 } | repeat { count: 5 }",
    "$NESTED_ARROW | repeat { count: 4 } | shuffle { buffer_size: 6 seed: 2 } | ragged_batch { "
    "batch_size: 5 }",
    "arrow { files: 'FOLDER/structs_nulls.arrow' feature { name: 'image.bytes' default_value { "
    "strings: '' } } feature { name: 'no' column: 'image' is_null: true } } | shuffle { global: "
    "true seed: 6 } | batch { batch_size: 2 } | repeat { count: 6 }",
    "arrow { files: 'FOLDER/texts_zstd.arrow' } | repeat { count: 9 } | shuffle { buffer_size: 20 "
    "seed: 1 } | batch { batch_size: 4 }",
    "arrow { files: 'FOLDER/lists_nulls.arrow' feature { name: 'l' allow_missing: true } } | "
    "ignore_errors {} | ragged_batch { batch_size: 3 } | repeat { count: 5 }",
    // Rows of Parquet files.
    "$PARQUET | batch { batch_size: 3 }",
    "$PARQUET | shuffle { global: true seed: 5 } | batch { batch_size: 7 } | repeat { count: 3 }",
    "$PARQUET | shuffle { buffer_size: 9 seed: 5 } | repeat { count: 2 } | shard { num_shards: 3 "
    "index: 1 } | batch { batch_size: 4 }",
    "parquet { files: 'FOLDER/pages_v1.parquet' feature { name: 'int8_r' } feature { name: 'b' "
    "column: 'binary_n' default_value { strings: '?' } } rows { start: 40 start: 0 count: 20 "
    "count: 30 row: 49 row: 0 row: 3 row: 18 row: 1 } } | skip { count: 1 } | repeat { count: 4 } "
    "| batch { batch_size: 6 }",
    // Rows that are null are left out.
    "parquet { files: 'FOLDER/pages_v1.parquet' feature { name: 'string_n' } feature { name: "
    "'float64_n' } } | ignore_errors {} | batch { batch_size: 7 } | repeat { count: 3 }",
    "csv { files: 'FOLDER/lines.txt' files: 'FOLDER/more.txt' column { dtype: 'string' "
    "string_value: "
    "'' } header: true } | batch { batch_size: 16 } | repeat { count: 2 }",
    "csv { files: 'FOLDER/lines.txt.gz' column { dtype: 'string' } field_delim: ' ' select_col: 1 "
    "compression: 'GZIP' } | shuffle { buffer_size: 9 seed: 1 } | repeat { count: 2 } | batch { "
    "batch_size: 16 }",
    // JSON.
    "$DOCUMENTS | $DECODE | ragged_batch { batch_size: 7 }",
    "$DOCUMENTS | shuffle { buffer_size: 20 seed: 1 } | batch { batch_size: 8 } | $DECODE | repeat "
    "{ count: 2 }",
    "$GZIP_DOCUMENTS | skip { count: 3 } | $DECODE | padded_batch { batch_size: 9 } | repeat { "
    "count: 3 }",
    "$HURT_DOCUMENTS | $DECODE | ragged_batch { batch_size: 6 } | repeat { count: 2 }",
    "$HURT_DOCUMENTS | batch { batch_size: 16 } | repeat {}",
    "$DOCUMENTS | shuffle { global: true seed: 3 } | $DECODE | ragged_batch { batch_size: 7 } | "
    "repeat "
    "{ count: 2 }",
    "json_lines { files: 'FOLDER/*.jsonl' damage { on_damage: SKIP_RECORD } } | shuffle { global: "
    "true "
    "seed: 3 } | batch { batch_size: 16 } | decode_json { feature { name: 'n' dtype: 'int64' } } | "
    "repeat {}",
    "$CUT_DOCUMENTS | batch { batch_size: 9 } | decode_json { feature { name: 'l' dtype: 'int64' "
    "shape: -1 form: SPARSE } feature { name: 's' dtype: 'string' } } | repeat { count: 2 }",
    "json_lines { files: 'FOLDER/hurt.jsonl' } | decode_json { feature { name: 'n' dtype: 'int64' "
    "} "
    "} | ignore_errors {} | shuffle { buffer_size: 9 seed: 1 } | batch { batch_size: 4 } | repeat "
    "{ count: 2 }",
    "$DOCUMENTS | batch { batch_size: 5 } | decode_json { feature { name: 'l' dtype: 'int64' "
    "shape: "
    "-1 form: PADDED default_value { ints: -9 } } } | repeat { count: 2 }",
    // Caches.
    "$RANGE | shuffle { buffer_size: 20 seed: 1 } | cache {} | repeat { count: 3 } | batch { "
    "batch_size: 9 }",
    "$TURNS | $PARSE | filter { predicate: 'n % 3 != 0' } | cache { max_bytes: 1500 } | shuffle { "
    "buffer_size: 9 seed: 1 } | repeat {} | batch { batch_size: 9 }",
    "$BIG | $PARSE | batch { batch_size: 40 } | cache { max_bytes: 20000 } | skip { count: 5 } | "
    "repeat { count: 2 }",
    "zip { (| $LATE | $PARSE | cache {} | repeat {} |) (| $RANGE | cache {} | shard { num_shards: "
    "2 "
    "index: 1 } |) } | batch { batch_size: 6 }",
    "$RANGE | shuffle { buffer_size: 20 seed: 1 } | cache { filename: 'FOLDER/kept' } | repeat { "
    "count: 3 } | batch { batch_size: 9 }",
    "$TURNS | $PARSE | filter { predicate: 'n % 3 != 0' } | cache { filename: 'FOLDER/kept' "
    "max_bytes: 2500 } | shuffle { buffer_size: 9 seed: 1 } | repeat {} | batch { batch_size: 9 }",
    "$LISTS | cache { filename: 'FOLDER/kept' } | shuffle { buffer_size: 30 seed: 4 } | repeat { "
    "count: 2 } | padded_batch { batch_size: 9 }",
    "$BIG | $PARSE | map { out: 'u = random_uniform([3], seed=1)' out: 'n = n' } | batch { "
    "batch_size: 40 } | snapshot { path: 'FOLDER/shot' } | skip { count: 5 } | unbatch {} | map { "
    "out: 'v = u + random_uniform([3], seed=2)' } | repeat { count: 2 } | batch { batch_size: 90 }",
    "zip { (| $LATE | $PARSE | cache { filename: 'FOLDER/kept' } | repeat {} |) (| $RANGE | cache "
    "{ filename: 'FOLDER/kept' } | shard { num_shards: 2 index: 1 } |) } | batch { batch_size: 6 }",
    "load { path: 'FOLDER/saved' } | shuffle { buffer_size: 9 seed: 1 } | map { out: 'x = a + "
    "random_uniform(seed=1)' } | repeat { count: 2 } | batch { batch_size: 7 }",
    "load { path: 'FOLDER/saved' } | shuffle { global: true seed: 1 } | repeat { count: 3 } | "
    "batch { batch_size: 7 }",
    // Lists of files, whole files and tensors.
    "$LIST | batch { batch_size: 3 }",
    "$LIST | repeat { count: 3 } | batch { batch_size: 4 }",
    "$LIST | skip { count: 2 } | shard { num_shards: 2 index: 1 } | repeat {} | batch { "
    "batch_size: 3 }",
    "list_files { files: 'FOLDER/*-?.tfrecord' seed: 7 reshuffle_each_iteration: false } | take { "
    "count: 5 } | repeat { count: 4 } | batch { batch_size: 3 }",
    "list_files { files: 'FOLDER/*-?.tfrecord' shuffle: false } | shuffle { buffer_size: 4 seed: 2 "
    "} | repeat {} | batch { batch_size: 5 }",
    "zip { (| $LIST | repeat {} |) (| $SLICES |) } | enumerate {} | batch { batch_size: 9 }",
    "$WHOLE | batch { batch_size: 3 } | repeat { count: 2 }",
    "$WHOLE | shuffle { buffer_size: 5 seed: 3 } | repeat {} | batch { batch_size: 4 }",
    "concatenate { (| $LIST |) (| text_line { files: 'FOLDER/more.txt' } |) (| $LIST | skip { "
    "count: 4 } |) } | repeat { count: 2 } | batch { batch_size: 4 }",
    "$SLICES | batch { batch_size: 8 }",
    "$SLICES | shuffle { buffer_size: 10 seed: 4 } | repeat { count: 3 } | batch { batch_size: 8 }",
    "$SLICES | map { out: 'y = x * 2' out: 'z = x - 1' } | shard { num_shards: 3 index: 1 } | "
    "repeat "
    "{} | batch { batch_size: 5 }",
    "$NPY | batch { batch_size: 50 drop_remainder: true } | repeat { count: 2 }",
    "$NPY | shuffle { buffer_size: 90 seed: 4 } | repeat { count: 2 } | batch { batch_size: 64 }",
    "concatenate { (| $NPY | skip { count: 290 } |) (| $NPY | take { count: 7 } |) } | shuffle { "
    "buffer_size: 5 seed: 1 } | repeat { count: 2 } | batch { batch_size: 6 }",
    "from_tensors { tensor { int_value: 3 int_value: 4 } } | repeat { count: 20 } | batch { "
    "batch_size: 7 }",
    "from_tensors { tensor { name: 'a' npy: 'FOLDER/numbers.npy' } tensor { name: 'b' "
    "string_value: 'text' } } | repeat {} | batch { batch_size: 2 }",
    // Damage that is passed over.
    "$HURT | $PARSE | batch { batch_size: 7 } | repeat { count: 2 }",
    "$HURT | shuffle { buffer_size: 20 seed: 1 } | $PARSE | batch { batch_size: 7 } | repeat { "
    "count: 2 }",
    "$CUT_SHORT | $PARSE | batch { batch_size: 7 } | repeat { count: 2 }",
    "$CUT_SHORT | shuffle { buffer_size: 20 seed: 1 } | repeat {} | $PARSE | batch { batch_size: 7 "
    "}",
    // Compressed, lines and pieces.
    "$GZIP | $PARSE | batch { batch_size: 16 } | repeat { count: 2 }",
    "$GZIP | $PARSE | shuffle { buffer_size: 50 seed: 2 } | repeat { count: 2 } | batch { "
    "batch_size: 16 }",
    "$ZLIB | $PARSE | skip { count: 1500 } | batch { batch_size: 300 } | repeat { count: 2 }",
    "$LINES | batch { batch_size: 16 } | repeat { count: 2 }",
    "$LINES | shuffle { buffer_size: 40 seed: 1 } | repeat { count: 2 } | batch { batch_size: 16 }",
    "$GZIP_LINES | shard { num_shards: 2 index: 1 } | batch { batch_size: 16 } | repeat { count: 2 "
    "}",
    "$PIECES | batch { batch_size: 16 } | repeat { count: 2 }",
    "$PIECES | shuffle { buffer_size: 40 seed: 1 } | skip { count: 3 } | repeat { count: 2 } | "
    "batch { batch_size: 16 }",
};

}  // namespace penstock::test
