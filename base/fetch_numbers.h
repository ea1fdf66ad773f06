// What is counted of bytes that come from other machines: for one pipeline, and for the whole
// process.
//
// Threads:  FetchCounters: any, at the same time. FetchNumbers: values.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

// Of one pipeline.
struct FetchCounters {
  std::atomic<uint64_t> bytes{0};         // that came by the network
  std::atomic<uint64_t> requests{0};      // for ranges, second ones and those sent again too
  std::atomic<uint64_t> retries{0};       // of those: sent again
  std::atomic<uint64_t> hedges{0};        // of those: second ones
  std::atomic<uint64_t> reads{0};         // that found their bytes, at once or later
  std::atomic<uint64_t> misses{0};        // that had to be waited for
  std::atomic<uint64_t> cached_bytes{0};  // that came from a disk in the place of the network
  std::atomic<int64_t> waiting{0};        // reads that are waited for now
};

// The same as they were at some time, and what all pipelines have in common.
struct FetchNumbers {
  uint64_t bytes = 0;
  uint64_t requests = 0;
  uint64_t retries = 0;
  uint64_t hedges = 0;
  uint64_t hits = 0;  // reads whose bytes were there when they were looked at
  uint64_t misses = 0;
  uint64_t cached_bytes = 0;
  uint64_t waiting = 0;
  // Of the process.
  uint64_t under_way = 0;
  uint64_t request_limit = 0;
  uint64_t queued = 0;
  uint64_t memory_bytes = 0;
  uint64_t memory_bytes_max = 0;
  int64_t first_byte_ns = 0;  // the median; 0: not known
};

}  // namespace penstock
