// Small TFRecord shards of every kind, made once: a history takes some of them under names of its
// own.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace penstock::test {

struct PooledShard {
  enum class State {
    kWhole,
    kGzip,         // a whole one, compressed
    kDamagedData,  // a record fails its checksum
    kDamagedLength,
    kCut,
    kNoExample,  // a record that is whole and nothing that can be parsed
    kLines,      // text
  };
  State state = State::kWhole;
  std::shared_ptr<const std::string> bytes;
};

// The same ones in every run of a program.
const std::vector<PooledShard>& ShardPool();

}  // namespace penstock::test
