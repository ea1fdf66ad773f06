// `SPEC`, `--files`, `--set`, `--workers`, `--numa-node` and `--name`, which several commands take.
//
// Threads: one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/grammar/command_line.h"
#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

struct SpecArguments {
  std::string path;
  std::vector<std::string> files;
  std::vector<std::string> constants;
  std::string name;
  int workers = 0;
  std::optional<int> numa_node;

  // `arguments` outlives the parsing. Malformed ones are usage errors.
  static void Add(Command command, SpecArguments* arguments);

  // The file's text and the overrides, for the daemon to apply; relative paths start from the
  // current directory.
  absl::StatusOr<v1::SpecSource> Read() const;

  // The overrides alone, and the current directory.
  absl::Status AddOverrides(v1::SpecSource* source) const;
};

}  // namespace penstock::ctl
