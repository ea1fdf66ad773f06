// What a pipeline tells those who listen to events, and of its NUMA node the log as well.
//
// Threads:  safe from any thread. `on_event` is called under no lock of this object.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "penstock/v1/control.pb.h"
#include "server/service/socket/asker.h"

namespace penstock {

class PipelineEvents {
 public:
  // `on_event` may be null.
  PipelineEvents(std::string name, std::function<void(v1::Event event)> on_event)
      : name_(std::move(name)), on_event_(std::move(on_event)) {}

  // `by`: who asked for it; nobody where the daemon does it by itself.
  void Tell(v1::EventKind kind, std::string text, const Asker& by = {},
            const v1::Change* change = nullptr) const;

  // What of its NUMA node it has not. Once, however many streams it has one after the other.
  void TellMisplaced(const std::string& notice);
  // Others know of the pipeline now: what it could not have of its NUMA node is told from here on.
  void Announce();

 private:
  void AnnounceMisplaced(const std::string& notice) const;

  const std::string name_;
  const std::function<void(v1::Event event)> on_event_;

  std::mutex misplaced_mutex_;
  std::set<std::string> misplaced_;  // under misplaced_mutex_: what was told, or will be
  bool is_announced_ = false;        // under misplaced_mutex_
};

}  // namespace penstock
