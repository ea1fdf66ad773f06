#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_error.h"
#include "client/ctl/named_output.h"
#include "client/ctl/shards.h"
#include "client/ctl/write.h"
#include "io/record/example_builder.h"
#include "io/record/tfrecord_writer.h"

namespace penstock::ctl {
namespace {

using nlohmann::json;

// How deep the objects of one line may stand in each other.
constexpr size_t kNestingMax = 64;

enum class Kind { kUnknown, kBytes, kInt64, kFloat };

constexpr const char* kKindNames[] = {"an empty list", "a string", "an integer", "a number"};

// What the lines seen so far say about a field.
struct Field {
  Kind kind = Kind::kUnknown;
  uint64_t line = 0;  // the first that decided it
};

using Fields = std::map<std::string, Field>;

absl::Status Error(absl::string_view what, const std::string& path, uint64_t line,
                   absl::string_view field) {
  return absl::InvalidArgumentError(absl::StrCat(what, " (", path, ", line ", line,
                                                 field.empty() ? "" : ", field \"", field,
                                                 field.empty() ? ")" : "\")"));
}

absl::StatusOr<Kind> KindOf(const json& value) {
  switch (value.type()) {
    case json::value_t::string:
      return Kind::kBytes;
    case json::value_t::boolean:
    case json::value_t::number_integer:
      return Kind::kInt64;
    case json::value_t::number_unsigned:
      if (value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
        return absl::InvalidArgumentError(absl::StrCat("integer beyond int64: ", value.dump()));
      }
      return Kind::kInt64;
    case json::value_t::number_float:
      // What is not finite was written so.
      if (std::isfinite(value.get<double>()) &&
          !std::isfinite(static_cast<float>(value.get<double>()))) {
        return absl::InvalidArgumentError(absl::StrCat("number beyond float32: ", value.dump()));
      }
      return Kind::kFloat;
    case json::value_t::null:
      return absl::InvalidArgumentError(
          "null has no counterpart in an Example: leave the field out");
    case json::value_t::array:
      return absl::InvalidArgumentError(
          "a list in a list: write one flat list, and give its shape in parse_example");
    default:
      return absl::InvalidArgumentError(
          "a list of objects has no counterpart in an Example: read the lines as they are "
          "(json_lines)");
  }
}

absl::Status Learn(const json& value, uint64_t line, Field* field) {
  const absl::StatusOr<Kind> kind = KindOf(value);
  if (!kind.ok()) return kind.status();
  if (field->kind == Kind::kUnknown) *field = {*kind, line};
  if ((field->kind == Kind::kBytes) != (*kind == Kind::kBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", kKindNames[static_cast<int>(field->kind)], " as on line ", field->line,
        ", found ", value.dump(-1, ' ', false, json::error_handler_t::replace)));
  }
  if (*kind == Kind::kFloat && field->kind == Kind::kInt64) *field = {Kind::kFloat, line};
  return absl::OkStatus();
}

// NaN, Infinity and -Infinity, which Python's json writes and the library does not read: by the ordinal of the number in the line's text.
using NotFinite = std::map<uint64_t, double>;

// Writes numbers of the same length in their places.
NotFinite ReplaceNotFinite(std::string* line) {
  struct Word {
    std::string_view text;
    std::string_view number;
    double value;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr Word kWords[] = {{"NaN", "0.0", std::numeric_limits<double>::quiet_NaN()},
                                    {"Infinity", "0.000000", kInfinity},
                                    {"-Infinity", "-0.000000", -kInfinity}};
  constexpr std::string_view kNumber = "+-.0123456789eE";
  // What stands around a value.
  const auto ends = [line](size_t at) {
    return at >= line->size() ||
           std::string_view(" \t\r,:[]{}").find((*line)[at]) != std::string_view::npos;
  };
  NotFinite found;
  uint64_t ordinal = 0;
  for (size_t at = 0; at < line->size();) {
    const char letter = (*line)[at];
    if (letter == '"') {
      for (++at; at < line->size() && (*line)[at] != '"'; ++at) at += (*line)[at] == '\\';
      ++at;
      continue;
    }
    const Word* word = std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& one) {
      return std::string_view(*line).substr(at, one.text.size()) == one.text &&
             (at == 0 || ends(at - 1)) && ends(at + one.text.size());
    });
    if (word != std::end(kWords)) {
      line->replace(at, word->number.size(), word->number);
      found[ordinal++] = word->value;
      at += word->number.size();
    } else if (letter == '-' || (letter >= '0' && letter <= '9')) {
      ++ordinal;
      at = std::min(line->find_first_not_of(kNumber, at), line->size());
    } else {
      ++at;
    }
  }
  return found;
}

// The library's own builder takes an integer of more than 64 bits for a fraction.
class Builder : public nlohmann::detail::json_sax_dom_parser<json> {
 public:
  Builder(json& into, NotFinite not_finite)
      : json_sax_dom_parser(into), not_finite_(std::move(not_finite)) {}

  bool number_integer(int64_t value) {
    ++num_numbers_;
    return json_sax_dom_parser::number_integer(value);
  }

  bool number_unsigned(uint64_t value) {
    ++num_numbers_;
    return json_sax_dom_parser::number_unsigned(value);
  }

  bool number_float(double value, const std::string& text) {
    const auto not_finite = not_finite_.find(num_numbers_++);
    if (not_finite != not_finite_.end()) value = not_finite->second;
    if (text.find_first_of(".eE") == std::string::npos) {
      beyond_ = text;
      return false;
    }
    return json_sax_dom_parser::number_float(value, text);
  }

  // The integer that ended the parse.
  const std::string& beyond() const { return beyond_; }

 private:
  const NotFinite not_finite_;
  uint64_t num_numbers_ = 0;
  std::string beyond_;
};

// Calls `visit(line, object)` for each line.
template <typename Visit>
absl::Status ForEachObject(const std::string& path, Visit visit) {
  // A pipe gives its lines once.
  std::error_code ignored;
  const std::filesystem::file_status found = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a regular file, which is read twice: ", path));
  }
  std::ifstream file(path);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::string text;
  for (uint64_t line = 1; std::getline(file, text); ++line) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    json object;
    Builder builder(object, ReplaceNotFinite(&text));
    try {
      json::sax_parse(text, &builder);
    } catch (const json::parse_error& error) {
      return Error(absl::StrCat("not JSON at column ", error.byte), path, line, "");
    } catch (const json::out_of_range&) {
      return Error("number beyond float64", path, line, "");
    }
    if (!builder.beyond().empty()) {
      return Error(absl::StrCat("integer beyond int64: ", builder.beyond()), path, line, "");
    }
    if (!object.is_object()) {
      return Error("expected a JSON object, such as {\"x\": [1, 2], \"y\": 3}", path, line, "");
    }
    if (absl::Status status = visit(line, object); !status.ok()) return status;
  }
  if (file.bad()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  return absl::OkStatus();
}

// Calls `visit(element)` for each of a list, or for what is none. Nothing is copied: a copy of lists in lists would take a stack as deep.
template <typename Visit>
void ForEachElement(const json& value, Visit visit) {
  if (!value.is_array()) return visit(value);
  for (const json& element : value) visit(element);
}

// Calls `visit(name, value)` for each field of an object, and of objects in it: "user.name".
template <typename Visit>
absl::Status ForEachField(const json& object, const std::string& prefix, size_t depth,
                          std::set<std::string>* names, const Visit& visit) {
  if (depth > kNestingMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("objects nest more than ", kNestingMax, " deep"));
  }
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : absl::StrCat(prefix, ".", key);
    absl::Status status;
    if (value.is_object()) {
      status = ForEachField(value, name, depth + 1, names, visit);
    } else if (!names->insert(name).second) {
      status = absl::InvalidArgumentError(absl::StrCat(
          "two values are called \"", name, "\": a key has a dot where objects are joined by one"));
    } else {
      status = visit(name, value);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The fields of one line that are wanted: all, if `wanted` is empty.
template <typename Visit>
absl::Status ForEachWanted(const json& object, const std::set<std::string>& wanted,
                           const Visit& visit) {
  std::set<std::string> names;
  return ForEachField(object, "", 1, &names, [&](const std::string& name, const json& value) {
    return wanted.empty() || wanted.count(name) > 0 ? visit(name, value) : absl::OkStatus();
  });
}

struct Learned {
  Fields fields;
  uint64_t num_lines = 0;
};

absl::StatusOr<Learned> LearnFields(const std::string& path, const std::set<std::string>& wanted) {
  Learned result;
  absl::Status status = ForEachObject(path, [&](uint64_t line, const json& object) {
    ++result.num_lines;
    std::string field_name;
    const absl::Status found =
        ForEachWanted(object, wanted, [&](const std::string& name, const json& value) {
          Field& field = result.fields[name];
          absl::Status learned;
          ForEachElement(value, [&](const json& element) {
            if (learned.ok()) learned = Learn(element, line, &field);
          });
          if (!learned.ok()) field_name = name;
          return learned;
        });
    return found.ok() ? found : Error(found.message(), path, line, field_name);
  });
  if (!status.ok()) return status;
  for (const std::string& name : wanted) {
    if (result.fields.count(name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("no line has the field \"", name, "\" of --fields (", path, ")"));
  }
  return result;
}

// One file, or shards of consecutive records, whose numbers of records differ by one at most.
class OutputFiles {
 public:
  static absl::StatusOr<OutputFiles> Create(const std::string& out, int num_shards) {
    OutputFiles files;
    if (num_shards == 0) {
      const absl::StatusOr<NamedOutput> output = NamedOutput::For(out);
      if (!output.ok()) return output.status();
      auto writer = output->Create(out);
      if (!writer.ok()) return writer.status();
      files.one_ = *std::move(writer);
      return files;
    }
    const std::filesystem::path path(out);
    std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    // Which is no path: its slashes stay as they are.
    if (IsAddress(out)) folder = out.substr(0, out.rfind('/'));
    auto shards = ShardSet::Create(folder, path.stem().string(), num_shards);
    if (!shards.ok()) return shards.status();
    files.shards_.emplace(*std::move(shards));
    return files;
  }

  TfrecordWriter& Of(uint64_t record, uint64_t num_records) {
    if (one_ != nullptr) return *one_;
    const auto size = static_cast<unsigned __int128>(shards_->size());
    return (*shards_)[static_cast<int>(record * size / num_records)];
  }

  absl::Status Close() { return one_ != nullptr ? one_->Close() : shards_->Close(); }

 private:
  std::unique_ptr<TfrecordWriter> one_;
  std::optional<ShardSet> shards_;
};

void AddFeature(const std::string& name, const json& value, Kind kind, ExampleBuilder* example) {
  if (kind == Kind::kBytes) {
    std::vector<std::string_view> values;
    ForEachElement(value, [&](const json& element) {
      values.push_back(element.get_ref<const std::string&>());
    });
    example->AddBytesList(name, values);
  } else if (kind == Kind::kFloat) {
    std::vector<float> values;
    ForEachElement(value, [&](const json& element) {
      values.push_back(element.is_boolean() ? static_cast<float>(element.get<bool>())
                                            : element.get<float>());
    });
    example->AddFloat(name, values);
  } else {
    std::vector<int64_t> values;
    ForEachElement(value, [&](const json& element) {
      values.push_back(element.is_boolean() ? element.get<bool>() : element.get<int64_t>());
    });
    example->AddInt64(name, values);
  }
}

}  // namespace

absl::StatusOr<uint64_t> WriteJsonLines(const JsonLinesOptions& options) {
  const std::set<std::string> wanted(options.fields.begin(), options.fields.end());
  // Whether a field holds integers or fractions is known only at the last line, so the file is read
  // twice.
  auto learned = LearnFields(options.path, wanted);
  if (!learned.ok()) return learned.status();
  auto shards = OutputFiles::Create(options.out, options.num_shards);
  if (!shards.ok()) return shards.status();
  ExampleBuilder example;
  uint64_t written = 0;
  absl::Status status = ForEachObject(options.path, [&](uint64_t line, const json& object) {
    if (written == learned->num_lines)
      return Error("the file has more lines than a moment ago", options.path, line, "");
    example.Clear();
    absl::Status added =
        ForEachWanted(object, wanted, [&](const std::string& name, const json& value) {
          AddFeature(name, value, learned->fields.at(name).kind, &example);
          return absl::OkStatus();
        });
    if (!added.ok()) return Error(added.message(), options.path, line, "");
    return shards->Of(written++, learned->num_lines).Write(example.Serialize());
  });
  if (!status.ok()) return status;
  if (written < learned->num_lines) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file has fewer lines than a moment ago (", options.path, ")"));
  }
  if (status = shards->Close(); !status.ok()) return status;
  return written;
}

}  // namespace penstock::ctl
