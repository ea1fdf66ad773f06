// What stands behind penstock_cuda.
//
// Threads:  what changes stands under `mutex`; `done` functions are called without it.
// Owns:     events, staging buffers and, until they are called, what `done` functions hold.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/c/penstock_cuda.h"
#include "cuda/device.h"
#include "cuda/event.h"

struct penstock_cuda {
  struct Pending {
    std::unique_ptr<penstock::cuda::Event> event;
    void (*done)(void*) = nullptr;
    void* argument = nullptr;
  };
  // Pinned memory through which what is not pinned travels.
  struct Staging {
    void* memory = nullptr;
    std::unique_ptr<penstock::cuda::Event> event;  // over when it is free; null: never used
  };

  std::shared_ptr<const penstock::cuda::Device> device;
  bool has_pools = false;  // memory is allocated and freed in the order of a stream

  std::mutex mutex;
  // Under `mutex`.
  std::deque<Pending> pending;
  std::vector<std::unique_ptr<penstock::cuda::Event>> spare_events;
  std::vector<Staging> staging;
  size_t next_staging = 0;
  std::string why_staged;  // written once
  penstock_cuda_stats stats = {};
  penstock_cuda* left_before = nullptr;  // of those that were closed while their device was reading
};
