// How many workers a function has, where nobody names a number.
#include "server/python/worker_count.h"

#include <algorithm>
#include <cstdint>

#include "tests/support/catch.h"

namespace penstock::python {
namespace {

// Workers that have so much to do, and are looked at ten times a second.
class Scene {
 public:
  explicit Scene(int most) : count_(most) {}

  // Until so many seconds have gone: rows that would keep `work` workers busy.
  int Run(int seconds, double work) {
    for (int i = 0; i < 10 * seconds; ++i) {
      now_ns_ += WorkerCount::kUpNs;
      const double done = std::min<double>(work, workers_);
      busy_ns_ += static_cast<uint64_t>(done * WorkerCount::kUpNs);
      workers_ = count_.Look(now_ns_, busy_ns_, workers_, work > workers_);
      changes_ += workers_ != before_;
      before_ = workers_;
    }
    return workers_;
  }
  int changes() const { return changes_; }

 private:
  WorkerCount count_;
  uint64_t now_ns_ = 1;
  uint64_t busy_ns_ = 0;
  int workers_ = 0;
  int before_ = 0;
  int changes_ = 0;
};

TEST_CASE("There are as many workers as the rows keep busy, within the bounds") {
  CHECK(Scene(8).Run(5, 0.01) == 1);
  CHECK(Scene(8).Run(5, 100) == 8);
  CHECK(Scene(5).Run(5, 100) == 5);
  CHECK(Scene(1).Run(5, 100) == 1);
  // It goes up by doubling, and down to what is needed with some room.
  CHECK(Scene(16).Run(60, 2.5) == 3);
}

TEST_CASE("All of them are there within a second") { CHECK(Scene(16).Run(1, 100) == 16); }

TEST_CASE("What is not needed any more leaves slowly, and comes back at once") {
  Scene scene(8);
  REQUIRE(scene.Run(3, 100) == 8);
  CHECK(scene.Run(4, 0.5) == 8);
  CHECK(scene.Run(120, 0.5) == 1);
  CHECK(scene.Run(1, 100) == 8);
}

TEST_CASE("It does not swing where one worker more or fewer is just what is needed") {
  Scene scene(4);
  scene.Run(30, 1.95);
  const int before = scene.changes();
  scene.Run(1800, 1.95);
  CHECK(scene.changes() - before <= 20);
}

}  // namespace
}  // namespace penstock::python
