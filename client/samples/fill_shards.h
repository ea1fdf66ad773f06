// Records for the shards of samples, made on all processors. On a terminal a bar shows how far that
// is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/ctl/files/shards.h"

namespace penstock {
class ExampleBuilder;
}

namespace penstock::samples {

// Record i goes to shard i % shards.size(), and those of one shard are made in order. `make` fills
// an empty Example with record `ordinal`; several threads call it. Returns its first error or the
// first of writing, and closes the shards where there is none. `name` stands behind the bar.
absl::Status FillShards(
    ctl::ShardSet& shards, int64_t records, const std::string& name,
    const std::function<absl::Status(int64_t ordinal, ExampleBuilder* example)>& make);

}  // namespace penstock::samples
