// The outline of the tf.train.Examples of one writer: which keys they have, in which sequence.
// Where a skeleton (server/codec/example_skeleton.h) knows every byte that is not a value, and so
// every length, an outline knows the keys alone and reads the lengths: records whose lists are of
// any length have few outlines and endless skeletons.
//
//   0a e3 01   0a cb 01 [0a 01 'd' 12] c5 01 0a c2 01 0a bf 01 [ 191 bytes ]   0a 0f [0a 03 'i' 'd' 's' 12] 08 1a 06 0a 04 [ 4 varints ]
//              size     └─ compared ─┘ sizes, each of which ends where the entry does
//
// Only messages in the form that ordinary writers choose are read so: one Features, key before
// value, one kind, lists packed in one run, nothing unknown, no key twice. An entry whose key is
// not the predicted one is looked for among the others, so that keys may be absent and change
// places. All else is the parser's business.
//
// Threads:  constant after construction.
// Owns:     its table of keys; what Read() finds points into the caller's record or arena.
// Limits:   kMaxKeys keys.
// Cost:     Read: some ten nanoseconds a feature; integers are unpacked eight at a time while they
//           are below 128.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/dtype.h"
#include "server/codec/example_value.h"

namespace penstock {

class ExampleOutline {
 public:
  static constexpr size_t kMaxKeys = 256;

  // Where a key stands in the list of wanted features (-1: nobody asked for it), and what is wanted
  // of it, as ExampleFeature says.
  struct Wish {
    int position = -1;
    DType kind = DType::kInvalid;
    int64_t count = 0;
    bool gathered = false;
  };
  using Lookup = std::function<Wish(std::string_view key)>;

  // The keys of one message in their sequence, then those of `before` (null: none) that it lacks.
  // Null when it is not ordinary.
  static std::unique_ptr<const ExampleOutline> Make(const uint8_t* data, size_t size,
                                                    const Lookup& lookup,
                                                    const ExampleOutline* before);

  size_t num_keys() const { return keys_.size(); }

  // Reads a whole message as ExampleParser::Parse does, whose arguments these are:
  // values[i].present is false for all i. False when the message is not ordinary, has a key that is
  // not known here or anything wrong; values and numbers are then of no meaning.
  bool Read(const uint8_t* data, size_t size, ExampleValue* values, void* const* numbers,
            Arena* arena) const;

 private:
  // A key and the bytes of its entry up to the value's size. The first eight of them are compared
  // in one step.
  struct Key {
    std::string start;
    uint64_t word = 0;
    uint64_t mask = 0;
    Wish wish;
  };
  // A list whose message fills [p, end). Bytes up to `limit` may be loaded.
  struct List {
    const uint8_t* p;
    const uint8_t* end;
    const uint8_t* limit;
  };

  static bool StartsWith(const Key& key, uint64_t word, const uint8_t* p, const uint8_t* end);
  void Add(std::string_view start, const Wish& wish);
  const Key* Find(const uint8_t* p, const uint8_t* end) const;

  static bool ReadList(const Wish& wish, uint8_t tag, const List& list, ExampleValue* value,
                       void* numbers, Arena* arena);
  static bool ReadStrings(const Wish& wish, const List& list, ExampleValue* value, Arena* arena);
  static bool ReadFloats(const Wish& wish, const List& list, ExampleValue* value, void* numbers,
                         Arena* arena);
  static bool ReadIntegers(const Wish& wish, const List& list, ExampleValue* value, void* numbers,
                           Arena* arena);

  std::vector<Key> keys_;
};

}  // namespace penstock
