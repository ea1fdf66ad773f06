// A pipeline over a shard that counts, and waiting for what it does in its own time.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "penstock/v1/pipeline.pb.h"
#include "server/service/state/text_proto.h"
#include "tests/support/catch.h"

namespace penstock::test {

// Batches of four of the numbers of the shard `path`; `more`: fields and stages behind them.
inline v1::PipelineSpec CountingSpec(const std::string& path, const std::string& name,
                                     const std::string& more = "") {
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto("stage { tfrecord { files: '" + path +
                             "' } } stage { parse_example { feature { key: 'n' int64 {} } } }"
                             " stage { batch { batch_size: 4 } } " +
                             more,
                         "spec", &spec)
              .ok());
  spec.set_name(name);
  return spec;
}

template <typename Condition>
void Until(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace penstock::test
