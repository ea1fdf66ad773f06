// Reads features out of serialized tf.train.Example messages, without the protobuf library and,
// where their length is fixed, without a copy, with the verdict of that library on every input.
//
// Threads:  Parse() is safe from any thread; records of a form seen before are read by its
//           skeleton, others of known keys by their outline.
// Owns:     the list of features; what Parse() finds of byte lists points into the caller's record.
// Limits:   a record below 2 GiB; unknown groups nest to protobuf's depth of 100 messages.
// Cost:     a few nanoseconds a feature when the record holds them in the order of the list;
//           nothing is allocated unless the record is refused. Strings of any number are walked
//           twice, to be counted first.
//
// The wire schema is that of TensorFlow's example.proto and feature.proto:
//
//   Example { Features features = 1; }       Feature { oneof kind { BytesList bytes_list = 1;
//   FloatList float_list = 2; Features { map<string, Feature> feature = 1; } Int64List int64_list =
//   3; } } BytesList { repeated bytes value = 1; }  FloatList, Int64List { repeated float|int64
//   value = 1 [packed = true]; }
//
// What counts is what protobuf would hold after parsing: of two map entries with one key the last,
// of two kinds in one Feature the last, of two lists of one kind both, in order. What is then
// missing, of the wrong kind or of the wrong length follows tf.io.parse_example: a Feature without
// a kind is missing; a list of another kind is an error, even if it is empty; so is every list of
// another length than the wanted one, the empty one included.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/dtype.h"
#include "server/codec/example_outline.h"
#include "server/codec/example_skeleton.h"
#include "server/codec/example_value.h"

namespace penstock {

// What is wanted. Constant for a plan.
struct ExampleFeature {
  static constexpr int64_t kAnyCount = -1;

  std::string key;
  DType kind = DType::kInvalid;  // kString (bytes), kInt64 or kFloat32
  int64_t count = 1;             // the number of values, or kAnyCount

  // Whether its values are put together in the caller's arena; so are those of any count, and
  // several strings.
  bool gathered = false;
};

// Calls the record behind the next few nearer: what was fetched for a whole strip may have left the
// first cache.
void FetchAhead(const Column& records, int row, int rows);

class ExampleParser {
 public:
  // REQUIRES: keys are distinct; kinds and counts as ExampleFeature says.
  explicit ExampleParser(std::vector<ExampleFeature> features);

  // Parses one serialized Example. For feature i, values[i] tells whether it was there; a byte
  // list's value is left in values[i], the `count` values of a number list are written to
  // numbers[i] (int64_t* or float*), which is not looked at for bytes. Where a feature is missing,
  // numbers[i] may have been written to. Values that are gathered are left in values[i], in memory
  // of `arena`, which may be null if there are none.
  //
  // An error is DataLoss and says what is wrong, without the record's address: `feature "d":
  // expected int64, found bytes`.
  absl::Status Parse(const uint8_t* data, size_t size, ExampleValue* values, void* const* numbers,
                     Arena* arena = nullptr) const;

  // Parses rows `first` to `rows` - 1 of a column of records as far as each has a form that was met
  // before, with all features in it. places[i] is where feature i goes. Returns the first row that
  // it leaves to Parse(), which may have been written to. REQUIRES: no feature is gathered.
  int ParseKnown(const Column& records, int first, int rows, const ExampleRows* places) const;

 private:
  class Cursor;

  // A feature and the first bytes of the map entry that holds it when an ordinary writer made it:
  // the field key, its size, the key and the field tag of the value. The first eight of them are
  // compared in one step.
  struct Wanted {
    ExampleFeature feature;
    std::string entry_start;
    uint64_t start_word = 0;
    uint64_t start_mask = 0;  // 0: never matches
  };

  // Forms that are remembered, one for each remainder of the size; and forms that are made at most:
  // data of endless variety is not worth the making.
  static constexpr size_t kForms = 64;
  static constexpr size_t kMaxMade = 256;
  // And outlines: keys that come and go are soon all in one.
  static constexpr size_t kMaxOutlines = 64;

  // The position in wanted_ of a key; -1 if nobody asked for it.
  int Find(std::string_view key) const;
  // Remember the form, or the keys, of a record that was parsed without fault.
  void Remember(const uint8_t* data, size_t size) const;
  void RememberOutline(const uint8_t* data, size_t size) const;

  // Constant after construction.
  std::vector<Wanted> wanted_;
  std::vector<int> by_key_;  // positions in wanted_, sorted by (size of the key, key)

  // A cache, which changes no result. What was once made stays until the end, since another thread
  // may be looking at it.
  mutable std::array<std::atomic<const ExampleSkeleton*>, kForms> forms_{};  // SYNC example-form
  mutable std::atomic<const ExampleOutline*> outline_{nullptr};              // SYNC example-outline
  mutable std::mutex made_mutex_;
  mutable std::vector<std::unique_ptr<const ExampleSkeleton>> made_;     // under made_mutex_
  mutable std::vector<std::unique_ptr<const ExampleOutline>> outlines_;  // under made_mutex_
  mutable std::atomic<size_t> num_tried_{0};
  mutable std::atomic<size_t> num_outlines_tried_{0};
};

}  // namespace penstock
