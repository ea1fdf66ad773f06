// Fault 35, of what one pipeline or caller may take from the others.
#include "base/memory_account.h"

#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "base/arena.h"
#include "base/large_charge.h"
#include "base/memory_block.h"
#include "base/memory_charge.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::shared_ptr<MemoryAccount> Account(uint64_t bytes_max,
                                       std::shared_ptr<MemoryAccount> whole = nullptr) {
  MemoryAccount::Options options;
  options.name = "pipeline p";
  options.bytes_max = bytes_max;
  options.limit = "the limit";
  return MemoryAccount::Create(std::move(options), std::move(whole));
}

std::string RefusalOf(MemoryAccount& account, uint64_t bytes) {
  try {
    account.Take(bytes);
  } catch (const MemoryLimitError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("an account refuses what is beyond its limit, and takes nothing then") {
  const auto account = Account(10 * kMiB);
  account->Take(6 * kMiB);
  CHECK(RefusalOf(*account, 5 * kMiB) ==
        "pipeline p takes more memory than the limit: 6.0 MiB in use by what is computed and kept, "
        "and 5.0 MiB more asked for > 10.0 MiB (the limit)");
  CHECK(RefusalOf(*account, UINT64_MAX) != "");
  CHECK(account->taken() == 6 * kMiB);
  account->Take(4 * kMiB);
  CHECK(RefusalOf(*account, 1) != "");
  account->GiveBack(10 * kMiB);
  CHECK(account->taken() == 0);
}

TEST_CASE("several accounts share the whole one, which none of them is charged beyond") {
  const auto whole = Account(10 * kMiB);
  const auto a = Account(8 * kMiB, whole), b = Account(8 * kMiB, whole);
  a->Take(7 * kMiB);
  CHECK(RefusalOf(*b, 4 * kMiB) != "");
  CHECK(b->taken() == 0);
  CHECK(whole->taken() == 7 * kMiB);
  CHECK(RefusalOf(*a, 2 * kMiB) != "");
  CHECK(whole->taken() == 7 * kMiB);
}

TEST_CASE("what is only kept where there is room leaves some to what is computed") {
  for (const auto& [limit, kept] : {std::pair(8, 4), std::pair(1024, 640), std::pair(8192, 7168)}) {
    const auto account = Account(limit * kMiB);
    CHECK(account->HasRoomToKeep(kept * kMiB));
    CHECK_FALSE(account->HasRoomToKeep(kept * kMiB + 1));
    account->Take(kept * kMiB);
    CHECK_FALSE(account->HasRoomToKeep(1));
  }
}

TEST_CASE("the guard is asked once for each further part that is taken, also when it grows again") {
  int asked = 0;
  bool refuses = false;
  MemoryAccount::Options options;
  options.guard = [&](uint64_t) -> std::optional<std::string> {
    ++asked;
    return refuses ? std::optional<std::string>("nothing is left") : std::nullopt;
  };
  const auto account = MemoryAccount::Create(std::move(options));
  for (int i = 0; i < 64; ++i) account->Take(kMiB);
  CHECK(asked == 0);
  account->Take(kMiB);
  CHECK(asked == 1);
  account->GiveBack(65 * kMiB);
  account->Take(65 * kMiB);
  CHECK(asked == 2);
  refuses = true;
  CHECK(RefusalOf(*account, 65 * kMiB) == "nothing is left");
  CHECK(account->taken() == 65 * kMiB);
}

TEST_CASE("a block is charged to the account of the thread that asks, and given back from any") {
  const auto account = Account(64 * kMiB);
  MemoryBlock small, huge;
  {
    const MemoryAccount::Scope charged(account.get());
    small = AllocateMemoryBlock(1000);
    CHECK(account->taken() == 1024);
    huge = AllocateMemoryBlock(3 * kMiB);
    CHECK(account->taken() == 4 * kMiB + 1024);
    CHECK_THROWS_AS(AllocateMemoryBlock(61 * kMiB), MemoryLimitError);
    CHECK_THROWS_AS(AllocateMemoryBlock(SIZE_MAX - 10), std::bad_alloc);
  }
  CHECK(reinterpret_cast<uintptr_t>(huge.get()) % kHugePageBytes == 0);
  // All of it is the owner's to write.
  std::fill_n(small.get(), 1000, uint8_t{0xff});
  std::fill_n(huge.get(), 3 * kMiB, uint8_t{0xff});
  const MemoryBlock nobodys = AllocateMemoryBlock(kMiB);
  std::thread([&] {
    small.reset();
    huge.reset();
  }).join();
  CHECK(account->taken() == 0);
}

TEST_CASE("a block keeps its account alive") {
  MemoryBlock block;
  std::weak_ptr<MemoryAccount> left;
  {
    const auto account = Account(kMiB);
    left = account;
    const MemoryAccount::Scope charged(account.get());
    block = AllocateMemoryBlock(100);
  }
  CHECK_FALSE(left.expired());
  block.reset();
  CHECK(left.expired());
}

TEST_CASE("an arena that met the limit can be used again") {
  const auto account = Account(4 * kMiB);
  const MemoryAccount::Scope charged(account.get());
  Arena arena;
  arena.Allocate(kMiB);
  arena.Allocate(kMiB);
  CHECK_THROWS_AS(arena.Allocate(3 * kMiB), MemoryLimitError);
  arena.Reset();
  CHECK(arena.Allocate(kMiB) != nullptr);
}

TEST_CASE("a charge takes what a list grows by, and gives it back with itself") {
  const auto account = Account(kMiB);
  const MemoryAccount::Scope charged(account.get());
  {
    MemoryCharge charge;
    std::vector<uint64_t> list;
    for (int i = 0; i < 1000; ++i) {
      charge.MakeRoom(list, 1);
      list.push_back(i);
    }
    CHECK(account->taken() == list.capacity() * sizeof(uint64_t));
    CHECK_THROWS_AS(charge.MakeRoom(list, 1 << 20), MemoryLimitError);
    CHECK(list.size() == 1000);
    charge.Add(100);
    charge.Remove(100);
    CHECK(account->taken() == list.capacity() * sizeof(uint64_t));
  }
  CHECK(account->taken() == 0);
}

TEST_CASE("what a row's lists take is charged where it is large, and given back with the charge") {
  const auto account = Account(8 * kMiB);
  const MemoryAccount::Scope charged(account.get());
  {
    LargeCharge charge;
    std::vector<uint64_t> list;
    charge.MakeRoom(list, 1000);
    CHECK(account->taken() == 0);
    charge.MakeRoom(list, kMiB / sizeof(uint64_t) * 2);
    CHECK(account->taken() == list.capacity() * sizeof(uint64_t));
    charge.Add(100);
    CHECK(account->taken() == list.capacity() * sizeof(uint64_t) + 100);
    CHECK_THROWS_AS(charge.MakeRoom(list, 2 * kMiB), MemoryLimitError);
  }
  CHECK(account->taken() == 0);
}

}  // namespace
}  // namespace penstock::test
