// A part of a tokenizer.json and where it stands in the file, so that every refusal names its
// place.
//
// Threads:  safe from any thread.
// Owns:     nothing; the document outlives it.
// Errors:   InvalidArgument "model.merges[3]: expected ..., found ...".
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"

namespace penstock::text {

class JsonPart {
 public:
  JsonPart(const nlohmann::json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  // Says what was expected of this part and what it is.
  absl::Status Refuse(std::string_view expected) const;
  // Says that what this part asks for is not there.
  absl::Status NotSupported(std::string_view what) const;

  absl::Status MustBeObject() const;
  // Refuses members whose names nobody knows.
  absl::Status OnlyMembers(std::initializer_list<std::string_view> names) const;

  // A member that is missing counts as null.
  JsonPart operator[](std::string_view name) const;
  JsonPart At(size_t i) const;  // REQUIRES: an array that long
  bool is_null() const;
  bool is_array() const;
  bool is_text() const;
  size_t size() const;  // of an array or object

  // Each leaves `*value` alone where the part is null.
  absl::Status Read(std::string* value) const;
  absl::Status Read(bool* value) const;
  absl::Status Read(double* value) const;
  // An id: from 0 to 2^31 - 1.
  absl::Status ReadId(uint32_t* value) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace penstock::text
