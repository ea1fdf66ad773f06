// One consumer's control page and bell, as the daemon sees them: memory that a hostile process may
// write at any time.
//
// Threads:  the words are atomic; the rest is constant after creation.
// Owns:     the page's memfd and mapping, and the bell's eventfd; the client has its own mapping.
// Limits:   the daemon looks at single words only, each copied once; nothing here is an index.
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <memory>

#include "ring/descriptor.h"
#include "ring/layout.h"
#include "ring/status.h"

namespace penstock::ring {

class ConsumerPage {
 public:
  static Status Create(uint64_t generation, uint32_t consumer, uint32_t index,
                       std::unique_ptr<ConsumerPage>* out);

  ControlPage& page() const { return *static_cast<ControlPage*>(region_.get_address()); }
  int fd() const { return fd_.get(); }
  int bell_fd() const { return bell_.get(); }

 private:
  ConsumerPage() = default;

  Descriptor fd_;
  Descriptor bell_;
  boost::interprocess::mapped_region region_;
};

}  // namespace penstock::ring
