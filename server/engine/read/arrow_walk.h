// The values of one feature in one row of Arrow data, whatever is nested or null: from level to
// level, by runs of elements.
//
//   row ─► runs of the elements of each level: from where on, how many, or as many nulls ─► values
//
// Threads:  one thread.
// Limits:   kMaxArrowRowBytes of values a row.
// Cost:     a few steps a level and run; elements that lie side by side, with no null among them,
//           are one run.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/arena.h"
#include "base/column.h"
#include "server/engine/read/arrow_buffers.h"
#include "server/engine/read/arrow_features.h"

namespace penstock {

inline constexpr uint64_t kMaxArrowRowBytes = uint64_t{256} << 20;

class ArrowWalk {
 public:
  // `number`: the feature's, among those of the batches.
  ArrowWalk(const ArrowFeature& feature, size_t number, const ArrowBatches& batches,
            ArrowView& view, Arena& arena)
      : feature_(feature), number_(number), batches_(batches), view_(view), arena_(arena) {}

  // Numbers of a fixed size go to `to`; all else becomes `*row`, in the arena, and `dims` its
  // sizes, where the feature has axes of any size and is not packed. DataLoss without its address.
  absl::Status Take(const ArrowBatches::Batch& batch, uint64_t in_batch, uint8_t* to, RowBytes* row,
                    int64_t* dims);

 private:
  using Batch = ArrowBatches::Batch;

  struct Run {
    uint64_t begin = 0;
    uint64_t count = 0;
    bool is_null = false;
  };
  struct Text {
    const uint8_t* data = nullptr;
    uint64_t size = 0;
  };
  struct DictionaryValue {
    const Batch* part = nullptr;
    uint64_t in_part = 0;
    bool is_null = false;
  };

  // The bitmap of a level, of `end` elements at least; null where nothing is null.
  absl::StatusOr<const uint8_t*> Bitmap(uint64_t place, uint64_t end);
  absl::Status LeaveOutNulls(uint64_t place);
  absl::Status EnterLists(const ArrowLevel& level, uint64_t place, size_t axis);
  absl::Status EnterList(size_t axis, uint64_t begin, uint64_t length);
  absl::Status EnterNulls(size_t axis, uint64_t count);
  void Add(std::vector<Run>* runs, const Run& run);
  // next_ are the runs from here on.
  absl::Status EndLevel();

  absl::Status CopyNumbers(uint64_t place, const ArrowLevel& level, uint8_t* to);
  absl::Status CopyBools(uint64_t place, uint8_t* to);
  // Calls `put` with each value of the runs that is no number to be copied: texts, and what stands
  // in a dictionary.
  absl::Status ForEachValue(uint64_t place, const ArrowLevel& level,
                            absl::FunctionRef<absl::Status(const Text&)> put);
  // Of the place that stands there, DataLoss beyond the dictionary.
  absl::StatusOr<DictionaryValue> FindInDictionary(const ArrowLevel& level, const uint8_t* at);
  // Of the row's place, which is no null itself.
  absl::StatusOr<bool> IsNullInDictionary(uint64_t place);
  // The value of a dictionary at the place that stands there; a number's size is given.
  absl::Status Decode(const ArrowLevel& level, const uint8_t* at, Text* value);
  // Of a text among those of a level.
  absl::Status FindText(const Batch& batch, uint64_t place, const ArrowLevel& level,
                        uint64_t number, Text* text);
  absl::Status PutText(const Text& text);
  void EndRow(const uint8_t* numbers, size_t number_bytes, RowBytes* row, int64_t* dims);

  absl::Status Null() const;
  uint64_t NumValues() const;

  const ArrowFeature& feature_;
  const size_t number_;
  const ArrowBatches& batches_;
  ArrowView& view_;
  Arena& arena_;

  // Of the row that is taken.
  const Batch* batch_ = nullptr;
  std::vector<Run> runs_;
  std::vector<Run> next_;
  int64_t outer_size_ = 0;                    // of the first axis
  std::vector<std::vector<int64_t>> splits_;  // of the further axes of any size
  std::vector<Text> texts_;
  uint64_t text_bytes_ = 0;
};

// A whole number of `size` bytes, at any address.
inline uint64_t LoadArrowNumber(const uint8_t* at, uint32_t size, bool is_signed) {
  switch (size) {
    case 1: {
      return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int8_t>(*at)}) : *at;
    }
    case 2: {
      uint16_t value;
      std::memcpy(&value, at, sizeof(value));
      return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int16_t>(value)}) : value;
    }
    case 4: {
      uint32_t value;
      std::memcpy(&value, at, sizeof(value));
      return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)}) : value;
    }
    default: {
      uint64_t value;
      std::memcpy(&value, at, sizeof(value));
      return value;
    }
  }
}

inline bool ArrowBit(const uint8_t* bits, uint64_t i) { return (bits[i / 8] >> (i % 8) & 1) != 0; }

}  // namespace penstock
