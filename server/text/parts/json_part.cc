#include "server/text/parts/json_part.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace penstock::text {
namespace {

constexpr size_t kShownBytes = 60;

const nlohmann::json& Null() {
  static const auto& null = *new nlohmann::json;
  return null;
}

std::string Shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return absl::StrCat("an array of ", value.size());
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() <= kShownBytes ? text : absl::StrCat(text.substr(0, kShownBytes), "...");
}

}  // namespace

absl::Status JsonPart::Refuse(std::string_view expected) const {
  return absl::InvalidArgumentError(absl::StrCat(path_.empty() ? "the document" : path_,
                                                 ": expected ", std::string(expected), ", found ",
                                                 Shown(*value_)));
}

absl::Status JsonPart::NotSupported(std::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": ", std::string(what), " is not supported"));
}

absl::Status JsonPart::MustBeObject() const {
  return value_->is_object() ? absl::OkStatus() : Refuse("an object");
}

absl::Status JsonPart::OnlyMembers(std::initializer_list<std::string_view> names) const {
  if (absl::Status status = MustBeObject(); !status.ok()) return status;
  for (const auto& [name, value] : value_->items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        (*this)[name].path(), ": expected no member of this name, found ", Shown(value)));
  }
  return absl::OkStatus();
}

JsonPart JsonPart::operator[](std::string_view name) const {
  std::string path = absl::StrCat(path_, path_.empty() ? "" : ".",
                                  absl::CHexEscape(absl::string_view(name.data(), name.size())));
  if (!value_->is_object()) return {Null(), std::move(path)};
  const auto found = value_->find(std::string(name));
  return {found == value_->end() ? Null() : *found, std::move(path)};
}

bool JsonPart::is_null() const { return value_->is_null(); }
bool JsonPart::is_array() const { return value_->is_array(); }
bool JsonPart::is_text() const { return value_->is_string(); }
size_t JsonPart::size() const { return value_->size(); }

JsonPart JsonPart::At(size_t i) const { return {(*value_)[i], absl::StrCat(path_, "[", i, "]")}; }

absl::Status JsonPart::Read(std::string* value) const {
  if (is_null()) return absl::OkStatus();
  if (!value_->is_string()) return Refuse("a text");
  *value = value_->get_ref<const std::string&>();
  return absl::OkStatus();
}

absl::Status JsonPart::Read(bool* value) const {
  if (is_null()) return absl::OkStatus();
  if (!value_->is_boolean()) return Refuse("true or false");
  *value = value_->get<bool>();
  return absl::OkStatus();
}

absl::Status JsonPart::Read(double* value) const {
  if (is_null()) return absl::OkStatus();
  if (!value_->is_number()) return Refuse("a number");
  *value = value_->get<double>();
  return absl::OkStatus();
}

absl::Status JsonPart::ReadId(uint32_t* value) const {
  if (is_null()) return absl::OkStatus();
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() > INT32_MAX)
    return Refuse("an integer from 0 to 2147483647");
  *value = value_->get<uint32_t>();
  return absl::OkStatus();
}

}  // namespace penstock::text
