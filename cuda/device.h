// One device of the machine, by its primary context: that of torch, JAX and CuPy in the same
// process.
//
// Threads:  safe from any thread. A context is current in a thread only inside of Entered.
// Owns:     a reference to the primary context, until the last reference to the device is gone.
// Limits:   streams, events and memory are their makers' to give back before the device.
// Cost:     the first one of a process makes the context: tenths of a second, and some hundred MiB
//           on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuda/driver.h"
#include "ring/status.h"

namespace penstock::cuda {

class Device {
 public:
  // kNotFound, with the number of devices, when there is no such one; else as LoadDriver().
  static ring::Status Open(const std::string& library, int32_t ordinal,
                           std::shared_ptr<const Device>* out);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  int32_t ordinal() const { return ordinal_; }
  DeviceNumber number() const { return number_; }
  int32_t driver_version() const { return driver_version_; }
  const Uuid& uuid() const { return uuid_; }
  // 0 for an attribute that the driver does not know.
  int32_t Attribute(int32_t attribute) const;

  // OK, or the error of a call.
  ring::Status Check(Result result, const char* what) const;

 private:
  friend class Entered;
  Device() = default;
  static ring::Status Retain(const Driver& driver, int32_t ordinal,
                             std::shared_ptr<const Device>* out);

  Driver driver_;
  int32_t ordinal_ = 0;
  int32_t driver_version_ = 0;
  DeviceNumber number_ = 0;
  Uuid uuid_ = {};
  ContextHandle context_ = nullptr;
};

// Makes the device's context the calling thread's for as long as it lives, and then the one before
// again.
class Entered {
 public:
  explicit Entered(const Device& device) : device_(device) {
    entered_ = device.driver_.CtxPushCurrent(device.context_) == kSuccess;
  }
  ~Entered() {
    ContextHandle popped;
    if (entered_) device_.driver_.CtxPopCurrent(&popped);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  const Device& device_;
  bool entered_ = false;
};

}  // namespace penstock::cuda
