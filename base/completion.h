// The right, and the duty, to say once that something which was begun is over.
//
// Who begins work that another thread or process does hands its Completion on with it. Whoever has
// it last calls End(). One that is dropped says Internal, so that nobody waits for ever.
//
// Threads:  one thread has it at a time; End() from any thread. OnCancel() before it is handed on.
// Owns:     nothing: the sink belongs to who made the completion, and lives until End() has
//           returned.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"

namespace penstock {

class Completion {
 public:
  // Who wants to be told.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void End(absl::Status status) = 0;
    virtual void OnCancel(std::function<void()> cancel) = 0;
  };

  Completion() = default;  // of nothing
  explicit Completion(Sink* sink) : sink_(sink) {}
  Completion(Completion&& other) noexcept : sink_(std::exchange(other.sink_, nullptr)) {}
  Completion& operator=(Completion&& other) noexcept {
    if (this != &other) {
      Drop();
      sink_ = std::exchange(other.sink_, nullptr);
    }
    return *this;
  }
  ~Completion() { Drop(); }

  // It is over: well, or with an error. REQUIRES: neither ended nor moved from.
  void End(absl::Status status = absl::OkStatus()) {
    std::exchange(sink_, nullptr)->End(std::move(status));
  }

  // `cancel` is called at most once, from another thread, when nobody wants the result any more.
  // End() is to follow soon then, with any status. It may be called until after End(), so it owns
  // what it touches.
  void OnCancel(std::function<void()> cancel) { sink_->OnCancel(std::move(cancel)); }

 private:
  void Drop() {
    if (sink_ != nullptr)
      End(absl::InternalError("work was given up without a word by who was to end it"));
  }

  Sink* sink_ = nullptr;
};

}  // namespace penstock
