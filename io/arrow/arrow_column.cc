#include "io/arrow/arrow_column.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/signature.h"

namespace penstock {
namespace {

using Kind = ArrowLevel::Kind;

bool IsView(ArrowKind kind) {
  return kind == ArrowKind::kBinaryView || kind == ArrowKind::kUtf8View;
}

// Whether the first buffer of such a field says which values are null.
bool HasBitmap(ArrowKind kind) {
  return kind != ArrowKind::kNull && kind != ArrowKind::kUnion && kind != ArrowKind::kRunEndEncoded;
}

// The buffers of one field, without its children's.
uint32_t OwnBuffers(const ArrowField& field, bool before_version_5) {
  if (field.dictionary) return 2;
  switch (field.type.kind) {
    case ArrowKind::kNull:
    case ArrowKind::kRunEndEncoded:
      return 0;
    case ArrowKind::kStruct:
    case ArrowKind::kFixedSizeList:
      return 1;
    case ArrowKind::kUnion:
      return (field.type.is_sparse ? 1 : 2) + (before_version_5 ? 1 : 0);
    case ArrowKind::kBinary:
    case ArrowKind::kUtf8:
    case ArrowKind::kLargeBinary:
    case ArrowKind::kLargeUtf8:
    case ArrowKind::kListView:
    case ArrowKind::kLargeListView:
      return 3;
    default:
      return 2;
  }
}

// Adds a field and those below it. The children of a dictionary are in the dictionary.
void Add(const ArrowField& field, bool before_version_5, ArrowCounts* counts) {
  ++counts->nodes;
  counts->buffers += OwnBuffers(field, before_version_5);
  if (field.dictionary) return;
  counts->views += IsView(field.type.kind);
  for (const ArrowField& child : field.children) Add(child, before_version_5, counts);
}

std::optional<DType> NumberDType(const ArrowType& type) {
  const int32_t bits = type.bits;
  switch (type.kind) {
    case ArrowKind::kFloatingPoint:
      return bits == 16 ? DType::kFloat16 : bits == 32 ? DType::kFloat32 : DType::kFloat64;
    case ArrowKind::kInt:
      if (bits == 8) return type.is_signed ? DType::kInt8 : DType::kUint8;
      if (bits == 16) return type.is_signed ? DType::kInt16 : DType::kUint16;
      if (bits == 32) return type.is_signed ? DType::kInt32 : DType::kUint32;
      return type.is_signed ? DType::kInt64 : DType::kUint64;
    case ArrowKind::kDate:
    case ArrowKind::kTime:
    case ArrowKind::kTimestamp:
    case ArrowKind::kDuration:
      return bits == 32 ? DType::kInt32 : DType::kInt64;
    default:
      return std::nullopt;
  }
}

// The level that holds values of the type; its dtype is kInvalid where they have none here.
DType ReadValues(const ArrowType& type, ArrowLevel* level) {
  switch (type.kind) {
    case ArrowKind::kBool:
      level->kind = Kind::kBools;
      return DType::kBool;
    case ArrowKind::kLargeBinary:
    case ArrowKind::kLargeUtf8:
      level->is_wide = true;
      [[fallthrough]];
    case ArrowKind::kBinary:
    case ArrowKind::kUtf8:
      level->kind = Kind::kTexts;
      return DType::kString;
    case ArrowKind::kFixedSizeBinary:
      level->kind = Kind::kFixedTexts;
      level->size = static_cast<uint32_t>(type.size);
      return DType::kString;
    default:
      break;
  }
  const std::optional<DType> dtype = NumberDType(type);
  if (!dtype) return DType::kInvalid;
  level->kind = Kind::kNumbers;
  level->size = static_cast<uint32_t>(DTypeSize(*dtype));
  return *dtype;
}

absl::Status NoDType(const ArrowType& type) {
  return absl::InvalidArgumentError(absl::StrCat(
      "it is of type ", ArrowTypeName(type), ", which cannot be read; cast it, or leave it out"));
}

std::vector<std::string> NamesOf(const std::vector<ArrowField>& fields) {
  std::vector<std::string> names;
  for (const ArrowField& field : fields) names.push_back(field.name);
  return names;
}

// Goes from a field to its values.
class Finder {
 public:
  Finder(const ArrowSchema& schema, const std::vector<std::string>& path, bool to_values)
      : schema_(schema), path_(path), to_values_(to_values) {}

  absl::StatusOr<ArrowColumn> Find() {
    if (absl::Status status = Enter(schema_.fields); !status.ok()) return status;
    while (true) {
      const ArrowField& field = *field_;
      const bool is_named = step_ == path_.size();
      // A null may stand among a dictionary's values, too.
      if (is_named && !to_values_ && !field.dictionary) {
        if (!HasBitmap(field.type.kind)) return NoDType(field.type);
        column_.levels.push_back(LevelHere());
        // Only its bitmap counts.
        column_.dtype = DType::kBool;
        column_.type_name = ArrowTypeName(field.type);
        return std::move(column_);
      }
      if (field.dictionary) return EndWithPlaces();
      absl::Status status;
      switch (field.type.kind) {
        case ArrowKind::kStruct:
          if (is_named) {
            return absl::InvalidArgumentError(absl::StrCat("it is a struct; ask for its fields: ",
                                                           ListNames(NamesOf(field.children))));
          }
          column_.levels.push_back(LevelHere());
          status = Enter(field.children);
          break;
        case ArrowKind::kList:
        case ArrowKind::kLargeList:
        case ArrowKind::kFixedSizeList:
          status = EnterList();
          break;
        default:
          return EndWithValues();
      }
      if (!status.ok()) return status;
    }
  }

 private:
  ArrowLevel LevelHere() const {
    ArrowLevel level;
    level.node = before_.nodes;
    level.buffer = before_.buffers;
    level.views_before = before_.views;
    return level;
  }

  // Goes to the next name of the path, among these fields.
  absl::Status Enter(const std::vector<ArrowField>& fields) {
    const std::string& name = path_[step_];
    if (field_ != nullptr) PassOwn(*field_);
    for (const ArrowField& field : fields) {
      if (field.name == name) {
        ++step_;
        field_ = &field;
        return absl::OkStatus();
      }
      Add(field, schema_.before_version_5, &before_);
    }
    const std::vector<std::string> names = NamesOf(fields);
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no \"", name, "\"", DidYouMean(name, names), "; there are: ", ListNames(names)));
  }

  absl::Status EnterList() {
    ArrowLevel level = LevelHere();
    const ArrowType& type = field_->type;
    level.kind = type.kind == ArrowKind::kFixedSizeList ? Kind::kFixedList : Kind::kList;
    level.is_wide = type.kind == ArrowKind::kLargeList;
    if (level.kind == Kind::kFixedList) level.size = static_cast<uint32_t>(type.size);
    column_.levels.push_back(level);
    PassOwn(*field_);
    field_ = &field_->children[0];
    return absl::OkStatus();
  }

  void PassOwn(const ArrowField& field) {
    ++before_.nodes;
    before_.buffers += OwnBuffers(field, schema_.before_version_5);
  }

  absl::Status CheckEnd() const {
    if (step_ == path_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("\"", path_[step_ - 1], "\" is of type ",
                                                   ArrowTypeName(field_->type),
                                                   " and has no field \"", path_[step_], "\""));
  }

  absl::StatusOr<ArrowColumn> EndWithValues() {
    if (absl::Status status = CheckEnd(); !status.ok()) return status;
    ArrowLevel level = LevelHere();
    column_.dtype = ReadValues(field_->type, &level);
    if (column_.dtype == DType::kInvalid) return NoDType(field_->type);
    column_.type_name = ArrowTypeName(field_->type);
    column_.kind = field_->type.kind;
    column_.unit = field_->type.unit;
    column_.levels.push_back(level);
    return std::move(column_);
  }

  absl::StatusOr<ArrowColumn> EndWithPlaces() {
    if (absl::Status status = CheckEnd(); !status.ok()) return status;
    ArrowLevel level = LevelHere();
    level.kind = Kind::kPlaces;
    level.size = static_cast<uint32_t>(field_->indices.bits / 8);
    level.is_wide = field_->indices.is_signed;
    column_.levels.push_back(level);
    column_.dictionary = *field_->dictionary;
    column_.dtype = ReadValues(field_->type, &column_.values);
    if (column_.dtype == DType::kInvalid && !to_values_) {
      // Of values that nothing reads the places' bitmap alone counts.
      column_.dictionary.reset();
      column_.levels.back() = LevelHere();
      column_.dtype = DType::kBool;
      column_.type_name = ArrowTypeName(field_->type);
      return std::move(column_);
    }
    if (column_.dtype == DType::kInvalid) {
      return absl::InvalidArgumentError(absl::StrCat("it is a dictionary of ",
                                                     ArrowTypeName(field_->type),
                                                     ", which cannot be read; decode it"));
    }
    column_.type_name = absl::StrCat("dictionary of ", ArrowTypeName(field_->type));
    column_.kind = field_->type.kind;
    column_.unit = field_->type.unit;
    return std::move(column_);
  }

  const ArrowSchema& schema_;
  const std::vector<std::string>& path_;
  const bool to_values_;
  const ArrowField* field_ = nullptr;
  size_t step_ = 0;
  ArrowCounts before_;
  ArrowColumn column_;
};

void AddPaths(const ArrowField& field, std::vector<std::string>* here,
              std::vector<std::vector<std::string>>* paths) {
  here->push_back(field.name);
  const ArrowField* inner = &field;
  while (!inner->dictionary &&
         (inner->type.kind == ArrowKind::kList || inner->type.kind == ArrowKind::kLargeList ||
          inner->type.kind == ArrowKind::kFixedSizeList)) {
    inner = &inner->children[0];
  }
  if (inner->type.kind == ArrowKind::kStruct && !inner->dictionary) {
    for (const ArrowField& child : inner->children) AddPaths(child, here, paths);
  } else {
    paths->push_back(*here);
  }
  here->pop_back();
}

}  // namespace

bool ArrowColumn::IsLike(const ArrowColumn& other) const {
  // Strings and bytes are read alike. Integers and times are not what each other are, though their
  // bytes are.
  return dtype == other.dtype && (kind == other.kind || dtype == DType::kString) &&
         unit == other.unit && dictionary.has_value() == other.dictionary.has_value() &&
         values.IsLike(other.values) && levels.size() == other.levels.size() &&
         std::equal(levels.begin(), levels.end(), other.levels.begin(),
                    [](const ArrowLevel& a, const ArrowLevel& b) { return a.IsLike(b); });
}

absl::StatusOr<std::vector<std::string>> ParseArrowPath(absl::string_view path) {
  std::vector<std::string> names(1);
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '.') {
      names.emplace_back();
    } else if (path[i] == '\\') {
      if (++i == path.size()) {
        return absl::InvalidArgumentError(
            "a backslash makes the next character part of a name; there is none behind the last");
      }
      names.back() += path[i];
    } else {
      names.back() += path[i];
    }
  }
  return names;
}

std::string ArrowPath(const std::vector<std::string>& names) {
  std::string path;
  for (const std::string& name : names) {
    if (&name != &names.front()) path += '.';
    for (const char c : name) {
      if (c == '.' || c == '\\') path += '\\';
      path += c;
    }
  }
  return path;
}

absl::StatusOr<ArrowColumn> FindArrowColumn(const ArrowSchema& schema,
                                            const std::vector<std::string>& path, bool to_values) {
  return Finder(schema, path, to_values).Find();
}

std::vector<std::vector<std::string>> ArrowPaths(const ArrowSchema& schema) {
  std::vector<std::vector<std::string>> paths;
  std::vector<std::string> here;
  for (const ArrowField& field : schema.fields) AddPaths(field, &here, &paths);
  return paths;
}

ArrowCounts CountArrowParts(const ArrowSchema& schema) {
  ArrowCounts counts;
  for (const ArrowField& field : schema.fields) Add(field, schema.before_version_5, &counts);
  return counts;
}

}  // namespace penstock
