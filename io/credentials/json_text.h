// A text in an answer or a file of JSON.
//
// Threads:  any; no state.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace penstock {

// The field of that name; "" where there is no object, no such field, or something else in it than
// text.
inline std::string JsonText(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace penstock
