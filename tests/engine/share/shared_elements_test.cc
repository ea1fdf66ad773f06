#include "server/engine/share/shared_elements.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace penstock::test {
namespace {

using Found = SharedElements::Found;
using Row = SharedElements::Row;

constexpr absl::Duration kHangs = absl::Seconds(60);

// One member, as a worker sees it.
class Member {
 public:
  Member(SharedElements& elements, SharedElements::Group group, std::vector<uint32_t> files = {0})
      : elements_(elements), group_(group), number_(*elements.Join(group, files)) {}
  ~Member() {
    if (!left_) Leave();
  }
  void Leave() {
    Release();
    elements_.Leave(group_, number_);
    left_ = true;
  }

  Row Find(uint64_t offset, uint32_t file = 0, size_t mine_max = 1) {
    Row row;
    row.file = file;
    row.offset = offset;
    elements_.Find(group_, number_, {&row, 1}, mine_max);
    if (row.found == Found::kHit) held_.push_back(row.element);
    return row;
  }
  bool Put(Row* row, const std::string& bytes) {
    row->length = static_cast<uint32_t>(bytes.size());
    uint8_t* const cell = elements_.Room(group_, row);
    if (cell == nullptr) return false;
    std::memcpy(cell, bytes.data(), bytes.size());
    elements_.Put(group_, number_, {row, 1});
    held_.push_back(row->element);
    return true;
  }
  // Looks for it, and makes it if nobody has: whether it was there.
  bool Take(uint64_t offset, size_t bytes = 1000) {
    Row row = Find(offset);
    const std::string expected(bytes, static_cast<char>('a' + offset % 26));
    const bool was_there = row.found == Found::kHit;
    if (was_there) {
      CHECK(std::string(reinterpret_cast<const char*>(row.data), row.length) == expected);
    } else if (row.found == Found::kMine) {
      Put(&row, expected);
    }
    Release();
    return was_there;
  }
  void Release() {
    elements_.Release(held_);
    held_.clear();
  }

  SharedElements& elements_;
  const SharedElements::Group group_;
  const int number_;
  std::vector<SharedElement*> held_;
  bool left_ = false;
};

TEST_CASE("An element is made by the first, taken by the others, and gone when all have it") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  {
    Member a(elements, group), b(elements, group), c(elements, group);
    Row row = a.Find(7);
    REQUIRE(row.found == Found::kMine);
    CHECK(b.Find(7).found == Found::kOpen);
    REQUIRE(a.Put(&row, "bytes"));
    const Row of_b = b.Find(7);
    REQUIRE(of_b.found == Found::kHit);
    CHECK(std::string(reinterpret_cast<const char*>(of_b.data), of_b.length) == "bytes");
    CHECK(elements.HeldBy(group).elements == 1);
    const Row of_c = c.Find(7);
    REQUIRE(of_c.found == Found::kHit);
    // Nobody else will want it, but these three still look at it.
    CHECK(elements.HeldBy(group).elements == 0);
    CHECK(std::string(reinterpret_cast<const char*>(of_c.data), of_c.length) == "bytes");
    Row anew = a.Find(7);
    CHECK(anew.found == Found::kMine);
    elements.Drop({&anew, 1});
  }
}

TEST_CASE("Who comes while an element is made waits for it, and makes it if that fails") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group);
  for (const bool fails : {false, true}) {
    INFO(fails);
    Row row = a.Find(fails);
    REQUIRE(row.found == Found::kMine);
    Row open = b.Find(fails);
    REQUIRE(open.found == Found::kOpen);
    CHECK_FALSE(elements.Wait(group, {&open, 1}, absl::Milliseconds(1)));
    bool came = false;
    std::thread waits([&] { came = elements.Wait(group, {&open, 1}, kHangs); });
    if (fails) {
      elements.Drop({&row, 1});
    } else {
      REQUIRE(a.Put(&row, "x"));
    }
    waits.join();
    CHECK(came);
    Row found = b.Find(fails);
    CHECK(found.found == (fails ? Found::kMine : Found::kHit));
    if (fails) elements.Drop({&found, 1});
    a.Release();
    b.Release();
  }
}

TEST_CASE("Only some rows of a block become the caller's, so that two share them out") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group);
  std::vector<Row> rows_of_a(6), rows_of_b(6);
  for (uint64_t i = 0; i < 6; ++i) rows_of_a[i].offset = rows_of_b[i].offset = i;
  elements.Find(group, a.number_, absl::MakeSpan(rows_of_a), 4);
  elements.Find(group, b.number_, absl::MakeSpan(rows_of_b), 4);
  for (size_t i = 0; i < 6; ++i) {
    CHECK(rows_of_a[i].found == (i < 4 ? Found::kMine : Found::kOpen));
    CHECK(rows_of_b[i].found == (i < 4 ? Found::kOpen : Found::kMine));
  }
  elements.Drop(absl::MakeSpan(rows_of_a));
  elements.Drop(absl::MakeSpan(rows_of_b));
}

TEST_CASE("What only one member reads is not kept") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  Member a(elements, group, {0, 1}), b(elements, group, {1, 2});
  CHECK(a.Find(0, /*file=*/0).found == Found::kAlone);
  Row both = a.Find(0, /*file=*/1);
  CHECK(both.found == Found::kMine);
  CHECK(b.Find(0, /*file=*/2).found == Found::kAlone);
  elements.Drop({&both, 1});
  b.Leave();
  CHECK(a.Find(0, /*file=*/1).found == Found::kAlone);
}

TEST_CASE("A full window keeps what waits, and takes new elements as soon as there is room") {
  constexpr size_t kElement = 1000;
  constexpr size_t kWindow = 16;
  SharedElements elements(kWindow * (kElement + 64 + 24 + SharedElements::kElementOverhead));
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group);
  // a is three windows ahead.
  for (uint64_t i = 0; i < 3 * kWindow; ++i) CHECK_FALSE(a.Take(i));
  const uint64_t held = elements.HeldBy(group).elements;
  CHECK(held >= kWindow - 2);
  CHECK(held <= kWindow);
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kWindow; ++i) hits += b.Take(i);
  CHECK(hits == held);
  // There is room again.
  CHECK_FALSE(a.Take(1000));
  CHECK(b.Take(1000));
}

TEST_CASE("Nobody waits for what finds no room, and nothing large is kept") {
  constexpr size_t kWindow = 64'000;
  SharedElements elements(kWindow);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group);
  // The window is empty, but more than a quarter of it is too much for one. Again and again, as who
  // waits may come too late to wait.
  for (uint64_t i = 1000; i < 1020; ++i) {
    Row row = a.Find(i);
    REQUIRE(row.found == Found::kMine);
    Row open = b.Find(i);
    REQUIRE(open.found == Found::kOpen);
    std::atomic<bool> came = false, waits = false;
    std::thread waiting([&] {
      waits = true;
      came = elements.Wait(group, {&open, 1}, kHangs);
    });
    while (!waits) std::this_thread::yield();
    std::this_thread::yield();
    CHECK_FALSE(a.Put(&row, std::string(kWindow / 4 + 1, 'x')));
    CHECK(row.found == Found::kAlone);
    waiting.join();
    CHECK(came);
  }
  CHECK_FALSE(a.Take(1, kWindow / 5));
  CHECK(elements.HeldBy(group).elements == 1);
  // Full: what is new is each one's own, at once.
  for (uint64_t i = 2; i < 10; ++i) CHECK_FALSE(a.Take(i, kWindow / 5));
  CHECK(a.Find(100).found == Found::kAlone);
  CHECK(b.Find(100).found == Found::kAlone);
  CHECK(b.Find(1).found == Found::kHit);
}

TEST_CASE("What was made last is not stale, however much was made before") {
  constexpr size_t kWindow = 64;
  SharedElements elements(kWindow * 1344);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group);
  for (uint64_t i = 0; i < 10 * kWindow; ++i) {
    a.Take(i);
    CHECK(b.Take(i));
  }
  for (uint64_t i = 10 * kWindow; i < 12 * kWindow; ++i) a.Take(i);
  CHECK(b.Take(10 * kWindow));
}

TEST_CASE("Who has just come is waited for, though it has asked for nothing yet") {
  constexpr size_t kWindow = 64;
  SharedElements elements(kWindow * 1344);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group);
  for (uint64_t i = 0; i < 3 * kWindow; ++i) {
    a.Take(i);
    b.Take(i);
  }
  for (uint64_t i = 1000; i < 1000 + kWindow / 2; ++i) a.Take(i);
  Member c(elements, group);
  for (uint64_t i = 1000; i < 1000 + kWindow / 2; ++i) CHECK(b.Take(i));
  // Until the window is full, and something would have to give way.
  for (uint64_t i = 2000; i < 2000 + kWindow * 5 / 8; ++i) {
    a.Take(i);
    b.Take(i);
  }
  CHECK(c.Take(1000));
}

TEST_CASE("What nobody takes goes when the members have made some windows more") {
  constexpr size_t kWindow = 16;
  SharedElements elements(kWindow * 1344);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group);
  for (uint64_t i = 0; i < 20 * kWindow; ++i) a.Take(i);
  // Those of the beginning have given way to later ones.
  CHECK(b.Find(0).found != Found::kHit);
  uint64_t hits = 0;
  for (uint64_t i = 20 * kWindow; i-- > 14 * kWindow;) hits += b.Find(i, 0, 0).found == Found::kHit;
  CHECK(hits > 0);
}

TEST_CASE("Two go on sharing while a third asks for nothing") {
  constexpr size_t kWindow = 64;
  SharedElements elements(kWindow * 1344);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group), idle(elements, group);
  uint64_t hits = 0;
  for (uint64_t i = 0; i < 20 * kWindow; ++i) {
    a.Take(i);
    hits += b.Take(i);
  }
  CHECK(hits > 16 * kWindow);
  CHECK(elements.HeldBy(group).elements <= kWindow);
}

TEST_CASE("What waited for a member alone goes with it") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group), c(elements, group);
  for (uint64_t i = 0; i < 10; ++i) {
    a.Take(i);
    CHECK(b.Take(i));
  }
  CHECK(elements.HeldBy(group).elements == 10);
  c.Leave();
  CHECK(elements.HeldBy(group).elements == 0);
  a.Take(11);
  CHECK(elements.HeldBy(group).elements == 1);
  b.Leave();
  CHECK(elements.HeldBy(group).elements == 0);
}

TEST_CASE("Nothing is kept for one who is alone, whoever made it") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  Member a(elements, group);
  {
    Member b(elements, group);
    b.Take(0);
    CHECK(elements.HeldBy(group).elements == 1);
  }
  CHECK(elements.HeldBy(group).elements == 0);
  // The other one may leave while an element is made.
  Member b(elements, group);
  Row row = a.Find(1);
  REQUIRE(row.found == Found::kMine);
  b.Leave();
  REQUIRE(a.Put(&row, "late"));
  CHECK(elements.HeldBy(group).elements == 0);
}

TEST_CASE("What one has taken who has left, another one of its number has not") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  Member a(elements, group), b(elements, group), c(elements, group);
  a.Take(0);
  CHECK(b.Take(0));
  b.Leave();
  Member d(elements, group);
  REQUIRE(d.number_ == b.number_);
  CHECK(c.Take(0));
  CHECK(d.Take(0));
}

TEST_CASE("Whoever looks at an element keeps its bytes, even when its group has gone") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  const int a = *elements.Join(group, {0}), b = *elements.Join(group, {0});
  Row row;
  row.length = 5;
  elements.Find(group, a, {&row, 1}, 1);
  REQUIRE(row.found == Found::kMine);
  uint8_t* const cell = elements.Room(group, &row);
  REQUIRE(cell != nullptr);
  std::memcpy(cell, "bytes", 5);
  elements.Put(group, a, {&row, 1});
  elements.Leave(group, b);
  elements.Leave(group, a);
  elements.RemoveGroup(group);
  CHECK(std::memcmp(row.data, "bytes", 5) == 0);
  elements.Release({&row.element, 1});
}

TEST_CASE("A group has 64 members at most") {
  SharedElements elements(1 << 20);
  const auto group = elements.AddGroup();
  for (int i = 0; i < SharedElements::kMaxMembers; ++i)
    REQUIRE(elements.Join(group, {0}) == std::optional<int>(i));
  CHECK_FALSE(elements.Join(group, {0}));
  elements.Leave(group, 17);
  CHECK(elements.Join(group, {0}) == std::optional<int>(17));
}

}  // namespace
}  // namespace penstock::test
