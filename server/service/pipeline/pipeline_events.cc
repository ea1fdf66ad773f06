#include "server/service/pipeline/pipeline_events.h"

#include <utility>

#include "server/service/watch/event_log.h"
#include "spdlog/spdlog.h"

namespace penstock {

void PipelineEvents::Tell(v1::EventKind kind, std::string text, const Asker& by,
                          const v1::Change* change) const {
  if (on_event_ == nullptr) return;
  v1::Event event = MakeEvent(name_, kind, std::move(text));
  if (by.uid) event.set_uid(*by.uid);
  if (change != nullptr) *event.mutable_change() = *change;
  // They may name thousands of files; the history has them.
  if (event.change().has_epoch()) event.mutable_change()->clear_stage();
  on_event_(std::move(event));
}

void PipelineEvents::TellMisplaced(const std::string& notice) {
  {
    std::lock_guard<std::mutex> lock(misplaced_mutex_);
    if (!misplaced_.insert(notice).second || !is_announced_) return;
  }
  AnnounceMisplaced(notice);
}

void PipelineEvents::AnnounceMisplaced(const std::string& notice) const {
  spdlog::warn("pipeline {}: {}", name_, notice);
  Tell(v1::EVENT_KIND_MISPLACED, notice);
}

void PipelineEvents::Announce() {
  std::set<std::string> notices;
  {
    std::lock_guard<std::mutex> lock(misplaced_mutex_);
    if (is_announced_) return;
    is_announced_ = true;
    notices = misplaced_;
  }
  for (const std::string& notice : notices) AnnounceMisplaced(notice);
}

}  // namespace penstock
