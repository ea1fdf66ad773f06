// The `write` command: a user's own data as TFRecords of tf.train.Example.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// Adds `write OUT --files GLOB...` and `write OUT --jsonl FILE`. Parsing a command line that asks
// for it runs it: its exit code is 0, or 1 after a message on stderr.
void AddWrite(Command root);

// One record a file: the features `name` (the path as matched) and `data` (its bytes). Returns the
// number of records.
absl::StatusOr<uint64_t> WriteFiles(const std::string& out,
                                    const std::vector<std::string>& patterns);

struct JsonLinesOptions {
  std::string out = {};
  std::string path = {};
  // Which features to write; empty: all.
  std::vector<std::string> fields = {};
  // 0: one file of the name `out`; else as many of its name and their numbers (shards.h), of
  // consecutive records.
  int num_shards = 0;
};

// One record a line, which holds a JSON object: each field becomes a feature of its name. The name
// of a field of an inner object begins with the object's own and a dot ("user.name"). Strings
// become bytes, integers and booleans int64, numbers of which any line writes one with a fraction
// or exponent float; an array becomes a list. Blank lines are passed over. Errors name the line and
// the field. Returns the number of records.
absl::StatusOr<uint64_t> WriteJsonLines(const JsonLinesOptions& options);

}  // namespace penstock::ctl
