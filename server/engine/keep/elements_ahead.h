// Elements of an object, fetched ahead of who takes them.
//
//     places   next ───► window │ window │ … kWindows of them │
//                          └─► an errand: asks for its bytes, and is done when they have come
//
// Nobody waits for a window but the front, which is asked again. Who reads an element behind that
// finds it near; if it has had to make room, he waits.
//
// Threads:  one at a time (the front's lock).
// Owns:     its errands, until they are done.
// Limits:   kWindows windows of kWindowBytes, or of one element that is longer.
// Cost:     a comparison for each element, and an errand for each window.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "io/element/element_file.h"
#include "server/engine/order/order_op.h"

namespace penstock {

class ElementsAhead {
 public:
  static constexpr uint64_t kWindowBytes = uint64_t{4} << 20;
  static constexpr uint64_t kWindowElements = 4096;
  static constexpr size_t kWindows = 8;

  // `file`: in the manifest.
  ElementsAhead(FrontContext& context, const ElementFile& elements, uint32_t file, int stage);
  ~ElementsAhead();

  // Whether the bytes of the element at a place have come, or cannot be had; places are asked for
  // in their order, but behind Restart(). `element_at`: the number of the element at each of `size`
  // places, which a pass has.
  bool IsNear(uint64_t place, uint64_t size, absl::FunctionRef<uint64_t(uint64_t)> element_at);
  // Another pass begins, or another place.
  void Restart();

 private:
  class Window;

  void Ask(uint64_t size, absl::FunctionRef<uint64_t(uint64_t)> element_at);

  FrontContext& context_;
  const ElementFile& elements_;
  const uint32_t file_;
  const int stage_;
  std::deque<std::unique_ptr<Window>> windows_;
  std::vector<std::unique_ptr<Window>> passed_;  // are on their way yet
  uint64_t asked_to_ = 0;                        // a place
  uint64_t near_to_ = 0;                         // likewise
};

}  // namespace penstock
