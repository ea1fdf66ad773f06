#include "client/ctl/inspect/survey_texts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace penstock::ctl {
namespace {

using Form = FeatureSurvey::Form;
using Type = FeatureSurvey::Type;
using nlohmann::json;

constexpr int kBatchRows = 64;

// As specs, Python and people call them.
struct TypeNames {
  const char* field;
  const char* dtype;
};
TypeNames NamesOf(Type type) {
  if (type == Type::kBytes) return {"bytes", "string"};
  return type == Type::kFloat ? TypeNames{"float", "float32"} : TypeNames{"int64", "int64"};
}

bool IsKnown(const FeatureSurvey& feature, uint64_t total) {
  const Form form = feature.form(total);
  return form != Form::kEmpty && form != Form::kMixed;
}

std::string Range(uint64_t least, uint64_t most) {
  return least == most ? absl::StrCat(most) : absl::StrCat(least, " to ", most);
}

std::string TypeOf(const FeatureSurvey& feature) {
  std::vector<std::string> types;
  if (feature.bytes > 0) types.push_back("bytes");
  if (feature.floats > 0) types.push_back("float32");
  if (feature.int64s > 0) types.push_back("int64");
  return types.empty() ? "?" : absl::StrJoin(types, "|");
}

std::string ValuesOf(const FeatureSurvey& feature) {
  return feature.present() == 0 ? "0" : Range(feature.least_values, feature.most_values);
}

std::string RangesOf(const FeatureSurvey& feature) {
  std::vector<std::string> ranges;
  if (feature.bytes > 0 && feature.least_bytes != UINT64_MAX) {
    ranges.push_back(absl::StrCat(feature.content.empty() ? "bytes" : feature.content, ", ",
                                  Range(feature.least_bytes, feature.most_bytes),
                                  feature.most_bytes == 1 ? " byte each" : " bytes each"));
  }
  if (feature.finite > 0)
    ranges.push_back(absl::StrFormat("%.6g to %.6g", feature.least_float, feature.most_float));
  if (feature.not_finite > 0)
    ranges.push_back(absl::StrCat(feature.not_finite, " infinite or not a number"));
  if (feature.int64s > 0 && feature.least_int <= feature.most_int) {
    ranges.push_back(feature.least_int == feature.most_int
                         ? absl::StrCat(feature.most_int)
                         : absl::StrCat(feature.least_int, " to ", feature.most_int));
  }
  return absl::StrJoin(ranges, "; ");
}

// 99.96 % is not all.
std::string Share(uint64_t part, uint64_t total) {
  if (part == total) return "100 %";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(total);
  return absl::StrFormat("%.1f %%", std::min(percent, 99.9));
}

std::string Shown(const std::string& key) { return absl::Utf8SafeCEscape(key); }

struct Row {
  std::string name, type, present, values, range;
};

void AppendRow(const std::vector<size_t>& widths, const Row& row, std::string* out) {
  std::string line;
  const std::string* cells[] = {&row.name, &row.type, &row.present, &row.values};
  for (size_t i = 0; i < widths.size(); ++i)
    absl::StrAppendFormat(&line, "%-*s  ", static_cast<int>(widths[i]), *cells[i]);
  line += row.range;
  absl::StripTrailingAsciiWhitespace(&line);
  absl::StrAppend(out, line, "\n");
}

// What no parsing can be written for, and why.
std::string Problem(const std::string& key, const FeatureSurvey& feature) {
  if (feature.most_values == 0)
    return absl::StrCat("\"", Shown(key), "\" has no value in any record: its type is not known");
  return absl::StrCat("\"", Shown(key), "\" is of several types (bytes in ", feature.bytes,
                      ", float32 in ", feature.floats, ", int64 in ", feature.int64s,
                      " records): nothing reads all of them");
}

json ToJson(const FeatureSurvey& feature, uint64_t total) {
  static constexpr const char* kForms[] = {"fixed", "optional", "variable", "mixed", "empty"};
  json out = {{"type", TypeOf(feature)},
              {"form", kForms[static_cast<int>(feature.form(total))]},
              {"present", feature.present()}};
  if (feature.present() > 0) {
    out["least_values"] = feature.least_values;
    out["most_values"] = feature.most_values;
  }
  if (feature.int64s > 0 && feature.least_int <= feature.most_int) {
    out["least"] = feature.least_int;
    out["most"] = feature.most_int;
  }
  if (feature.finite > 0) {
    out["least"] = feature.least_float;
    out["most"] = feature.most_float;
  }
  if (feature.floats > 0) out["not_finite"] = feature.not_finite;
  if (feature.bytes > 0 && feature.least_bytes != UINT64_MAX) {
    out["least_bytes"] = feature.least_bytes;
    out["most_bytes"] = feature.most_bytes;
    out["content"] = feature.content.empty() ? "bytes" : feature.content;
  }
  return out;
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

// Python's literals are JSON's, but for what is not ASCII, which stands as it is.
std::string Literal(const std::string& text) { return json(text).dump(); }

// The name of a pipeline, of the first file's.
std::string NameOf(const SurveyedFiles& files) {
  std::string name = files.patterns.empty() ? "" : files.patterns[0];
  name = name.substr(name.rfind('/') + 1);
  size_t end = 0;
  while (end < name.size() && (absl::ascii_isalnum(name[end]) || name[end] == '_')) ++end;
  return end == 0 ? "records" : name.substr(0, end);
}

std::string SpecFeature(const std::string& key, const FeatureSurvey& feature, uint64_t total) {
  const TypeNames names = NamesOf(feature.type());
  std::string kind;
  switch (feature.form(total)) {
    case Form::kFixed:
      kind = absl::StrCat(
          names.field, " {",
          feature.most_values == 1 ? " " : absl::StrCat(" shape: ", feature.most_values, " "), "}");
      break;
    case Form::kOptional:
      kind = absl::StrCat(
          names.field, " { default_value: ", feature.type() == Type::kBytes ? "\"\"" : "0", " }");
      break;
    default:
      kind = absl::StrCat("sparse { dtype: \"", names.dtype, "\" }");
  }
  return absl::StrCat("key: ", Quoted(key), " ", kind);
}

std::string SpecList(const std::string& key, const FeatureListSurvey& list, uint64_t records) {
  const TypeNames names = NamesOf(list.step.type());
  if (list.step.form(list.steps) != Form::kFixed)
    return absl::StrCat("key: ", Quoted(key), " sparse { dtype: \"", names.dtype, "\" }");
  return absl::StrCat(
      "key: ", Quoted(key), " sequence { dtype: \"", names.dtype, "\" ",
      list.step.most_values == 1 ? "" : absl::StrCat("shape: ", list.step.most_values, " "),
      list.present == records ? "" : "allow_missing: true ", "}");
}

// What the values are, behind a line of a spec or of Python.
std::string Comment(const FeatureSurvey& feature, uint64_t total) {
  std::string text = absl::StrCat("  # ", RangesOf(feature));
  if (feature.form(total) == Form::kOptional)
    absl::StrAppend(&text, "; in ", Share(feature.present(), total), " of the records");
  return text;
}

std::string PythonFeature(const FeatureSurvey& feature, uint64_t total) {
  const char* const dtype = NamesOf(feature.type()).dtype;
  switch (feature.form(total)) {
    case Form::kFixed:
      return absl::StrCat("penstock.io.FixedLenFeature([",
                          feature.most_values == 1 ? "" : absl::StrCat(feature.most_values),
                          "], penstock.", dtype, ")");
    case Form::kOptional:
      return absl::StrCat("penstock.io.FixedLenFeature([], penstock.", dtype, ", default_value=",
                          feature.type() == Type::kBytes   ? "b\"\""
                          : feature.type() == Type::kFloat ? "0.0"
                                                           : "0",
                          ")");
    default:
      return absl::StrCat("penstock.io.VarLenFeature(penstock.", dtype, ")");
  }
}

std::string PythonList(const FeatureListSurvey& list, uint64_t records) {
  const char* const dtype = NamesOf(list.step.type()).dtype;
  if (list.step.form(list.steps) != Form::kFixed)
    return absl::StrCat("penstock.io.VarLenFeature(penstock.", dtype, ")");
  return absl::StrCat("penstock.io.FixedLenSequenceFeature([",
                      list.step.most_values == 1 ? "" : absl::StrCat(list.step.most_values),
                      "], penstock.", dtype,
                      list.present == records ? ")" : ", allow_missing=True)");
}

std::string PythonDict(const char* name, const std::vector<std::string>& lines) {
  return absl::StrCat(name, " = {\n", absl::StrJoin(lines, ""), "}\n");
}

}  // namespace

std::string SurveyTable(const ExampleSurvey& survey, const SurveyedFiles& files) {
  std::string out =
      absl::StrCat(survey.records(), files.whole ? " records in " : " records looked at, of ",
                   files.files, files.files == 1 ? " file" : " files",
                   files.compression.empty() ? "" : absl::StrCat(", ", files.compression), "\n\n");
  std::vector<Row> rows = {{"FEATURE", "TYPE", "PRESENT", "VALUES", "RANGE"}};
  for (const auto& [key, feature] : survey.features()) {
    rows.push_back({Shown(key), TypeOf(feature), Share(feature.present(), survey.records()),
                    ValuesOf(feature), RangesOf(feature)});
  }
  for (const auto& [key, list] : survey.lists()) {
    rows.push_back(
        {Shown(key), TypeOf(list.step), Share(list.present, survey.records()),
         absl::StrCat(Range(list.least_steps, list.most_steps), " steps of ", ValuesOf(list.step)),
         RangesOf(list.step)});
  }
  std::vector<size_t> widths(4);
  for (const Row& row : rows) {
    const std::string* cells[] = {&row.name, &row.type, &row.present, &row.values};
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], cells[i]->size());
  }
  for (const Row& row : rows) AppendRow(widths, row, &out);
  return out;
}

std::string SurveyJson(const ExampleSurvey& survey, const SurveyedFiles& files) {
  json out = {{"records", survey.records()},
              {"num_files", files.files},
              {"whole", files.whole},
              {"compression", files.compression},
              {"features", json::object()}};
  for (const auto& [key, feature] : survey.features())
    out["features"][key] = ToJson(feature, survey.records());
  for (const auto& [key, list] : survey.lists()) {
    out["feature_lists"][key] = {{"present", list.present},
                                 {"least_steps", list.least_steps},
                                 {"most_steps", list.most_steps},
                                 {"step", ToJson(list.step, list.steps)}};
  }
  return out.dump(2) + "\n";
}

std::string SurveySpec(const ExampleSurvey& survey, const SurveyedFiles& files) {
  std::string source = "stage { tfrecord {";
  for (const std::string& pattern : files.patterns)
    absl::StrAppend(&source, " files: ", Quoted(pattern));
  if (!files.compression.empty())
    absl::StrAppend(&source, " compression: ", Quoted(files.compression));
  absl::StrAppend(&source, " } }\n");
  const std::string batch = absl::StrCat("stage { batch { batch_size: ", kBatchRows, " } }\n");

  const bool has_lists = survey.has_lists();
  std::string parse =
      has_lists ? "stage {\n  parse_sequence_example {\n" : "stage {\n  parse_example {\n";
  const char* const field = has_lists ? "context" : "feature";
  for (const auto& [key, feature] : survey.features()) {
    if (!IsKnown(feature, survey.records())) {
      absl::StrAppend(&parse, "    # ", Problem(key, feature), "\n");
      continue;
    }
    absl::StrAppend(&parse, "    ", field, " { ", SpecFeature(key, feature, survey.records()), " }",
                    Comment(feature, survey.records()), "\n");
  }
  for (const auto& [key, list] : survey.lists()) {
    if (!IsKnown(list.step, list.steps)) {
      absl::StrAppend(&parse, "    # ", Problem(key, list.step), "\n");
      continue;
    }
    absl::StrAppend(&parse, "    sequence { ", SpecList(key, list, survey.records()), " }  # ",
                    RangesOf(list.step), "\n");
  }
  parse += "  }\n}\n";
  // Lists are padded to the longest of a batch, where they are parsed behind it.
  return absl::StrCat("name: ", Quoted(NameOf(files)), "\n", source, has_lists ? batch : parse,
                      has_lists ? parse : batch);
}

std::string SurveyPython(const ExampleSurvey& survey, const SurveyedFiles& files) {
  std::vector<std::string> features, sequences;
  for (const auto& [key, feature] : survey.features()) {
    features.push_back(IsKnown(feature, survey.records())
                           ? absl::StrCat("    ", Literal(key), ": ",
                                          PythonFeature(feature, survey.records()), ",",
                                          Comment(feature, survey.records()), "\n")
                           : absl::StrCat("    # ", Problem(key, feature), "\n"));
  }
  for (const auto& [key, list] : survey.lists()) {
    sequences.push_back(IsKnown(list.step, list.steps)
                            ? absl::StrCat("    ", Literal(key), ": ",
                                           PythonList(list, survey.records()), ",  # ",
                                           RangesOf(list.step), "\n")
                            : absl::StrCat("    # ", Problem(key, list.step), "\n"));
  }
  std::vector<std::string> paths;
  for (const std::string& pattern : files.patterns) paths.push_back(Literal(pattern));
  const std::string given =
      paths.size() == 1 ? paths[0] : absl::StrCat("[", absl::StrJoin(paths, ", "), "]");
  const std::string dataset = absl::StrCat(
      "dataset = penstock.TFRecordDataset(", given,
      files.compression.empty() ? ""
                                : absl::StrCat(", compression_type=", Literal(files.compression)),
      ")");
  if (!survey.has_lists()) {
    return absl::StrCat("import penstock\n\n", PythonDict("features", features), dataset,
                        ".parse_example(features).batch(", kBatchRows, ")\n");
  }
  return absl::StrCat(
      "import penstock\n\n", PythonDict("context", features), PythonDict("sequences", sequences),
      dataset, ".batch(", kBatchRows,
      ").map(lambda x: penstock.io.parse_sequence_example(x, context, sequences))\n");
}

}  // namespace penstock::ctl
