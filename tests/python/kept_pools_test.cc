// Pools that outlive a pipeline: who gets which, how long they stay, and when their processes end.
#include "server/python/kept_pools.h"

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/tick_clock.h"
#include "tests/python/shell_worker.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock::python {
namespace {

using penstock::test::ScratchFolder;
using test::kHangs;
using test::NewPool;
using test::ShellFunction;
using test::Use;

bool EndsSoon(PoolCore& pool) {
  const auto until = std::chrono::steady_clock::now() + kHangs;
  while (!pool.is_over()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST_CASE("Those who ask for the same key have one pool, as long as one of them uses it") {
  const ScratchFolder folder;
  int made = 0;
  const auto make = [&] {
    ++made;
    return NewPool(ShellFunction(folder));
  };
  const auto first = TakePool("a", make);
  const auto second = TakePool("a", make);
  const auto other = TakePool("b", make);
  CHECK(first == second);
  CHECK(first != other);
  CHECK(made == 2);
  GivePoolBack(first);
  CHECK_FALSE(first->is_over());
  CHECK(TakePool("a", make) == first);
  GivePoolBack(first);
  GivePoolBack(second);
  // It has no worker, so that nothing is worth being kept.
  CHECK(first->is_over());
  GivePoolBack(other);
}

TEST_CASE("A pool with workers is kept for who comes next, with its processes") {
  const ScratchFolder folder;
  const auto make = [&] { return NewPool(ShellFunction(folder)); };
  const auto pool = TakePool("kept", make);
  REQUIRE(Use(*pool).ok());
  const AwayWorkers before = pool->Workers();
  CHECK(before.workers == 1);
  CHECK(before.rows == 3);
  GivePoolBack(pool);
  CHECK_FALSE(pool->is_over());
  REQUIRE(TakePool("kept", make) == pool);
  REQUIRE(Use(*pool).ok());
  const AwayWorkers after = pool->Workers();
  CHECK(after.started == before.started);
  CHECK(after.deaths == 0);
  CHECK(after.rows == 6);
  CHECK(after.busy_ns > before.busy_ns);
  CHECK(after.oldest_row_ns == 0);
  pool->Close();
}

TEST_CASE("A pool that nobody asks for closes itself, and who comes then gets another one") {
  const ScratchFolder folder;
  const auto make = [&] { return NewPool(ShellFunction(folder)); };
  const auto pool = TakePool("rests", make);
  REQUIRE(Use(*pool).ok());
  GivePoolBack(pool);
  // In the place of ten seconds.
  REQUIRE(pool->Rest(MonotonicNanos()));
  CHECK(EndsSoon(*pool));
  const auto next = TakePool("rests", make);
  CHECK(next != pool);
  GivePoolBack(next);
}

TEST_CASE("Of many pools that nobody uses the last ones are kept") {
  const ScratchFolder folder;
  const auto make = [&] { return NewPool(ShellFunction(folder)); };
  std::vector<std::shared_ptr<PoolCore>> pools;
  for (size_t i = 0; i < kMaxKept + 2; ++i) {
    pools.push_back(TakePool(absl::StrCat("many ", i), make));
    REQUIRE(Use(*pools.back()).ok());
  }
  for (const auto& pool : pools) GivePoolBack(pool);
  for (size_t i = 0; i < pools.size(); ++i) CHECK(pools[i]->is_over() == (i < 2));
  for (const auto& pool : pools) pool->Close();
}

// A shell that says that it is ready again where it gets another configuration; how many have been
// started stands in the folder.
FunctionFile LentFunction(const ScratchFolder& folder) {
  std::string zeros;
  for (int i = 0; i < 31; ++i) zeros += "\\0";
  return ShellFunction(folder,
                       absl::StrCat("if [ $(head -c 1 m$$ | od -An -tu1) = 3 ]; then printf '\\020",
                                    zeros, "' >&6; continue; fi"),
                       "mkdir started$$");
}

int Started(const ScratchFolder& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    count += entry.path().filename().string().starts_with("started") ? 1 : 0;
  return count;
}

TEST_CASE("The worker of a pool that describes a function goes to the next pool of it") {
  const ScratchFolder folder;
  const FunctionFile function = LentFunction(folder);
  const auto lender = TakePool("describes", [&] { return NewPool(function, {.lends = true}); });
  REQUIRE(Use(*lender, 1).ok());
  GivePoolBack(lender);
  CHECK_FALSE(lender->is_over());
  const auto next = NewPool(function, {.workers = 2});
  CHECK(Use(*next, 4).ok());
  CHECK(Started(folder) == 1);
  CHECK(next->Workers().started == 1);
  CHECK(next->Workers().deaths == 0);
  CHECK_FALSE(lender->is_over());
  // There is no other one to be had.
  const auto third = NewPool(function);
  CHECK(Use(*third).ok());
  CHECK(Started(folder) == 2);
  third->Close();
  next->Close();
  CHECK(EndsSoon(*lender));
}

TEST_CASE("Who needs a worker waits a moment for one that is still in use") {
  const ScratchFolder folder;
  const FunctionFile function = LentFunction(folder);
  // A stopped machine may take longer than that moment: then it is tried anew.
  for (int tries = 0; tries < 20; ++tries) {
    const auto lender =
        TakePool(absl::StrCat("ends ", tries), [&] { return NewPool(function, {.lends = true}); });
    REQUIRE(Use(*lender, 1).ok());
    const int before = Started(folder);
    const auto next = NewPool(function);
    std::future<absl::Status> used = std::async(std::launch::async, [&] { return Use(*next); });
    // It has begun to wait, or will.
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    GivePoolBack(lender);
    CHECK(used.get().ok());
    const bool is_borrowed = Started(folder) == before;
    next->Close();
    lender->Close();
    if (is_borrowed) return;
  }
  FAIL("no worker was waited for");
}

TEST_CASE("Who has lent a worker is kept beyond its own time") {
  const ScratchFolder folder;
  const FunctionFile function = LentFunction(folder);
  // On a busy machine that time may be over before the worker is lent: then it is tried anew.
  for (int64_t rest_ms = 100; rest_ms < 20'000; rest_ms *= 2) {
    const auto lender = TakePool(absl::StrCat("rests ", rest_ms),
                                 [&] { return NewPool(function, {.lends = true}); });
    REQUIRE(Use(*lender, 1).ok());
    const int before = Started(folder);
    GivePoolBack(lender);
    const uint64_t until_ns = MonotonicNanos() + static_cast<uint64_t>(rest_ms) * 1'000'000;
    REQUIRE(lender->Rest(until_ns));
    const auto next = NewPool(function);
    REQUIRE(Use(*next).ok());
    const bool is_borrowed = Started(folder) == before;
    if (is_borrowed) {
      while (MonotonicNanos() < until_ns + 100'000'000)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      CHECK(Use(*next).ok());
      CHECK(next->Workers().deaths == 0);
      CHECK_FALSE(lender->is_over());
    }
    next->Close();
    if (is_borrowed) return;
  }
  FAIL("no worker was borrowed");
}

TEST_CASE("A worker that a pool has borrowed goes on to the next one") {
  const ScratchFolder folder;
  const FunctionFile function = LentFunction(folder);
  std::vector<std::shared_ptr<PoolCore>> lenders;
  for (const char* const key : {"describes it", "describes another", "describes a third"}) {
    lenders.push_back(TakePool(key, [&] { return NewPool(function, {.lends = true}); }));
    REQUIRE(Use(*lenders.back(), 1).ok());
    CHECK(Started(folder) == 1);
    GivePoolBack(lenders.back());
  }
  const auto last = NewPool(function);
  CHECK(Use(*last).ok());
  CHECK(Started(folder) == 1);
  CHECK(last->Workers().deaths == 0);
  for (const auto& lender : lenders) CHECK_FALSE(lender->is_over());
  last->Close();
  for (const auto& lender : lenders) CHECK(EndsSoon(*lender));
}

TEST_CASE("A worker goes to no other function, and from nobody who uses it") {
  const ScratchFolder folder;
  const FunctionFile function = LentFunction(folder);
  const auto lender = TakePool("in use", [&] { return NewPool(function, {.lends = true}); });
  REQUIRE(Use(*lender, 1).ok());
  const auto while_in_use = NewPool(function);
  CHECK(Use(*while_in_use).ok());
  CHECK(Started(folder) == 2);
  while_in_use->Close();
  GivePoolBack(lender);
  const auto other = NewPool(LentFunction(folder));
  CHECK(Use(*other).ok());
  CHECK(Started(folder) == 3);
  other->Close();
  const auto of_more_threads = NewPool(function, {.threads = 2});
  CHECK(Use(*of_more_threads).ok());
  CHECK(Started(folder) == 4);
  of_more_threads->Close();
  const auto replaced = NewPool(function, {.max_rows_per_worker = 1});
  CHECK(Use(*replaced, 1).ok());
  CHECK(Started(folder) == 5);
  replaced->Close();
  lender->Close();
}

TEST_CASE("A worker that ends as it is handed over is replaced") {
  const ScratchFolder folder;
  const FunctionFile function =
      ShellFunction(folder, "[ $(head -c 1 m$$ | od -An -tu1) != 3 ] || kill -9 $$");
  const auto lender = TakePool("dies", [&] { return NewPool(function, {.lends = true}); });
  REQUIRE(Use(*lender, 1).ok());
  GivePoolBack(lender);
  const auto next = NewPool(function);
  CHECK(Use(*next).ok());
  CHECK(next->Workers().started == 2);
  CHECK(next->Workers().deaths == 1);
  next->Close();
}

TEST_CASE("A key tells what workers are told and how they are limited") {
  const ScratchFolder folder;
  const FunctionFile function = ShellFunction(folder);
  const PoolOptions options = {.name = "f", .configuration = "{}", .workers = 2};
  const std::string key = PoolKey(function, options);
  CHECK(PoolKey(function, options) == key);
  CHECK(PoolKey(ShellFunction(folder), options) != key);
  PoolOptions other = options;
  other.workers = 3;
  CHECK(PoolKey(function, other) != key);
  other = options;
  other.chooses = true;
  CHECK(PoolKey(function, other) != key);
  other = options;
  other.configuration = "{ }";
  CHECK(PoolKey(function, other) != key);
}

TEST_CASE("A key tells whose function it is: users share no workers, whatever else is the same") {
  FunctionFile function;
  function.user = 1000;
  function.path = "/proc/1/fd/5";
  function.code = "abc";
  const PoolOptions options = {.name = "f", .configuration = "{}"};
  const std::string key = PoolKey(function, options);
  CHECK(PoolKey(function, options) == key);
  FunctionFile other = function;
  other.user = 1001;
  CHECK(PoolKey(other, options) != key);
  other = function;
  other.path = "/proc/2/fd/5";
  CHECK(PoolKey(other, options) != key);
  other = function;
  other.code = "abd";
  CHECK(PoolKey(other, options) != key);
}

}  // namespace
}  // namespace penstock::python
