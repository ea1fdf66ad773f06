#include "base/stop_flag.h"

#include <atomic>
#include <thread>

#include "tests/support/catch.h"

namespace penstock::test {
namespace {

TEST_CASE("a thread stops by the flag of its innermost scope") {
  std::atomic<bool> outer{false}, inner{true};
  CheckStop();
  const StopFlag::Scope first(&outer);
  CheckStop();
  {
    const StopFlag::Scope second(&inner);
    CHECK(IsStopped());
    CHECK_THROWS_AS(CheckStop(), Stopped);
    const StopFlag::Scope none(nullptr);
    CheckStop();
  }
  CheckStop();
  outer.store(true);
  CHECK_THROWS_AS(CheckStop(), Stopped);
  bool other = true;
  std::thread([&] { other = IsStopped(); }).join();
  CHECK_FALSE(other);
}

TEST_CASE("a loop looks once in so much work") {
  std::atomic<bool> stop{true};
  const StopFlag::Scope scope(&stop);
  StopLook look;
  look.Did(StopLook::kWork - 1);
  CHECK_THROWS_AS(look.Did(1), Stopped);
  look.Did(StopLook::kWork - 1);
}

}  // namespace
}  // namespace penstock::test
