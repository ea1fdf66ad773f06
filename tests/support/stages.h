// Specs in short: "range { stop: 9 } | zip { (| range { stop: 3 } | repeat {} |) } | batch {
// batch_size: 2 }", where each part is a stage and "(| … |)" is an `input` of stages.
#pragma once

#include <algorithm>
#include <string>

namespace penstock::test {

inline std::string Stages(std::string text) {
  const auto wrap = [](const std::string& parts) {
    std::string out;
    for (size_t begin = 0; begin <= parts.size();) {
      const size_t end = std::min(parts.find(" | ", begin), parts.size());
      out += "stage { " + parts.substr(begin, end - begin) + " } ";
      begin = end + 3;
    }
    return out;
  };
  for (size_t begin; (begin = text.rfind("(|")) != std::string::npos;) {
    const size_t end = text.find("|)", begin);
    text = text.substr(0, begin) + "input { " + wrap(text.substr(begin + 2, end - begin - 2)) +
           "}" + text.substr(end + 2);
  }
  return wrap(text);
}

}  // namespace penstock::test
