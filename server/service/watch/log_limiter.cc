#include "server/service/watch/log_limiter.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace penstock {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t CauseOf(std::string_view line) {
  std::string text;
  text.reserve(line.size());
  for (const char c : line) {
    if (!IsDigit(c)) {
      text += c;
    } else if (text.empty() || text.back() != '0') {
      text += '0';
    }
  }
  return std::hash<std::string>()(text);
}

}  // namespace

LogLimiter::Verdict LogLimiter::Judge(std::string_view line, int64_t now_ns) {
  const size_t key = CauseOf(line);
  auto found = causes_.find(key);
  if (found == causes_.end()) {
    if (causes_.size() >= kMaxCauses) {
      causes_.erase(std::min_element(causes_.begin(), causes_.end(), [](auto& a, auto& b) {
        return a.second.began_ns < b.second.began_ns;
      }));
    }
    found = causes_.emplace(key, Cause{now_ns}).first;
  }
  Cause& cause = found->second;
  if (now_ns - cause.began_ns >= kWindowNs) {
    cause.began_ns = now_ns;
    cause.written = 0;
  }
  if (cause.written >= lines_per_cause_) {
    ++cause.left_out;
    return {};
  }
  ++cause.written;
  return {true, std::exchange(cause.left_out, 0)};
}

}  // namespace penstock
