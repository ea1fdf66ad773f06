// The driver of the tests (tests/cuda/fake_driver.cc), as a client in this process loads it.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

#include "tests/support/catch.h"

namespace penstock {

// The driver that this process loads, set as the test wants it and put back afterwards.
class FakeCuda {
 public:
  FakeCuda() {
    setenv("PENSTOCK_CUDA_DRIVER", FAKE_CUDA, 1);
    void* library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    set_ = reinterpret_cast<void (*)(const char*, int64_t)>(dlsym(library, "fake_cuda_set"));
    get_ = reinterpret_cast<int64_t (*)(const char*)>(dlsym(library, "fake_cuda_get"));
    Reset();
  }
  ~FakeCuda() { Reset(); }
  void Set(const char* name, int64_t number) { set_(name, number); }
  int64_t operator[](const char* name) { return get_(name); }

 private:
  void Reset() {
    for (const char* name : {"hold", "never", "register", "copies", "host_pages"}) set_(name, 0);
    set_("read_only", 1);
    set_("pools", 1);
    set_("lost_after", -1);
  }

  void (*set_)(const char*, int64_t);
  int64_t (*get_)(const char*);
};

}  // namespace penstock
