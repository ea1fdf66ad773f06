// A point in a stream's work, which is over when all work in front of it is.
//
// Threads:  any, one at a time.
// Owns:     the event.
// Cost:     making one some microseconds; recording and asking one each.
#pragma once

#include <memory>
#include <utility>

#include "cuda/device.h"
#include "ring/status.h"

namespace penstock::cuda {

class Event {
 public:
  enum class State { kWaits, kOver, kFailed };

  // `flags`: kEventInterprocess for one that other processes may open.
  static ring::Status Create(std::shared_ptr<const Device> device, unsigned flags,
                             std::unique_ptr<Event>* out);
  // One of another process.
  static ring::Status Open(std::shared_ptr<const Device> device, const IpcEvent& handle,
                           std::unique_ptr<Event>* out);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  ring::Status Record(StreamHandle stream);
  // kFailed: the device gives an error, which `error` receives.
  State Look(ring::Status* error) const;
  // What comes next in `stream` begins when this event is over.
  ring::Status HoldBack(StreamHandle stream) const;
  ring::Status Handle(IpcEvent* handle) const;

 private:
  Event(std::shared_ptr<const Device> device, EventHandle event)
      : device_(std::move(device)), event_(event) {}

  const std::shared_ptr<const Device> device_;
  const EventHandle event_;
};

}  // namespace penstock::cuda
