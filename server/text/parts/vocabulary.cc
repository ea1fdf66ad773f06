#include "server/text/parts/vocabulary.h"

#include "nlohmann/json.hpp"

namespace penstock::text {

absl::Status TokenTable::Add(std::string_view token, uint32_t id, const JsonPart& json) {
  ids_[std::string(token)] = id;
  if (!tokens_.emplace(id, token).second) return json.Refuse("another id than any other token has");
  return absl::OkStatus();
}

absl::Status TokenTable::Read(const JsonPart& json) {
  if (absl::Status status = json.MustBeObject(); !status.ok()) return status;
  ids_.reserve(json.value().size());
  tokens_.reserve(json.value().size());
  for (const auto& [token, value] : json.value().items()) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX)
      return json[token].Refuse("an integer from 0 to 2147483647");
    absl::Status status = Add(token, value.get<uint32_t>(), json[token]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::text
