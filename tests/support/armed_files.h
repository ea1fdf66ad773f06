// Files in a folder of a test's own, of which some hang once the test says so: while others are
// asked for what they need, it looks who waits.
//
// Threads:  `armed` may be set and WaitUntilHanging() called by any; the rest as HangingFiles.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/counting_sink.h"
#include "tests/support/hanging_files.h"
#include "tests/support/scratch_folder.h"

namespace penstock::test {

struct ArmedFiles {
  // Reads of the paths for which `hangs` is true take until files.LetGo(), once armed.
  explicit ArmedFiles(std::function<bool(const std::string& path)> hangs)
      : files([this, hangs = std::move(hangs)](const std::string& path, uint64_t) {
          return armed && hangs(path);
        }) {}

  // Until so many reads and openings hang at the same time; false where that does not come true.
  bool WaitUntilHanging(int calls = 1) {
    const auto until = std::chrono::steady_clock::now() + kHangs;
    while (files.hanging() < calls && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    return files.hanging() >= calls;
  }

  ScratchFolder folder;
  std::atomic<bool> armed{false};
  HangingFiles files;
};

}  // namespace penstock::test
