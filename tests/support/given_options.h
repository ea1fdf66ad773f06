// The options of a test's program: `PROGRAM SOCKET [--OPTION VALUE]...`.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

namespace penstock {

class GivenOptions {
 public:
  GivenOptions(int argc, char** argv) {
    for (int i = 2; i + 1 < argc; i += 2) given_[argv[i]] = argv[i + 1];
  }
  std::string Text(const std::string& name, const std::string& fallback = "") const {
    const auto found = given_.find(name);
    return found == given_.end() ? fallback : found->second;
  }
  uint64_t Number(const std::string& name, uint64_t fallback) const {
    const auto found = given_.find(name);
    return found == given_.end() ? fallback : std::strtoull(found->second.c_str(), nullptr, 10);
  }

 private:
  std::map<std::string, std::string> given_;
};

}  // namespace penstock
