// How many workers a function needs, where nobody has named a number: arithmetic on what was
// measured, no clock and no threads.
//
// It begins with one. There are twice as many as soon as rows wait although all are busy, and one
// fewer after some quiet looks in which fewer would have done. A trainer that takes its batches
// slowly has a full ring, so that rows come seldom and few workers are busy: so what it does not
// need is not there. After a step down that was taken back it stays longer where it is each time.
//
// Threads:  one at a time.
// Cost:     some nanoseconds a look.
#pragma once

#include <cstdint>

namespace penstock::python {

class WorkerCount {
 public:
  // Between looks that may add workers, and that may take one away.
  static constexpr uint64_t kUpNs = 100'000'000;
  static constexpr uint64_t kDownNs = 1'000'000'000;

  // 1 to `most`.
  explicit WorkerCount(int most) : most_(most) {}

  // How many there are to be. `busy_ns`: what all workers were at rows since the beginning,
  // together; `workers`: those that there are, all of them ready; `rows_wait`: for one of them.
  int Look(uint64_t now_ns, uint64_t busy_ns, int workers, bool rows_wait);

 private:
  struct Mark {
    uint64_t at_ns = 0;
    uint64_t busy_ns = 0;
  };
  // Workers' worth of work since then.
  static double Work(const Mark& from, uint64_t now_ns, uint64_t busy_ns);

  const int most_;
  int workers_ = 0;  // at the last look
  Mark up_;          // since when
  Mark down_;
  int quiet_ = 0;              // looks in a row in which fewer would have done
  int patience_ = 5;           // of those before a step down
  bool stepped_down_ = false;  // the last change was one
};

}  // namespace penstock::python
