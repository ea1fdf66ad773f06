// The memory that penstockd and one worker process have in common: rows that lie ready, and
// results.
//
// Threads:  a tray belongs to one thread at a time; progress() from any.
// Owns:     two memory files and their maps.
// Limits:   kMaxTrayBytes a tray, taken from the system as it is touched.
// Cost:     a map for each doubling of a tray's size; pages are kept. From 2 MiB on a tray lies on
//           huge pages where the kernel has them (6.1 and newer), which takes some 1 ms a MiB once.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "ring/descriptor.h"
#include "server/python/messages.h"

namespace penstock::python {

class Desk {
 public:
  // With a configuration for the worker in front of the trays.
  static absl::StatusOr<std::unique_ptr<Desk>> Create(std::string_view configuration);
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // Another one in its place. REQUIRES: no sheet is laid, and the worker reads none.
  bool Configure(std::string_view configuration);

  int inputs() const { return inputs_.get(); }
  int outputs() const { return outputs_.get(); }

  // At least so many bytes of a tray; null where there is no room for a map.
  uint8_t* Inputs(int tray, uint64_t bytes) { return Map(inputs_.get(), tray, bytes, true); }
  const uint8_t* Outputs(int tray, uint64_t bytes) {
    return Map(outputs_.get(), tray, bytes, false);
  }

  // A copy of what the worker has written, which may be anything.
  Progress progress() const;

 private:
  struct Window {
    void* at = nullptr;
    uint64_t bytes = 0;
    uint64_t tried_bytes = 0;  // to lie on huge pages
  };

  Desk() = default;
  uint8_t* Map(int file, int tray, uint64_t bytes, bool inputs);
  // Has so many bytes of the window lie on huge pages, where that is worth it.
  static void LayHugePages(Window* window, uint64_t bytes, bool inputs);

  ring::Descriptor inputs_;
  ring::Descriptor outputs_;
  void* progress_ = nullptr;
  Window windows_[2][kTrays];
};

}  // namespace penstock::python
