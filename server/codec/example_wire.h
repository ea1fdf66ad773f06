// The parts of protobuf's wire format that tf.train.Example and tf.train.SequenceExample have in
// common: one Feature, and one entry of a map of them, of any form that protobuf takes.
//
// Threads:  any; no state.
// Owns:     nothing.
// Cost:     one pass; null for what is malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/dtype.h"
#include "server/codec/wire.h"

namespace penstock::example_wire {

// Field tags, all of field numbers below 16 and so of one byte when written by an ordinary writer.
inline constexpr uint32_t kFeaturesTag = 0x0a;  // Example.features
inline constexpr uint32_t kEntryTag = 0x0a;     // Features.feature
inline constexpr uint32_t kKeyTag = 0x0a;       // of a map entry
inline constexpr uint32_t kValueTag = 0x12;
inline constexpr uint32_t kBytesListTag = 0x0a;  // Feature.kind
inline constexpr uint32_t kFloatListTag = 0x12;
inline constexpr uint32_t kInt64ListTag = 0x1a;
inline constexpr uint32_t kBytesTag = 0x0a;   // BytesList.value
inline constexpr uint32_t kPackedTag = 0x0a;  // of the number lists
inline constexpr uint32_t kInt64Tag = 0x08;
inline constexpr uint32_t kFloatTag = 0x0d;

// How many more levels may nest inside each message.
inline constexpr int kExampleDepth = wire::kDepthLimit;
inline constexpr int kFeaturesDepth = kExampleDepth - 1;
inline constexpr int kEntryDepth = kFeaturesDepth - 1;
inline constexpr int kFeatureDepth = kEntryDepth - 1;
inline constexpr int kListDepth = kFeatureDepth - 1;

// What a Feature message holds, gathered over all its parts, and where its numbers are to go.
struct Sink {
  DType wanted = DType::kInvalid;
  int64_t capacity = 0;  // values that `numbers`, or `sizes`, has room for
  void* numbers = nullptr;
  uint8_t* sizes = nullptr;  // of strings, uint32 each
  uint8_t* text = nullptr;   // their bytes
  size_t text_capacity = 0;

  int levels_above = 0;  // messages around the Feature beyond those that it has in an Example

  DType kind = DType::kInvalid;
  int64_t num_values = 0;
  const uint8_t* bytes = nullptr;  // the last value of a byte list
  size_t bytes_size = 0;
  size_t text_size = 0;  // of all values of a byte list

  // A oneof: another kind than before drops what was there.
  void Enter(DType entered) {
    if (kind != entered) {
      kind = entered;
      num_values = 0;
      text_size = 0;
    }
  }

  template <typename T>
  void Add(T value) {
    if (num_values < capacity) static_cast<T*>(numbers)[num_values] = value;
    ++num_values;
  }

  void AddBytes(const uint8_t* value, size_t size) {
    bytes = value;
    bytes_size = size;
    // A kind that came first may have had more text than the one that counts.
    const bool fits = text_size <= text_capacity && size <= text_capacity - text_size;
    if (num_values < capacity && fits) {
      const auto size32 = static_cast<uint32_t>(size);
      std::memcpy(sizes + num_values * sizeof(size32), &size32, sizeof(size32));
      if (size > 0) std::memcpy(text + text_size, value, size);
    }
    text_size += size;
    ++num_values;
  }
};

// Parses a Feature, or one more part of it, into the sink; the position behind it.
const uint8_t* ParseFeature(const uint8_t* p, const uint8_t* end, Sink& sink);

// Walks a map entry of any form whose value is a Feature. The key is the last one. Every value goes
// into the sink.
const uint8_t* WalkEntry(const uint8_t* p, const uint8_t* end, Sink& sink, std::string_view* key);

// "bytes", "float" or "int64".
const char* KindName(DType kind);

}  // namespace penstock::example_wire
