// The tokens of a model and their numbers.
//
// Threads:  constant after Read(); safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/text/parts/json_part.h"

namespace penstock::text {

class TokenTable {
 public:
  // An object of tokens with their ids. InvalidArgument where two tokens have one id.
  absl::Status Read(const JsonPart& json);
  absl::Status Add(std::string_view token, uint32_t id, const JsonPart& json);

  std::optional<uint32_t> IdOf(std::string_view token) const {
    const auto found = ids_.find(absl::string_view(token.data(), token.size()));
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }
  const std::string* TokenOf(uint32_t id) const {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? nullptr : &found->second;
  }
  const absl::flat_hash_map<std::string, uint32_t>& ids() const { return ids_; }

 private:
  absl::flat_hash_map<std::string, uint32_t> ids_;
  absl::flat_hash_map<uint32_t, std::string> tokens_;
};

}  // namespace penstock::text
