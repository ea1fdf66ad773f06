// What is near, and what makes room, with a network that is the test's own.
#include "io/remote/remote_bytes.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

// Gives ranges when the test says so.
class HeldRanges final : public RangeSource {
 public:
  void Fetch(RangeJob job) override { jobs.push_back(std::move(job)); }
  int AtOnce() const override { return at_once; }
  void Passed(const RequestMaker&, const FetchCounters* counters) override {
    passed.push_back(counters);
  }
  void End(const absl::Status& status) {
    RangeJob job = std::move(jobs.front());
    jobs.erase(jobs.begin());
    job.done(status);
  }

  int at_once = kAtOnceMax;
  std::vector<RangeJob> jobs;
  std::vector<const FetchCounters*> passed;
};

class Object final : public RequestMaker {
 public:
  explicit Object(uint64_t size) { state_.size = size; }
  std::optional<absl::StatusOr<HttpRequest>> Make(uint64_t, uint64_t, bool,
                                                  std::function<void()>) override {
    return HttpRequest();
  }
  const ObjectState& state() const override { return state_; }
  const std::string& shown() const override { return shown_; }

 private:
  ObjectState state_;
  const std::string shown_ = "object";
};

uint64_t BytesOf(SpanPool& pool) {
  std::lock_guard<std::mutex> lock(pool.mutex());
  return pool.bytes();
}

TEST_CASE("what somebody asked for and could not have makes room again") {
  SpanPool pool(1 << 20);
  HeldRanges network;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(16 << 20), pool, network);
  int told = 0;
  // Two pieces: the first one comes, the second one fails.
  bytes->Want(0, 100, /*alone=*/true, nullptr, [](const absl::Status&) {});
  network.End(absl::OkStatus());
  bytes->Want(0, 500'000, /*alone=*/true, nullptr,
              [&told](const absl::Status& status) { told += !status.ok(); });
  REQUIRE(network.jobs.size() == 1);
  network.End(absl::UnavailableError("no"));
  CHECK(told == 1);
  std::vector<uint8_t> out(500'000);
  const auto read = bytes->Read(0, absl::MakeSpan(out));
  REQUIRE(read);
  CHECK(absl::IsUnavailable(read->status()));
  const uint64_t before = BytesOf(pool);
  CHECK(before > 0);
  // All of the memory for another one: what was asked for before may go.
  bytes->Want(8 << 20, 1 << 20, /*alone=*/true, nullptr, [](const absl::Status&) {});
  CHECK(BytesOf(pool) == 1 << 20);
  while (!network.jobs.empty()) network.End(absl::OkStatus());
}

TEST_CASE("of pieces that could not be had none is left behind") {
  SpanPool pool(64 << 20);
  HeldRanges network;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(64 << 20), pool, network);
  std::vector<uint8_t> out(20 << 20);
  bytes->Want(0, out.size(), /*alone=*/true, nullptr, [](const absl::Status&) {});
  REQUIRE(network.jobs.size() == 3);
  network.End(absl::OkStatus());
  network.End(absl::UnavailableError("no"));
  network.End(absl::UnavailableError("no"));
  REQUIRE(bytes->Has(0, out.size()));
  CHECK(!bytes->Read(0, absl::MakeSpan(out))->ok());
  CHECK(BytesOf(pool) == SpanPool::kBlockBytes);
  // Who asks again has it tried again.
  CHECK(!bytes->Has(0, out.size()));
}

TEST_CASE("what was given up before it was read makes room") {
  SpanPool pool(1 << 20);
  HeldRanges network;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(16 << 20), pool, network);
  const auto nothing = [](const absl::Status&) {};
  const int asker = 0;
  // Given up when it has come, when it is coming, and with all that somebody has asked for.
  const uint64_t here = bytes->Want(0, 200'000, /*alone=*/true, nullptr, nothing);
  network.End(absl::OkStatus());
  bytes->GiveUp(here);
  const uint64_t coming = bytes->Want(1 << 20, 200'000, /*alone=*/true, nullptr, nothing);
  bytes->GiveUp(coming);
  network.End(absl::OkStatus());
  bytes->Want(2 << 20, 200'000, /*alone=*/true, nullptr, nothing, &asker);
  bytes->Want(3 << 20, 200'000, /*alone=*/true, nullptr, nothing, &asker);
  network.End(absl::OkStatus());
  network.End(absl::OkStatus());
  bytes->GiveUpAll(&asker);
  // One that does not come holds nothing either.
  const uint64_t failed = bytes->Want(4 << 20, 200'000, /*alone=*/true, nullptr, nothing);
  bytes->GiveUp(failed);
  network.End(absl::UnavailableError("no"));
  CHECK(!bytes->Has(4 << 20, 200'000));
  // All of the memory for another one.
  bytes->Want(8 << 20, 1 << 20, /*alone=*/true, nullptr, nothing);
  CHECK(BytesOf(pool) == 1 << 20);
  network.End(absl::OkStatus());
  // Who gives up what others have asked for, too, takes nothing from them.
  bytes->Want(8 << 20, 1 << 20, /*alone=*/true, nullptr, nothing, &asker);
  bytes->GiveUpAll(&asker);
  bytes->WillNeed(12 << 20, 1000, nullptr);
  CHECK(network.jobs.empty());
  CHECK(bytes->Has(8 << 20, 1 << 20));
}

TEST_CASE("memory of any size is used again, so that its pages need not be cleared") {
  HeldRanges network;
  for (const uint64_t size : {uint64_t{8} << 20, uint64_t{3} << 20, (uint64_t{5} << 20) + 77}) {
    SpanPool pool(size);
    const auto bytes =
        std::make_shared<RemoteBytes>(std::make_shared<Object>(64 << 20), pool, network);
    std::vector<uint8_t> out(size);
    for (uint64_t i = 0; i < 3; ++i) {
      INFO(size << " " << i);
      const uint64_t offset = i * (16 << 20);
      bytes->Want(offset, size, /*alone=*/true, nullptr, [](const absl::Status&) {});
      REQUIRE(network.jobs.size() == 1);
      uint8_t* const memory = network.jobs[0].to.get();
      // It has what was written there for the one before.
      if (i > 0) CHECK(memory[size / 2] == 76 + i);
      memory[size / 2] = static_cast<uint8_t>(77 + i);
      network.End(absl::OkStatus());
      REQUIRE(bytes->Read(offset, absl::MakeSpan(out)));
    }
  }
}

TEST_CASE("who gives up what was forgotten takes no hold of who has asked for it since") {
  SpanPool pool(1 << 20);
  HeldRanges network;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(16 << 20), pool, network);
  const auto nothing = [](const absl::Status&) {};
  bytes->Want(0, 500'000, /*alone=*/true, nullptr, nothing);
  // The same bytes' end, which nobody reads.
  const uint64_t end = bytes->Want(400'000, 1000, /*alone=*/true, nullptr, nothing);
  network.End(absl::UnavailableError("no"));
  std::vector<uint8_t> out(100);
  REQUIRE(bytes->Read(0, absl::MakeSpan(out)));
  bytes->Want(0, 500'000, /*alone=*/true, nullptr, nothing);
  network.End(absl::OkStatus());
  bytes->GiveUp(end);
  // All of the memory for another one: what has been asked for stays until it is read.
  bytes->Want(8 << 20, 1 << 20, /*alone=*/true, nullptr, nothing);
  CHECK(bytes->Has(0, 500'000));
  REQUIRE(bytes->Read(0, absl::MakeSpan(out)));
  bytes->Want(12 << 20, 1 << 20, /*alone=*/true, nullptr, nothing);
  CHECK(!bytes->Has(0, 500'000));
  while (!network.jobs.empty()) network.End(absl::OkStatus());
}

TEST_CASE("of the first block what has come is read before the rest has") {
  SpanPool pool(64 << 20);
  HeldRanges network;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(64 << 20), pool, network);
  int told = 0;
  const auto tell = [&told](const absl::Status& status) { told += status.ok(); };
  bytes->Want(300'000, 100'000, /*alone=*/false, nullptr, tell);
  RangeJob first = network.jobs[0];
  REQUIRE(first.offset == SpanPool::kFirstBytes);
  REQUIRE(first.reached);
  const uint64_t until = 400'000 - first.offset;
  for (uint64_t i = 0; i < until; ++i) first.to.get()[i] = static_cast<uint8_t>(i);
  first.reached(until - 1);
  CHECK(told == 0);
  CHECK(!bytes->Has(300'000, 100'000));
  first.reached(until);
  CHECK(told == 1);
  std::vector<uint8_t> out(100'000);
  const auto read = bytes->Read(300'000, absl::MakeSpan(out));
  REQUIRE(read);
  REQUIRE(read->ok());
  CHECK(out[7] == static_cast<uint8_t>(300'007 - first.offset));
  CHECK(!bytes->Has(300'000, 100'001));
  // Who asks for what has come is told at once, and for more when that has come.
  bytes->Want(300'000, 1000, /*alone=*/false, nullptr, tell);
  CHECK(told == 2);
  bytes->Want(399'000, 2000, /*alone=*/false, nullptr, tell);
  CHECK(told == 2);
  network.jobs.erase(network.jobs.begin());
  first.done(absl::OkStatus());
  CHECK(told == 3);
  // Those behind it are told of when they are there.
  bytes->Want(9 << 20, 1000, /*alone=*/false, nullptr, tell);
  REQUIRE(!network.jobs.empty());
  for (const RangeJob& job : network.jobs) CHECK(!job.reached);
  while (!network.jobs.empty()) network.End(absl::OkStatus());
  CHECK(told == 4);
}

TEST_CASE("as much is asked for ahead as the requests ask for that bring more, a block at a time") {
  constexpr uint64_t kBlock = SpanPool::kBlockBytes;
  SpanPool pool(512 << 20);
  HeldRanges network;
  network.at_once = 3;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(uint64_t{1} << 30), pool, network);
  std::vector<uint8_t> out(1 << 20);
  uint64_t at = 0;
  const auto read_until = [&](uint64_t end) {
    for (; at < end; at += out.size()) {
      bytes->Want(at, out.size(), /*alone=*/false, nullptr, [](const absl::Status&) {});
      while (!bytes->Has(at, out.size())) {
        REQUIRE(!network.jobs.empty());
        network.End(absl::OkStatus());
      }
      REQUIRE(bytes->Read(at, absl::MakeSpan(out)));
      bytes->WillNeed(at + out.size(), 1 << 16, nullptr);
    }
  };
  const auto asked_to = [&] { return network.jobs.back().offset + network.jobs.back().bytes; };
  read_until(10 * kBlock);
  // Three, the one that is read, and what is left of the block where that ends.
  for (uint64_t block = 10; block < 20; ++block) {
    INFO(block);
    read_until(block * kBlock + (1 << 20));
    REQUIRE(!network.jobs.empty());
    CHECK(asked_to() >= (block + 3) * kBlock);
    CHECK(asked_to() <= (block + 6) * kBlock);
    CHECK(BytesOf(pool) <= 7 * kBlock);
  }
  // As soon as more of them bring more, more is asked for.
  network.at_once = 16;
  read_until(30 * kBlock);
  CHECK(asked_to() >= (30 + 15) * kBlock);
  while (!network.jobs.empty()) network.End(absl::OkStatus());
}

TEST_CASE("what lies in one block is lent, and stays when its span has gone") {
  constexpr uint64_t kBlock = SpanPool::kBlockBytes;
  SpanPool pool(32 << 20);
  HeldRanges network;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(256 << 20), pool, network);
  const auto bring = [&](uint64_t offset, uint64_t count, uint8_t value) {
    bytes->Want(offset, count, /*alone=*/true, nullptr, [](const absl::Status&) {});
    while (!network.jobs.empty()) {
      std::fill_n(network.jobs[0].to.get(), network.jobs[0].bytes, value);
      network.End(absl::OkStatus());
    }
  };
  bring(0, kBlock, 1);
  // Not here; across two spans; without room behind it for who loads whole vectors.
  CHECK(bytes->Lend(kBlock, 1000, 64) == nullptr);
  bring(kBlock, kBlock, 2);
  CHECK(bytes->Lend(kBlock - 500, 1000, 64) == nullptr);
  CHECK(bytes->Lend(kBlock - 1063, 1000, 64) == nullptr);
  CHECK(bytes->Lend(kBlock - 1064, 1000, 64) != nullptr);
  std::vector<std::shared_ptr<const uint8_t>> lent;
  lent.push_back(bytes->Lend(kBlock / 2, 100'000, 64));
  REQUIRE(lent[0] != nullptr);
  // All of the memory for others.
  for (uint64_t block = 2; block < 6; ++block) bring(block * kBlock, kBlock, 9);
  REQUIRE(!bytes->Has(kBlock / 2, 100'000));
  CHECK(std::count(lent[0].get(), lent[0].get() + 100'000, 1) == 100'000);
  // More than a sixteenth lives beyond what is near: no more is lent until that has gone.
  CHECK(bytes->Lend(5 * kBlock, 1000, 64) == nullptr);
  CHECK(bytes->Has(5 * kBlock, 1000));
  lent.clear();
  CHECK(bytes->Lend(5 * kBlock, 1000, 64) != nullptr);
}

TEST_CASE("what is fetched counts for who asked first") {
  SpanPool pool(1 << 20);
  HeldRanges network;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(16 << 20), pool, network);
  const auto counters = std::make_shared<FetchCounters>();
  bytes->Want(0, 100, /*alone=*/true, counters, [](const absl::Status&) {});
  bytes->WillNeed(1 << 20, 100, counters);
  REQUIRE(network.jobs.size() == 2);
  CHECK(network.jobs[0].counters == counters);
  CHECK(network.jobs[1].counters == counters);
  while (!network.jobs.empty()) network.End(absl::OkStatus());
}

TEST_CASE(
    "who has read an object from front to back has passed it, and who looks at its end has not") {
  SpanPool pool(64 << 20);
  HeldRanges network;
  const auto bytes =
      std::make_shared<RemoteBytes>(std::make_shared<Object>(600'000), pool, network);
  const auto counters = std::make_shared<FetchCounters>();
  const auto read = [&](uint64_t offset, size_t count, bool alone) {
    bytes->Want(offset, count, alone, counters, [](const absl::Status&) {});
    while (!network.jobs.empty()) network.End(absl::OkStatus());
    std::string out(count, '\0');
    const auto done =
        bytes->Read(offset, {reinterpret_cast<uint8_t*>(out.data()), count}, counters.get());
    REQUIRE(done);
    REQUIRE(done->ok());
  };
  read(0, 4096, /*alone=*/true);
  read(600'000 - 4096, 4096, /*alone=*/true);
  CHECK(network.passed.empty());
  for (size_t pass = 1; pass <= 2; ++pass) {
    read(0, 300'000, /*alone=*/false);
    CHECK(network.passed.size() == pass - 1);
    read(300'000, 300'000, /*alone=*/false);
    CHECK(network.passed == std::vector<const FetchCounters*>(pass, counters.get()));
  }
}

}  // namespace
}  // namespace penstock
