#include "client/ctl/inspect/example_survey.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "client/ctl/inspect/example.pb.h"

namespace penstock::ctl {
namespace {

constexpr char kBytes[] = "bytes";

void SeeString(std::string_view value, FeatureSurvey* survey) {
  survey->least_bytes = std::min<uint64_t>(survey->least_bytes, value.size());
  survey->most_bytes = std::max<uint64_t>(survey->most_bytes, value.size());
  if (survey->content == kBytes || value.empty()) return;
  std::string content = ContentOf(value);
  if (survey->content.empty()) {
    survey->content = std::move(content);
  } else if (survey->content != content) {
    survey->content = kBytes;
  }
}

void SeeFloat(float value, FeatureSurvey* survey) {
  if (!std::isfinite(value)) {
    ++survey->not_finite;
    return;
  }
  const bool first = survey->finite++ == 0;
  survey->least_float = first ? value : std::min<double>(survey->least_float, value);
  survey->most_float = first ? value : std::max<double>(survey->most_float, value);
}

void See(const inspect::Feature& feature, FeatureSurvey* survey) {
  uint64_t count = 0;
  switch (feature.kind_case()) {
    case inspect::Feature::kBytesList:
      ++survey->bytes;
      count = feature.bytes_list().value_size();
      for (const std::string& value : feature.bytes_list().value()) SeeString(value, survey);
      break;
    case inspect::Feature::kFloatList:
      ++survey->floats;
      count = feature.float_list().value_size();
      for (const float value : feature.float_list().value()) SeeFloat(value, survey);
      break;
    case inspect::Feature::kInt64List:
      ++survey->int64s;
      count = feature.int64_list().value_size();
      for (const int64_t value : feature.int64_list().value()) {
        survey->least_int = std::min(survey->least_int, value);
        survey->most_int = std::max(survey->most_int, value);
      }
      break;
    case inspect::Feature::KIND_NOT_SET:
      return;  // as good as missing
  }
  survey->least_values = std::min(survey->least_values, count);
  survey->most_values = std::max(survey->most_values, count);
}

template <typename Message>
bool HasUnknown(const Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

}  // namespace

FeatureSurvey::Type FeatureSurvey::type() const {
  return bytes > 0 ? Type::kBytes : floats > 0 ? Type::kFloat : Type::kInt64;
}

FeatureSurvey::Form FeatureSurvey::form(uint64_t total) const {
  if (most_values == 0) return Form::kEmpty;
  if ((bytes > 0) + (floats > 0) + (int64s > 0) > 1) return Form::kMixed;
  if (least_values != most_values) return Form::kVariable;
  if (present() == total) return Form::kFixed;
  return most_values == 1 ? Form::kOptional : Form::kVariable;
}

std::string ExampleSurvey::Add(const uint8_t* data, size_t size) {
  inspect::Record record;
  if (!record.ParseFromArray(data, static_cast<int>(size))) return "it is no protobuf message";
  // Nearly any bytes are a message of some kind.
  if (HasUnknown(record) || HasUnknown(record.features()) || HasUnknown(record.feature_lists()) ||
      (size > 0 && !record.has_features() && !record.has_feature_lists())) {
    return "it has fields that an Example has not";
  }
  size_t more = 0;
  for (const auto& [key, feature] : record.features().feature()) more += !features_.contains(key);
  for (const auto& [key, list] : record.feature_lists().feature_list())
    more += !lists_.contains(key);
  if (features_.size() + lists_.size() + more > kMaxFeatures)
    return "with it there are more than " + std::to_string(kMaxFeatures) + " names of features";
  ++records_;
  for (const auto& [key, feature] : record.features().feature()) See(feature, &features_[key]);
  for (const auto& [key, list] : record.feature_lists().feature_list()) {
    FeatureListSurvey& survey = lists_[key];
    const uint64_t steps = list.feature_size();
    ++survey.present;
    survey.steps += steps;
    survey.least_steps = std::min(survey.least_steps, steps);
    survey.most_steps = std::max(survey.most_steps, steps);
    for (const inspect::Feature& feature : list.feature()) See(feature, &survey.step);
  }
  return "";
}

std::string ContentOf(std::string_view bytes) {
  struct Beginning {
    std::string_view bytes;
    const char* name;
  };
  static constexpr Beginning kBeginnings[] = {
      {"\xff\xd8\xff", "JPEG"}, {"\x89PNG\r\n", "PNG"}, {"GIF87a", "GIF"},    {"GIF89a", "GIF"},
      {"fLaC", "FLAC"},         {"OggS", "Ogg"},        {"\x93NUMPY", "npy"},
  };
  for (const Beginning& one : kBeginnings) {
    if (bytes.substr(0, one.bytes.size()) == one.bytes) return one.name;
  }
  if (bytes.size() >= 12 && bytes.substr(0, 4) == "RIFF") {
    if (bytes.substr(8, 4) == "WEBP") return "WebP";
    if (bytes.substr(8, 4) == "WAVE") return "WAV";
  }
  // A header of 14 bytes, the last four but four of which are zeros.
  if (bytes.size() > 14 && bytes.substr(0, 2) == "BM" &&
      bytes.substr(6, 4) == std::string_view("\0\0\0\0", 4))
    return "BMP";
  size_t at = 0;
  while (at < bytes.size()) {
    size_t length = 0;
    const int32_t letter = DecodeUtf8({bytes.data() + at, bytes.size() - at}, &length);
    const bool is_space = letter == '\n' || letter == '\r' || letter == '\t';
    if (letter < 0 || (letter < 0x20 && !is_space) || letter == 0x7f) return kBytes;
    at += length;
  }
  return "text";
}

}  // namespace penstock::ctl
