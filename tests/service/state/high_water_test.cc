// How far a pipeline is handed out: never beyond what a disk knows, and without waiting for it. The
// clock and the disk are the test's.

#include "server/service/state/high_water.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "server/service/state/high_water_file.h"
#include "spdlog/sinks/ringbuffer_sink.h"
#include "spdlog/spdlog.h"
#include "tests/sim/dice.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

constexpr uint64_t kMs = 1'000'000;

// A disk that takes its time, and the steps of one stream.
class Simulated {
 public:
  explicit Simulated(uint64_t write_ms, uint64_t limit = HighWater::kFirstLimit,
                     bool is_of_before = false)
      : write_ns_(write_ms * kMs), on_disk_(limit) {
    HighWaterOptions options;
    options.pipeline = "p";
    options.write = [this](uint64_t step) -> absl::Status {
      ++writes_;
      if (fails_) return absl::ResourceExhaustedError("no room");
      on_disk_ = step;
      return absl::OkStatus();
    };
    options.limit = limit;
    options.is_of_before = is_of_before;
    options.run_later = [this](std::function<void()> task) {
      tasks_.push_back({now_ns_ + write_ns_, std::move(task)});
      return true;
    };
    options.now_ns = [this] { return now_ns_; };
    high_water_ = HighWater::Create(std::move(options));
  }

  HighWater& operator*() { return *high_water_; }
  HighWater* operator->() { return high_water_.get(); }

  // Lets that much time pass, with so many steps a millisecond; the time in which none could be
  // claimed.
  uint64_t Run(uint64_t ms, double steps_per_ms) {
    uint64_t waited_ms = 0;
    for (uint64_t i = 0; i < ms; ++i) {
      Pass();
      for (due_ += steps_per_ms; due_ >= 1; due_ -= 1) {
        if (!Step()) {
          ++waited_ms;
          due_ = 0;
          break;
        }
      }
    }
    return waited_ms;
  }
  bool Step() {
    if (!high_water_->MayClaim(next_)) return false;
    // Whatever is claimed is known to the disk.
    REQUIRE(next_ < on_disk_);
    high_water_->Published(++next_);
    return true;
  }
  // A millisecond.
  void Pass() {
    now_ns_ += kMs;
    while (!tasks_.empty() && tasks_.front().first <= now_ns_) {
      const std::function<void()> task = std::move(tasks_.front().second);
      tasks_.pop_front();
      task();
    }
    // A death now would leave all of them to a successor.
    REQUIRE(next_ <= on_disk_);
    if (now_ns_ / kMs % 250 == 0) high_water_->Look();
  }

  uint64_t next_ = 0;
  uint64_t write_ns_;
  bool fails_ = false;
  uint64_t writes_ = 0;
  uint64_t on_disk_;

 private:
  uint64_t now_ns_ = 1'000'000 * kMs;
  double due_ = 0;
  std::deque<std::pair<uint64_t, std::function<void()>>> tasks_;
  std::shared_ptr<HighWater> high_water_;
};

TEST_CASE("no step waits for the disk, however fast they are made, once their rate is known") {
  for (const uint64_t write_ms : {1, 20, 500, 1500}) {
    for (const double steps_per_ms : {0.002, 0.05, 1.0, 30.0}) {
      INFO(write_ms << " ms a write, " << steps_per_ms << " steps a ms");
      Simulated one(write_ms);
      one.Run(12'000, steps_per_ms);
      CHECK(one.Run(60'000, steps_per_ms) == 0);
      // A write takes some seconds of steps.
      CHECK(one.writes_ < 72 * 2);
      // A change after a death waits for the steps of a few seconds.
      const double seconds = static_cast<double>(one.on_disk_ - one.next_) / steps_per_ms / 1000;
      CHECK((seconds < 4 * 2 + 8e-3 * static_cast<double>(write_ms) ||
             one.on_disk_ - one.next_ <= 4 * HighWater::kLeastRange));
    }
  }
}

TEST_CASE("a pipeline that becomes fast waits for a write or two") {
  Simulated one(50);
  one.Run(5'000, 0.002);
  CHECK(one.on_disk_ - one.next_ <= 4 * HighWater::kLeastRange);
  CHECK(one.Run(2'000, 100.0) <= 3 * 50 + 3);
  CHECK(one.Run(10'000, 100.0) == 0);
}

TEST_CASE("what was reserved for a fast pipeline is given back when it is slow") {
  Simulated one(5);
  one.Run(5'000, 50.0);
  CHECK(one.on_disk_ - one.next_ >= 50'000);
  one.Run(5'000, 0.002);
  CHECK(one.on_disk_ - one.next_ <= 4 * HighWater::kLeastRange);
  one.Run(5'000, 50.0);
  one.Run(5'000, 0);
  CHECK(one.on_disk_ == one.next_ + 2 * HighWater::kLeastRange);
}

TEST_CASE("a new pipeline that is fast from its first step on does not wait for the disk") {
  Simulated one(20);
  // All that is reserved for a new one would be gone before anybody looks.
  CHECK(one.Run(245, 5.0) == 0);
  CHECK(one.next_ > HighWater::kFirstLimit);
}

TEST_CASE("what is given back is claimed by nobody while that is being written") {
  Simulated one(100);
  one.Run(250, 0);
  REQUIRE(one.writes_ == 0);
  one.Run(50, 1'000);
  CHECK(one.next_ == 2 * HighWater::kLeastRange);
  // Nothing that the disk does not know then.
  one.Run(51, 0);
  CHECK(one.writes_ == 1);
  CHECK(one.on_disk_ == one.next_);
  one.Run(400, 0);
  CHECK_FALSE(one->HeldBackNs().has_value());
}

TEST_CASE(
    "nothing is claimed that a disk without room does not know, and it goes on when there is "
    "room") {
  Simulated one(1);
  one.Run(2'000, 0.1);
  one.fails_ = true;
  const uint64_t writes = one.writes_;
  one.Run(20'000, 0.1);
  CHECK(one.next_ == one.on_disk_);
  // Since the first step that was refused, not since the last one.
  CHECK(one->HeldBackNs().value_or(0) > 10'000 * kMs);
  // It is tried again, and not at every step.
  CHECK(one.writes_ > writes + 10);
  CHECK(one.writes_ <= writes + 20'000 / 200);
  one.fails_ = false;
  one.Run(300, 0.1);
  CHECK_FALSE(one->HeldBackNs().has_value());
  CHECK(one.Run(5'000, 0.1) == 0);
  one.fails_ = true;
  one.Run(20'000, 0.1);
  CHECK(one->HeldBackNs().has_value());
  // Who is stopped waits for no disk.
  one->Close();
  CHECK_FALSE(one->HeldBackNs().has_value());
}

TEST_CASE("a disk that refuses for long is told of once, and once when it takes again") {
  const auto lines = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(64);
  const std::shared_ptr<spdlog::logger> logger = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("", lines));
  const absl::Cleanup restore = [&] { spdlog::set_default_logger(logger); };
  const auto told = [&lines](const std::string& what) {
    int count = 0;
    for (const std::string& line : lines->last_formatted())
      count += absl::StrContains(line, what) ? 1 : 0;
    return count;
  };
  Simulated one(1);
  one.Run(2'000, 0.1);
  for (int turn = 1; turn <= 2; ++turn) {
    one.fails_ = true;
    one.Run(20'000, 0.1);
    CHECK(told("could not be written down, and is tried again") == turn);
    one.fails_ = false;
    one.Run(2'000, 0.1);
    CHECK(told("is written down again") == turn);
  }
}

TEST_CASE("the first step that nobody can have had is known after any death") {
  test::Dice dice(7);
  for (int turn = 0; turn < 300; ++turn) {
    Simulated one(dice.Between(0, 800), dice.Between(0, 5'000), dice.OneIn(2));
    const uint64_t begin = one->first_free();
    for (uint64_t parts = dice.Between(1, 6); parts > 0; --parts) {
      one.fails_ = dice.OneIn(5);
      one.Run(dice.Between(1, 3'000), static_cast<double>(dice.Between(1, 20'000)) / 1000);
    }
    // What a successor reads.
    CHECK(one.on_disk_ >= one.next_);
    CHECK(one->first_free() == std::max(begin, one.next_));
    CHECK(one.on_disk_ >= one->first_free());
  }
}

TEST_CASE("after a death a change begins behind what may have been had, until that is made again") {
  Simulated one(1, 300, /*is_of_before=*/true);
  CHECK(one->from_before() == 300);
  CHECK(one->first_free() == 300);
  one.next_ = 100;
  one.Run(200, 0.125);
  CHECK(one.next_ == 125);
  CHECK(one->first_free() == 300);
  // It is on the disk already.
  CHECK(one.writes_ == 0);
  one.Run(4'000, 0.125);
  CHECK(one.next_ == 625);
  CHECK(one->first_free() == one.next_);
  CHECK(one.on_disk_ > one.next_);
}

TEST_CASE(
    "what an earlier daemon may have handed out is kept for a successor, also where nothing "
    "comes") {
  Simulated one(1, 300, /*is_of_before=*/true);
  one.Run(2'000, 0);
  CHECK(one.on_disk_ >= 300);
  one.next_ = 100;
  one.Run(5'000, 0.002);
  CHECK(one.next_ < 300);
  CHECK(one.on_disk_ >= 300);
}

TEST_CASE("who has had more than is known raises it, also for a successor") {
  Simulated one(1, 0);
  one->Raise(5'000);
  CHECK(one->first_free() == 5'000);
  one.Run(2, 0);
  CHECK(one.on_disk_ > 5'000);
  one->Raise(10);
  CHECK(one->first_free() == 5'000);
}

TEST_CASE("a clean end leaves exactly what was handed out") {
  Simulated one(200);
  // A look has asked for more, which is still to be written.
  one.Run(300, 1.0);
  REQUIRE(one.writes_ == 0);
  one->Close();
  CHECK_FALSE(one.Step());
  CHECK_FALSE(one->HeldBackNs().has_value());
  REQUIRE(one->WriteLast().ok());
  CHECK(one.on_disk_ == 300);
  // It is not written behind it.
  one.Run(1'000, 0);
  CHECK(one.on_disk_ == 300);
  CHECK(one.writes_ == 1);
}

TEST_CASE("a pipeline that nothing is kept of has no limit") {
  const auto one = HighWater::Create({.pipeline = "p"});
  CHECK(one->MayClaim(uint64_t{1} << 60));
  one->Published(7);
  CHECK(one->first_free() == 7);
  CHECK(one->WriteLast().ok());
}

TEST_CASE("fault 49: how far a pipeline was handed out is read back, whatever a write was cut at") {
  const test::ScratchFolder scratch;
  const auto folder = *StateFolder::Open(scratch / "state");
  const std::string name = "p.high-water";
  CHECK(absl::IsNotFound(HighWaterFile::Open(*folder, name).status()));
  auto file = *HighWaterFile::Create(*folder, name, 5);
  const auto read = [&] { return (*HighWaterFile::Open(*folder, name))->step(); };
  CHECK(read() == 5);
  const auto bytes = [&] {
    std::string text(1024, '\0');
    FILE* const stream = fopen(folder->PathOf(name).c_str(), "rb");
    CHECK(fread(text.data(), 1, text.size(), stream) == text.size());
    fclose(stream);
    return text;
  };
  const auto put = [&](const std::string& text) {
    FILE* const stream = fopen(folder->PathOf(name).c_str(), "r+b");
    fwrite(text.data(), 1, text.size(), stream);
    fclose(stream);
  };
  for (uint64_t step = 6; step < 10; ++step) {
    const std::string before = bytes();
    REQUIRE(file->Write(step).ok());
    const std::string behind = bytes();
    CHECK(read() == step);
    // Cut at any byte it is as before, or as behind it.
    for (size_t cut = 0; cut <= behind.size(); ++cut) {
      if (cut < behind.size() && before[cut] == behind[cut]) continue;
      put(behind.substr(0, cut) + before.substr(cut));
      CHECK((read() == step || read() == step - 1));
    }
    put(behind);
  }
  // Written lower, too.
  REQUIRE(file->Write(3).ok());
  CHECK(read() == 3);
  put(std::string(1024, 'x'));
  CHECK(absl::IsDataLoss(HighWaterFile::Open(*folder, name).status()));
}

}  // namespace
}  // namespace penstock
