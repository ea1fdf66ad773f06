// What hangs in a read and was left behind: executors whose workers have not ended, other threads, and all that they use. It is given
// back when the read returns, which may be never.
//
// Threads:  safe from any thread.
// Owns:     what it takes, which may use files and sinks that somebody else owns: Wait() before those go.
// Cost:     Sweep() is a look at each; what has ended is destroyed in it, a ring's memory too.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/executor.h"

namespace penstock {

class Leftovers {
 public:
  Leftovers() = default;
  ~Leftovers() { Wait(); }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // `what`: for the log. An executor whose TryStop() has said no, and what it uses, which goes after it, the last one last.
  void Take(const std::string& what, std::unique_ptr<Executor> executor,
            std::vector<std::shared_ptr<void>> uses);
  // `has_ended`: whether the thread has nothing left to do.
  void Take(const std::string& what, std::thread thread, std::function<bool()> has_ended);

  // Gives back what has ended. To be called a few times a second.
  void Sweep();

  // Until all of it has ended: as long as a read hangs, or until the process ends (daemon.cc sees to that).
  void Wait();

  size_t size() const;

 private:
  struct Left {
    std::string what;
    std::function<bool()> has_ended;
    std::function<void()> end;  // waits for it, and gives all back
  };

  void Add(Left left);

  mutable std::mutex mutex_;
  std::vector<Left> left_;  // under mutex_
};

}  // namespace penstock
