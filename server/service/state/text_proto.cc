#include "server/service/state/text_proto.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/signature.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/unknown_field_set.h"
#include "server/codec/wire.h"

namespace penstock {
namespace {

// Of a string, in a message.
constexpr size_t kMaxShown = 512;

// Keeps the first error: what follows it is mostly its consequence.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (found) return;
    found = true;
    this->line = line;
    this->column = column;
    this->message = message;
  }

  bool found = false;
  int line = 0;  // from 0
  int column = 0;
  std::string message;
};

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor.field_count(); ++i) names.push_back(descriptor.field(i)->name());
  return names;
}

// What somebody meant, or all that there are.
std::string NearOrAll(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = DidYouMean(name, known);
  return near.empty() ? absl::StrCat("; known are ", absl::StrJoin(known, ", ")) : near;
}

// The two names that stand in quotation marks in a complaint of the parser's.
std::optional<std::pair<std::string, std::string>> QuotedNames(absl::string_view message,
                                                               absl::string_view before,
                                                               absl::string_view between) {
  const size_t middle = message.find(between);
  if (!absl::StartsWith(message, before) || middle == message.npos) return std::nullopt;
  const absl::string_view second = message.substr(middle + between.size());
  return std::pair(std::string(message.substr(before.size(), middle - before.size())),
                   std::string(second.substr(0, second.find('"'))));
}

// The parser's complaint about an unknown field is
// `Message type "penstock.v1.Stage" has no field named "mpa".`
std::optional<std::string> SayUnknownField(const google::protobuf::DescriptorPool& pool,
                                           absl::string_view message) {
  const auto names = QuotedNames(message, "Message type \"", "\" has no field named \"");
  if (!names) return std::nullopt;
  const auto& [type, field] = *names;
  const google::protobuf::Descriptor* descriptor = pool.FindMessageTypeByName(type);
  if (descriptor == nullptr) return std::nullopt;
  return absl::StrCat("unknown field \"", field, "\" in ", descriptor->name(),
                      NearOrAll(field, FieldNames(*descriptor)));
}

// The names that a field of this name takes, in any of the messages that may be within `root`.
void AddEnumNames(const google::protobuf::Descriptor& root, absl::string_view field,
                  std::set<const google::protobuf::Descriptor*>* seen,
                  std::vector<std::string>* names) {
  if (!seen->insert(&root).second) return;
  for (int i = 0; i < root.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& one = *root.field(i);
    if (one.message_type() != nullptr) AddEnumNames(*one.message_type(), field, seen, names);
    if (one.enum_type() == nullptr || one.name() != field) continue;
    for (int value = 0; value < one.enum_type()->value_count(); ++value) {
      const std::string& name = one.enum_type()->value(value)->name();
      // Nobody writes that nothing is said.
      if (absl::EndsWith(name, "_UNSPECIFIED") || absl::c_linear_search(*names, name)) continue;
      names->push_back(name);
    }
  }
}

// The parser's complaint about an unknown name of an enumeration is
// `Unknown enumeration value of "RIGHT_REED" for field "rights".`
std::optional<std::string> SayUnknownValue(const google::protobuf::Descriptor& root,
                                           absl::string_view message) {
  const auto quoted = QuotedNames(message, "Unknown enumeration value of \"", "\" for field \"");
  if (!quoted) return std::nullopt;
  const auto& [value, field] = *quoted;
  std::set<const google::protobuf::Descriptor*> seen;
  std::vector<std::string> names;
  AddEnumNames(root, field, &seen, &names);
  if (names.empty()) return std::nullopt;
  return absl::StrCat("unknown value \"", value, "\" of ", field, NearOrAll(value, names));
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ParseInfoTree = google::protobuf::TextFormat::ParseInfoTree;

struct BadString {
  const FieldDescriptor* field = nullptr;
  std::string text = "";
  int line = 0;  // from 0, as `column`; those of the text's beginning where the parser has none
  int column = 0;
};

// The first string that is not UTF-8, which only a log would tell of: it could not be sent or kept.
// `tree` may be null.
std::optional<BadString> FindBadString(const Message& message, const ParseInfoTree* tree) {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_list = field->is_repeated();
    const int size = is_list ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      const int index = is_list ? i : -1;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const Message& inner = is_list ? reflection.GetRepeatedMessage(message, field, i)
                                       : reflection.GetMessage(message, field);
        auto found =
            FindBadString(inner, tree == nullptr ? nullptr : tree->GetTreeForNested(field, index));
        if (found) return found;
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        const std::string value = is_list ? reflection.GetRepeatedString(message, field, i)
                                          : reflection.GetString(message, field);
        if (wire::IsUtf8(value)) continue;
        BadString bad{field, value};
        if (tree == nullptr) return bad;
        auto location = tree->GetLocation(field, index);
        // The values of a list in brackets have one place together.
        for (int before = i - 1; location.line < 0 && before >= 0; --before)
          location = tree->GetLocation(field, before);
        bad.line = std::max(0, location.line);
        bad.column = std::max(0, location.column);
        return bad;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckText(const Message& message) {
  const std::optional<BadString> bad = FindBadString(message, nullptr);
  if (!bad) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      bad->field->name(), ": expected text in UTF-8, found ", ReadableUtf8(bad->text, kMaxShown)));
}

absl::Status CheckFields(const Message& message) {
  const auto& reflection = *message.GetReflection();
  if (const auto& unknown = reflection.GetUnknownFields(message); !unknown.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown field ", unknown.field(0).number(),
                                                   " in ", message.GetDescriptor()->name(),
                                                   ": the client is newer than this daemon"));
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int size = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      const absl::Status status =
          CheckFields(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                           : reflection.GetMessage(message, field));
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ParseTextProto(absl::string_view text, absl::string_view file_name,
                            google::protobuf::Message* message) {
  TextPlaces places;
  return ParseTextProto(text, file_name, message, &places);
}

absl::Status ParseTextProto(absl::string_view text, absl::string_view file_name,
                            google::protobuf::Message* message, TextPlaces* places) {
  places->file_name_ = std::string(file_name);
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_name, ": text longer than limit: ", text.size(), " > ", kMaxTextBytes, " bytes"));
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(64);
  parser.WriteLocationsTo(&places->tree_);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&stream, message)) {
    const std::optional<BadString> bad = FindBadString(*message, &places->tree_);
    if (!bad) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(file_name, ":", bad->line + 1, ":",
                                                   bad->column + 1, ": ", bad->field->name(),
                                                   ": expected text in UTF-8, found other bytes"));
  }
  std::string what = "not a message in Protobuf's text format";
  if (error.found) {
    const google::protobuf::Descriptor& root = *message->GetDescriptor();
    auto unknown = SayUnknownField(*root.file()->pool(), error.message);
    if (!unknown) unknown = SayUnknownValue(root, error.message);
    what = unknown.value_or(error.message);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file_name, ":", error.line + 1, ":", error.column + 1, ": ", what));
}

std::string TextPlaces::Of(const google::protobuf::Message& message, absl::string_view path) const {
  const google::protobuf::TextFormat::ParseInfoTree* tree = &tree_;
  const google::protobuf::Descriptor* descriptor = message.GetDescriptor();
  std::string place = file_name_;
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    int index = -1;
    const size_t bracket = part.find('[');
    if (bracket != part.npos &&
        !absl::SimpleAtoi(part.substr(bracket + 1, part.find(']') - bracket - 1), &index))
      break;
    const google::protobuf::FieldDescriptor* field =
        descriptor->FindFieldByName(std::string(part.substr(0, bracket)));
    if (field == nullptr) break;
    if (field->is_repeated() && index < 0) index = 0;
    const auto location = tree->GetLocation(field, field->is_repeated() ? index : -1);
    if (location.line >= 0)
      place = absl::StrCat(file_name_, ":", location.line + 1, ":", location.column + 1);
    descriptor = field->message_type();
    if (descriptor == nullptr) break;
    tree = tree->GetTreeForNested(field, field->is_repeated() ? index : -1);
    if (tree == nullptr) break;
  }
  return place;
}

}  // namespace penstock
