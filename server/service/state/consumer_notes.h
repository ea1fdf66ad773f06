// Writes down who is attached (PipelineJournal::PutConsumers) on a thread of its own: a state
// folder whose disk is slow or hangs delays who attaches, and nobody else.
//
// Threads:  any.
// Owns:     its thread. The destructor waits until all is written.
// Limits:   of several states of a pipeline that wait, the newest is written alone.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/pending_call.h"
#include "base/tick_clock.h"
#include "server/service/state/pipeline_journal.h"

namespace penstock {

class ConsumerNotes {
 public:
  using Consumers = std::vector<PipelineJournal::KnownConsumer>;

  // The journal must outlive it.
  explicit ConsumerNotes(const PipelineJournal& journal);
  ~ConsumerNotes();
  ConsumerNotes(const ConsumerNotes&) = delete;
  ConsumerNotes& operator=(const ConsumerNotes&) = delete;

  // Why nothing is written, if the system had no thread for it: `done` is never called then.
  const absl::Status& status() const { return status_; }

  // `done` is called, by the thread of this, when this state or a newer one has been written, or
  // could not be, which is logged.
  void Put(const std::string& pipeline, Consumers consumers, std::function<void()> done);

  // Logs that a write takes long, and that it has returned. To be called a few times a second, by
  // one thread.
  void TellIfSlow();

 private:
  struct Note {
    Consumers consumers;
    std::vector<std::function<void()>> done;
  };

  void Work();

  const PipelineJournal& journal_;
  const TickScale scale_;
  CallSpot spot_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Note> notes_;  // under mutex_; by the pipeline's name
  bool stopping_ = false;              // under mutex_
  bool is_told_ = false;               // TellIfSlow()'s
  absl::Status status_;                // constant after construction
  std::thread thread_;
};

}  // namespace penstock
