// What some tf.train.Examples have in common: which features, of which type, how many values, in
// which range.
//
// Threads:  one.
// Owns:     what it has counted; the records are the caller's, and are not looked at again.
// Limits:   kMaxFeatures names; records of more are refused.
// Cost:     a record is parsed by the protobuf library, and each of its values looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace penstock::ctl {

// A feature in all records that were looked at, or in all steps of a feature list.
struct FeatureSurvey {
  enum class Form {
    kFixed,     // everywhere the same number of values
    kOptional,  // one value, or the feature is missing
    kVariable,  // any number
    kMixed,     // of several types
    kEmpty,     // never a value, so that its type is not known
  };
  enum class Type { kBytes, kFloat, kInt64 };

  // Where it is there, by its type.
  uint64_t bytes = 0;
  uint64_t floats = 0;
  uint64_t int64s = 0;
  uint64_t least_values = UINT64_MAX;
  uint64_t most_values = 0;
  // Of int64 values.
  int64_t least_int = INT64_MAX;
  int64_t most_int = INT64_MIN;
  // Of finite float values, and how many are not.
  double least_float = 0;
  double most_float = 0;
  uint64_t finite = 0;
  uint64_t not_finite = 0;
  // Of strings.
  uint64_t least_bytes = UINT64_MAX;
  uint64_t most_bytes = 0;
  std::string content;  // "JPEG", "text", …; "bytes": no such kind, or several

  uint64_t present() const { return bytes + floats + int64s; }
  // REQUIRES: Form is neither kMixed nor kEmpty.
  Type type() const;
  // `total`: records, or steps, in which it could be.
  Form form(uint64_t total) const;
};

struct FeatureListSurvey {
  uint64_t present = 0;  // records
  uint64_t steps = 0;    // of all records
  uint64_t least_steps = UINT64_MAX;
  uint64_t most_steps = 0;
  FeatureSurvey step;
};

class ExampleSurvey {
 public:
  static constexpr size_t kMaxFeatures = 4096;

  // Counts a record; "" or why it is no Example, and then it does not count.
  std::string Add(const uint8_t* data, size_t size);

  uint64_t records() const { return records_; }
  bool has_lists() const { return !lists_.empty(); }
  // By their keys: those of Examples, or of SequenceExamples' contexts.
  const std::map<std::string, FeatureSurvey>& features() const { return features_; }
  const std::map<std::string, FeatureListSurvey>& lists() const { return lists_; }

 private:
  uint64_t records_ = 0;
  std::map<std::string, FeatureSurvey> features_;
  std::map<std::string, FeatureListSurvey> lists_;
};

// What the bytes are, by how they begin: "JPEG", "PNG", "GIF", "BMP", "WebP", "WAV", "FLAC", "Ogg",
// "npy", "text" (UTF-8 without control characters), "bytes".
std::string ContentOf(std::string_view bytes);

}  // namespace penstock::ctl
