#include "server/service/watch/log_limiter.h"

#include <string>

#include "tests/support/catch.h"

namespace penstock {
namespace {

constexpr int64_t kStart = 5'000'000'000;

TEST_CASE("lines that differ in numbers only have one cause") {
  LogLimiter limiter(2);
  CHECK(limiter.Judge("refused uid 17 (1 so far)", kStart).write);
  CHECK(limiter.Judge("refused uid 4711 (2 so far)", kStart).write);
  CHECK_FALSE(limiter.Judge("refused uid 9 (30 so far)", kStart).write);
  CHECK(limiter.Judge("refused gid 9 (30 so far)", kStart).write);
}

TEST_CASE("after the window the cause is written again, with the number that was left out") {
  LogLimiter limiter(1);
  CHECK(limiter.Judge("x 1", kStart).write);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(limiter.Judge("x 2", kStart + i).write);
  CHECK_FALSE(limiter.Judge("x 3", kStart + LogLimiter::kWindowNs - 1).write);
  const LogLimiter::Verdict verdict = limiter.Judge("x 4", kStart + LogLimiter::kWindowNs);
  CHECK(verdict.write);
  CHECK(verdict.left_out == 6);
  CHECK(limiter.Judge("x 5", kStart + 2 * LogLimiter::kWindowNs).left_out == 0);
}

TEST_CASE("beyond the limit of causes the oldest is forgotten") {
  LogLimiter limiter(1);
  const auto line = [](size_t i) { return std::string(i + 1, 'x'); };
  for (size_t i = 0; i <= LogLimiter::kMaxCauses; ++i)
    CHECK(limiter.Judge(line(i), kStart + static_cast<int64_t>(i)).write);
  CHECK_FALSE(limiter.Judge(line(1), kStart).write);
  CHECK(limiter.Judge(line(0), kStart).write);
}

}  // namespace
}  // namespace penstock
