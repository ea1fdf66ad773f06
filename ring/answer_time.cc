#include "ring/answer_time.h"

#include <cstdlib>
#include <string>

namespace penstock::ring {
namespace {

constexpr char kVariable[] = "PENSTOCK_ANSWER_SECONDS";
constexpr double kLeastSeconds = 0.1;
constexpr double kMostSeconds = 86400;

}  // namespace

Status AnswerTime(uint64_t default_ns, uint64_t* ns) {
  *ns = default_ns;
  const char* const text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0') return {};
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds >= kLeastSeconds && seconds <= kMostSeconds)) {
    return {Code::kInvalidArgument,
            std::string(kVariable) + " is a number of seconds from 0.1 to 86400: \"" + text + "\""};
  }
  *ns = static_cast<uint64_t>(seconds * 1e9);
  return {};
}

}  // namespace penstock::ring
