// Serializes tf.train.Example messages, without the protobuf library: a map from feature names to
// lists of bytes, floats or 64-bit integers. (tensorflow/core/example/example.proto describes the
// message.)
//
// Threads:  one thread.
// Owns:     the message under construction; Serialize() hands out a view that the next call on the
//           builder ends.
// Cost:     appends to two buffers that keep their capacity from one Example to the next.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace penstock {

class ExampleBuilder {
 public:
  // Begins the next Example.
  void Clear() { features_.clear(); }

  // Each key may be added once. Features are written in the order in which they are added.
  void AddBytesList(std::string_view key, absl::Span<const std::string_view> values);
  void AddBytes(std::string_view key, std::string_view value) { AddBytesList(key, {&value, 1}); }
  void AddFloat(std::string_view key, absl::Span<const float> values);
  void AddInt64(std::string_view key, absl::Span<const int64_t> values);
  void AddInt64(std::string_view key, int64_t value) { AddInt64(key, {&value, 1}); }

  std::string_view Serialize();

 private:
  // Adds the map entry {key: Feature{kind: list}}, where `list_` holds the serialized list.
  void AddEntry(std::string_view key, int kind);

  std::string features_;
  std::string list_;
  std::string message_;
};

}  // namespace penstock
