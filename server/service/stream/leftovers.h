// What hangs in a read or a write and was left behind: executors whose workers have not ended,
// other threads, and all that they use. It is given back when that returns, which may be never.
//
// Threads:  safe from any thread.
// Owns:     what it takes, which may use files and sinks that somebody else owns: Wait() before
//           those go.
// Cost:     Sweep() is a look at each. What has ended is given back by a thread that lives as long
//           as that takes: to unmap a ring takes tens of milliseconds for a gigabyte, and a file
//           that was on a disk that hung may hang again when it is closed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/run/executor.h"

namespace penstock {

class Leftovers {
 public:
  Leftovers() = default;
  ~Leftovers() { Wait(); }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // `what`: for the log. An executor whose TryStop() has said no, and what it uses, which goes
  // after it, the last one last.
  void Take(const std::string& what, std::unique_ptr<Executor> executor,
            std::vector<std::shared_ptr<void>> uses);
  // `has_ended`: whether the thread has nothing left to do.
  void Take(const std::string& what, std::thread thread, std::function<bool()> has_ended);

  // Has what has ended given back, once what ended before is. To be called a few times a second.
  void Sweep();

  // Until all of it has ended: as long as something hangs, or until the process ends (daemon.cc
  // sees to that).
  void Wait();

  // All that is not given back yet.
  size_t size() const;

 private:
  struct Left {
    std::string what;
    std::function<bool()> has_ended;
    std::function<void()> end;  // waits for it, and gives all back
  };

  void Add(Left left);
  // What the thread does, with what has ended: it counts down giving_back_.
  void GiveBack(std::vector<Left>& ended);

  mutable std::mutex mutex_;
  std::vector<Left> left_;  // under mutex_
  size_t giving_back_ = 0;  // under mutex_
  std::thread thread_;      // under mutex_; gives back, while giving_back_ > 0
};

}  // namespace penstock
