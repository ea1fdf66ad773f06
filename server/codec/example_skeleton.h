// The form of one serialized tf.train.Example: every byte that is not a value. Records of one
// writer have few forms, often one for each size, and a record of a known form need not be parsed:
// its values lie where the others' did.
//
//   0a e3 01 0a cb 01 0a 01 'd' 12 c5 01 0a c2 01 0a bf 01 [ 194 bytes ] 0a 0e 0a 01 's' 12 09 1a 07 0a 05 [ varint of 5 bytes ]
//   └───────────── compared ─────────────────────────────┘              └───────── compared ────────────┘  its top bits too
//
// Only messages in the form that ordinary writers choose have a skeleton: each field once, key
// before value, lists packed in one run, nothing unknown, no key twice. All others are the parser's
// business.
//
// Threads:  constant after construction.
// Owns:     its tables; values point into the caller's record.
// Limits:   records of 16 to kMaxBytes bytes, kMaxVarints integers.
// Cost:     Match: a few instructions for eight compared bytes. Extract: some twenty for each
//           integer. Neither branches on data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/column.h"
#include "base/dtype.h"
#include "server/codec/example_value.h"

namespace penstock {

// Where a feature of many records goes: row r's value at `data` + r * row_bytes or, of a byte list,
// as a view in `views`[r].
struct ExampleRows {
  static constexpr size_t kAnySize = static_cast<size_t>(-1);

  RowBytes* views = nullptr;
  uint8_t* data = nullptr;
  size_t row_bytes = 0;
  size_t expected = kAnySize;  // bytes of a byte list
};

class ExampleSkeleton {
 public:
  static constexpr size_t kMaxBytes = 16 << 10;
  static constexpr size_t kMaxVarints = 64;

  // Where a key stands in the list of wanted features (-1: nobody asked for it), and what is wanted
  // of it.
  struct Wish {
    int position = -1;
    DType kind = DType::kInvalid;
    int64_t count = 0;
  };
  using Lookup = std::function<Wish(std::string_view key)>;

  // The skeleton of one message; null when it has none, or when a wanted feature is not as wished.
  static std::unique_ptr<const ExampleSkeleton> Make(const uint8_t* data, size_t size,
                                                     const Lookup& lookup);

  size_t size() const { return size_; }
  // The features of the wish list that it has.
  size_t num_found() const { return num_found_; }

  // Whether a message of size() bytes has this form.
  bool Match(const uint8_t* data) const {
    uint64_t difference = 0;
    for (const Word& word : words_)
      difference |= (Load(data + word.offset) & word.mask) ^ word.bits;
    return difference == 0;
  }

  // Fills in the wanted features that are there, as ExampleParser::Parse does. REQUIRES:
  // Match(data).
  void Extract(const uint8_t* data, ExampleValue* values, void* const* numbers) const;
  // The same to row `row` of each feature's place; false if a byte list is not as long as it should
  // be, and then some may be written.
  bool ExtractRow(const uint8_t* data, size_t row, const ExampleRows* places) const;

 private:
  class Builder;

  struct Word {
    uint32_t offset;
    uint64_t mask;
    uint64_t bits;
  };
  // Bytes and floats: `size` bytes at `offset`.
  struct Run {
    int position;
    bool copied;  // floats
    uint32_t offset;
    uint32_t size;
  };
  // The first eight bytes of a varint, moved down by `low_shift`, and what follows them.
  struct Varint {
    int position;
    uint32_t index;  // in its list
    uint32_t low_offset;
    uint32_t high_offset;
    uint8_t low_shift;
    uint8_t high_shift;
    uint64_t high_mask;
  };

  static uint64_t Load(const uint8_t* p) {
    uint64_t word;
    __builtin_memcpy(&word, p, sizeof(word));
    return word;
  }

  uint64_t Number(const uint8_t* data, const Varint& varint) const;

  size_t size_ = 0;
  size_t num_found_ = 0;
  std::vector<Word> words_;
  std::vector<Run> runs_;
  std::vector<Varint> varints_;
};

}  // namespace penstock
