#include "cuda/event.h"

namespace penstock::cuda {

using ring::Status;

Status Event::Create(std::shared_ptr<const Device> device, unsigned flags,
                     std::unique_ptr<Event>* out) {
  EventHandle event = nullptr;
  {
    const Entered entered(*device);
    const Result result = device->driver().EventCreate(&event, kEventDisableTiming | flags);
    if (Status status = device->Check(result, "an event cannot be made"); !status.ok()) {
      return status;
    }
  }
  out->reset(new Event(std::move(device), event));
  return {};
}

Status Event::Open(std::shared_ptr<const Device> device, const IpcEvent& handle,
                   std::unique_ptr<Event>* out) {
  EventHandle event = nullptr;
  {
    const Entered entered(*device);
    const Result result = device->driver().IpcOpenEventHandle(&event, handle);
    if (Status status = device->Check(result, "the daemon's event cannot be opened");
        !status.ok()) {
      return status;
    }
  }
  out->reset(new Event(std::move(device), event));
  return {};
}

Event::~Event() {
  const Entered entered(*device_);
  device_->driver().EventDestroy(event_);
}

Status Event::Record(StreamHandle stream) {
  const Entered entered(*device_);
  return device_->Check(device_->driver().EventRecord(event_, stream),
                        "an event cannot be recorded");
}

Event::State Event::Look(Status* error) const {
  const Entered entered(*device_);
  const Result result = device_->driver().EventQuery(event_);
  if (result == kSuccess) return State::kOver;
  if (result == kErrorNotReady) return State::kWaits;
  *error = device_->Check(result, "the device has failed");
  return State::kFailed;
}

Status Event::HoldBack(StreamHandle stream) const {
  const Entered entered(*device_);
  return device_->Check(device_->driver().StreamWaitEvent(stream, event_, 0),
                        "a stream cannot wait for the daemon's copy");
}

Status Event::Handle(IpcEvent* handle) const {
  const Entered entered(*device_);
  return device_->Check(device_->driver().IpcGetEventHandle(handle, event_),
                        "an event cannot be shared");
}

}  // namespace penstock::cuda
