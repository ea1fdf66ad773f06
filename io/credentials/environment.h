// Variables, the home folder and authorities as the sources of credentials see them, so that a test can put its own in their place.
//
// Threads:  any.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {

struct Environment {
  // "" where it is not set.
  std::function<std::string(const std::string& name)> variable;
  // A file of the user's own, up to 1 MiB.
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
  // A file of certificates (PEM) by which servers of credentials are known, as HttpRequest has it.
  std::string authorities;

  std::string operator()(const std::string& name) const { return variable(name); }
  // "~" is $HOME.
  std::string InHome(absl::string_view path) const;
};

// The process' own.
Environment ProcessEnvironment();

}  // namespace penstock
