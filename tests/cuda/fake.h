// The fake driver of fake_driver.cc, as this program has loaded it.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <memory>

#include "cuda/device.h"
#include "tests/support/catch.h"

namespace penstock::cuda {

// Puts the fake back as it was when it goes.
class Fake {
 public:
  Fake() {
    void* library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    set_ = reinterpret_cast<void (*)(const char*, int64_t)>(dlsym(library, "fake_cuda_set"));
    get_ = reinterpret_cast<int64_t (*)(const char*)>(dlsym(library, "fake_cuda_get"));
    REQUIRE(set_ != nullptr);
    REQUIRE(get_ != nullptr);
    Reset();
  }
  ~Fake() { Reset(); }

  void Set(const char* name, int64_t number) { set_(name, number); }
  int64_t operator[](const char* name) const { return get_(name); }

  std::shared_ptr<const Device> Open() const {
    std::shared_ptr<const Device> device;
    const ring::Status status = Device::Open(FAKE_CUDA, 0, &device);
    INFO(status.message);
    REQUIRE(status.ok());
    return device;
  }

 private:
  void Reset() {
    for (const char* name :
         {"init", "hold", "never", "missing", "register", "ipc_memory", "ipc_event", "create",
          "import", "copies", "launches", "host_pages", "context", "mode"}) {
      set_(name, 0);
    }
    set_("devices", 1);
    set_("version", 12080);
    set_("memory", 1 << 30);
    set_("read_only", 1);
    set_("descriptors", 1);
    set_("pools", 1);
    set_("ipc_events", 1);
    set_("lost_after", -1);
  }

  void (*set_)(const char*, int64_t);
  int64_t (*get_)(const char*);
};

}  // namespace penstock::cuda
