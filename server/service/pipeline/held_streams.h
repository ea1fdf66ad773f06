// Streams that begin no further step while this is there.
//
// Threads:  of one thread; the streams are safe from any.
// Cost:     waits for no more than the front's present step of each stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/service/stream/stream.h"

namespace penstock {

// Lets go of streams in whatever way a function is left.
class Held {
 public:
  explicit Held(std::vector<std::shared_ptr<Stream>> streams) : streams_(std::move(streams)) {
    for (const auto& stream : streams_) next_ = std::max(next_, stream->Hold());
  }
  ~Held() {
    for (const auto& stream : streams_) stream->Release();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // The first step that none of them has begun.
  uint64_t next() const { return next_; }
  const std::vector<std::shared_ptr<Stream>>& streams() const { return streams_; }

 private:
  const std::vector<std::shared_ptr<Stream>> streams_;
  uint64_t next_ = 0;
};

}  // namespace penstock
