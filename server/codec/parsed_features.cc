#include "server/codec/parsed_features.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/arena.h"
#include "base/dtype.h"
#include "server/codec/feature_limits.h"

namespace penstock {
namespace {

using Kind = ParsedFeaturePlan::Kind;

absl::Status Invalid(const std::string& feature, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("feature \"", feature, "\": ", what));
}

// Default values as they lie in memory: one for all, or one for each.
template <typename T, typename Values>
absl::Status SetDefault(const std::string& key, const Values& values, int64_t count,
                        ParsedFeaturePlan* parsed) {
  parsed->row_bytes = count * sizeof(T);
  if (values.empty()) return absl::OkStatus();
  if (values.size() != 1 && values.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("feature \"", key,
                                                   "\": default_value: expected 1 or ", count,
                                                   " values, found ", values.size()));
  }
  parsed->has_default = true;
  parsed->default_value.resize(parsed->row_bytes + Arena::kPadding);
  for (int64_t i = 0; i < count; ++i) {
    const T value = values.size() == 1 ? values.Get(0) : values.Get(i);
    std::memcpy(parsed->default_value.data() + i * sizeof(T), &value, sizeof(T));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CheckShape(const std::string& key,
                                   const google::protobuf::RepeatedField<int64_t>& sizes,
                                   Shape* shape) {
  shape->assign(sizes.begin(), sizes.end());
  const std::optional<int64_t> count = NumElements(*shape);
  if (!count || *count < 1 || *count > kMaxValues) {
    return absl::InvalidArgumentError(
        absl::StrCat("feature \"", key, "\": shape: expected sizes of at least 1 and at most ",
                     kMaxValues, " values, found ", ShapeToString(*shape)));
  }
  return *count;
}

// Several strings: a row of them is their sizes and then their bytes (base/column.h).
absl::Status PlanStrings(const v1::ParsedBytes& spec, int64_t count, ParsedFeaturePlan* parsed) {
  if (!spec.has_default_value()) return absl::OkStatus();
  const std::string& value = spec.default_value();
  if (value.size() > static_cast<size_t>(kMaxValues / count)) {
    return absl::InvalidArgumentError(absl::StrCat("default_value: longer than limit: ", count,
                                                   " times ", value.size(), " > ", kMaxValues,
                                                   " bytes"));
  }
  parsed->has_default = true;
  const auto size = static_cast<uint32_t>(value.size());
  const auto* size_bytes = reinterpret_cast<const uint8_t*>(&size);
  std::vector<uint8_t>& row = parsed->default_value;
  for (int64_t i = 0; i < count; ++i) row.insert(row.end(), size_bytes, size_bytes + sizeof(size));
  for (int64_t i = 0; i < count; ++i) row.insert(row.end(), value.begin(), value.end());
  row.resize(row.size() + Arena::kPadding);
  return absl::OkStatus();
}

// The type of a list, by its name.
absl::StatusOr<DType> ListType(const std::string& feature, const std::string& name) {
  if (name == "int64") return DType::kInt64;
  if (name == "float32") return DType::kFloat32;
  if (name == "string") return DType::kString;
  return Invalid(
      feature,
      absl::StrCat("dtype: expected \"int64\", \"float32\" or \"string\", found \"", name, "\""));
}

class Planner {
 public:
  Planner(ParsedFeatures* result, bool batched) : result_(result), batched_(batched) {}

  absl::Status Add(const v1::ParsedFeature& spec) {
    if (spec.key().empty()) return absl::InvalidArgumentError("a feature has no key");
    if (!names_.insert(spec.key()).second)
      return absl::InvalidArgumentError(
          absl::StrCat("feature \"", spec.key(), "\" is listed twice"));
    ParsedFeaturePlan& plan = result_->features.emplace_back();
    plan.name = spec.key();
    switch (spec.kind_case()) {
      case v1::ParsedFeature::kBytes:
        return AddBytes(spec.bytes(), &plan);
      case v1::ParsedFeature::kInt64:
        return AddNumbers<int64_t>(DType::kInt64, spec.int64(), &plan);
      case v1::ParsedFeature::kFloat:
        return AddNumbers<float>(DType::kFloat32, spec.float_(), &plan);
      case v1::ParsedFeature::kSparse:
        plan.type.form = RowForm::kSparse;
        return AddList(spec.sparse().dtype(), plan.name, &plan);
      case v1::ParsedFeature::kRagged:
        return AddRagged(spec.ragged(), &plan);
      case v1::ParsedFeature::kIndexed:
        return AddIndexed(spec.indexed(), &plan);
      case v1::ParsedFeature::kSequence:
        return AddSequence(spec.sequence(), &plan);
      case v1::ParsedFeature::KIND_NOT_SET:
        break;
    }
    return Invalid(
        spec.key(),
        "expected one of bytes, int64, float, sparse, ragged, indexed and sequence, found "
        "none");
  }

 private:
  // The list of a key: the same one for all who want all of its values.
  absl::StatusOr<size_t> ListOf(const std::string& feature, const std::string& key, DType kind,
                                int64_t count, bool gathered) {
    for (size_t i = 0; i < result_->lists.size(); ++i) {
      const ExampleFeature& list = result_->lists[i];
      if (list.key != key) continue;
      if (list.kind == kind && list.count == count && count == ExampleFeature::kAnyCount) return i;
      return Invalid(feature,
                     absl::StrCat("the key \"", key,
                                  "\" is wanted in two ways: expected one dtype and one kind"));
    }
    result_->lists.push_back({key, kind, count, gathered});
    return result_->lists.size() - 1;
  }

  absl::Status SetList(const std::string& key, int64_t count, bool gathered,
                       ParsedFeaturePlan* plan) {
    const DType kind = plan->fixed_bytes ? DType::kString : plan->type.dtype;
    absl::StatusOr<size_t> list = ListOf(plan->name, key, kind, count, gathered);
    if (list.ok()) plan->list = *list;
    return list.status();
  }

  absl::Status AddList(const std::string& dtype, const std::string& key, ParsedFeaturePlan* plan) {
    plan->kind = Kind::kList;
    absl::StatusOr<DType> type = ListType(plan->name, dtype);
    if (!type.ok()) return type.status();
    plan->type.dtype = *type;
    plan->type.shape = {kUnknownSize};
    return SetList(key, ExampleFeature::kAnyCount, /*gathered=*/true, plan);
  }

  // What `variable_length` asks for.
  absl::Status AddVariable(bool has_more, ParsedFeaturePlan* plan) {
    if (has_more) {
      return Invalid(
          plan->name,
          "variable_length: expected no shape, length or default_value beside it, found one");
    }
    plan->kind = Kind::kSequence;
    plan->allow_missing = true;
    plan->padding.assign(DTypeSize(plan->type.dtype), 0);
    plan->type.shape = {kUnknownSize};
    return SetList(plan->name, ExampleFeature::kAnyCount, /*gathered=*/true, plan);
  }

  template <typename T, typename Spec>
  absl::Status AddNumbers(DType dtype, const Spec& spec, ParsedFeaturePlan* plan) {
    plan->type.dtype = dtype;
    if (spec.variable_length())
      return AddVariable(spec.shape_size() + spec.default_value_size() > 0, plan);
    absl::StatusOr<int64_t> count = CheckShape(plan->name, spec.shape(), &plan->type.shape);
    if (!count.ok()) return count.status();
    absl::Status status = SetDefault<T>(plan->name, spec.default_value(), *count, plan);
    return status.ok() ? SetList(plan->name, *count, /*gathered=*/false, plan) : status;
  }

  absl::Status AddBytes(const v1::ParsedBytes& spec, ParsedFeaturePlan* plan) {
    plan->type.dtype = DType::kString;
    if (spec.variable_length())
      return AddVariable(spec.has_length() || spec.has_default_value() || spec.shape_size() > 0,
                         plan);
    if (spec.shape_size() > 0) {
      if (spec.has_length())
        return Invalid(plan->name, "expected one of shape and length, found both");
      absl::StatusOr<int64_t> count = CheckShape(plan->name, spec.shape(), &plan->type.shape);
      if (!count.ok()) return count.status();
      absl::Status status = PlanStrings(spec, *count, plan);
      return status.ok() ? SetList(plan->name, *count, /*gathered=*/true, plan) : status;
    }
    if (spec.has_length()) {
      const int64_t length = spec.length();
      if (length < 1 || length > int64_t{1} << 28)
        return Invalid(plan->name, absl::StrCat("length: expected at least 1, found ", length));
      plan->type = {DType::kUint8, {length}};
      plan->fixed_bytes = true;
      plan->length = plan->row_bytes = length;
    }
    if (spec.has_default_value()) {
      const std::string& value = spec.default_value();
      if (plan->fixed_bytes && value.size() != plan->length) {
        return Invalid(plan->name, absl::StrCat("default_value: expected ", plan->length,
                                                " bytes, found ", value.size()));
      }
      plan->has_default = true;
      plan->default_value.assign(value.begin(), value.end());
      plan->default_value.resize(value.size() + Arena::kPadding);
    }
    return SetList(plan->name, 1, /*gathered=*/false, plan);
  }

  absl::Status AddSequence(const v1::ParsedSequence& spec, ParsedFeaturePlan* plan) {
    absl::Status status = AddList(spec.dtype(), plan->name, plan);
    if (!status.ok()) return status;
    plan->kind = Kind::kSequence;
    plan->allow_missing = spec.allow_missing();
    Shape shape;
    absl::StatusOr<int64_t> count = CheckShape(plan->name, spec.shape(), &shape);
    if (!count.ok()) return count.status();
    plan->group = *count;
    plan->type.shape.insert(plan->type.shape.end(), shape.begin(), shape.end());
    const auto element = [](auto value) {
      return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
    };
    using Value = v1::ParsedSequence;
    const auto value_case = spec.default_value_case();
    const bool fits = value_case == Value::DEFAULT_VALUE_NOT_SET ||
                      value_case == (plan->type.dtype == DType::kString  ? Value::kBytesValue
                                     : plan->type.dtype == DType::kInt64 ? Value::kIntValue
                                                                         : Value::kFloatValue);
    if (!fits)
      return Invalid(plan->name, "default_value: expected one of its dtype, found one of another");
    plan->padding = plan->type.dtype == DType::kString  ? spec.bytes_value()
                    : plan->type.dtype == DType::kInt64 ? element(spec.int_value())
                                                        : element(spec.float_value());
    return absl::OkStatus();
  }

  absl::Status AddRagged(const v1::ParsedRagged& spec, ParsedFeaturePlan* plan) {
    absl::Status status =
        AddList(spec.dtype(), spec.value_key().empty() ? plan->name : spec.value_key(), plan);
    if (!status.ok()) return status;
    plan->kind = Kind::kRagged;
    Shape inner;
    for (const v1::RowPartition& partition : spec.partition()) {
      RowPartitionPlan made{partition.kind_case(), 0, partition.uniform_row_length()};
      if (made.kind == v1::RowPartition::kUniformRowLength) {
        if (made.length < 1 || made.length > kMaxValues) {
          return Invalid(plan->name, absl::StrCat("uniform_row_length: expected 1 to ", kMaxValues,
                                                  ", found ", made.length));
        }
        inner.push_back(made.length);
      } else {
        const std::string* key = KeyOf(partition);
        if (key == nullptr || key->empty())
          return Invalid(plan->name,
                         "a partition: expected a key or a uniform_row_length, found none");
        absl::StatusOr<size_t> list =
            ListOf(plan->name, *key, DType::kInt64, ExampleFeature::kAnyCount, true);
        if (!list.ok()) return list.status();
        made.list = *list;
        inner.clear();
      }
      plan->partitions.push_back(made);
    }
    // Uniform partitions behind all others are axes of known sizes.
    const std::optional<int64_t> group = NumElements(inner);
    if (!group || *group > kMaxValues)
      return Invalid(plan->name, "uniform_row_length: the product of them is too large");
    plan->group = *group;
    plan->partitions.resize(plan->partitions.size() - inner.size());
    plan->type.shape.insert(plan->type.shape.end(), plan->partitions.size(), kUnknownSize);
    plan->type.shape.insert(plan->type.shape.end(), inner.begin(), inner.end());
    if (!plan->partitions.empty()) {
      plan->type.form = RowForm::kPackedRagged;
    } else if (batched_) {
      plan->type.form = RowForm::kRagged;
    }
    plan->narrow_splits = spec.int32_row_splits();
    plan->type.narrow_splits = plan->narrow_splits && plan->type.form != RowForm::kPlain;
    return absl::OkStatus();
  }

  static const std::string* KeyOf(const v1::RowPartition& partition) {
    switch (partition.kind_case()) {
      case v1::RowPartition::kRowSplits:
        return &partition.row_splits();
      case v1::RowPartition::kRowLengths:
        return &partition.row_lengths();
      case v1::RowPartition::kRowStarts:
        return &partition.row_starts();
      case v1::RowPartition::kRowLimits:
        return &partition.row_limits();
      case v1::RowPartition::kValueRowids:
        return &partition.value_rowids();
      default:
        return nullptr;
    }
  }

  absl::Status AddIndexed(const v1::ParsedIndexed& spec, ParsedFeaturePlan* plan) {
    if (spec.value_key().empty()) return Invalid(plan->name, "expected a value_key, found none");
    if (spec.index_key_size() < 1 || spec.index_key_size() > 8 ||
        spec.index_key_size() != spec.size_size()) {
      return Invalid(plan->name,
                     absl::StrCat("expected 1 to 8 index_keys and as many sizes, found ",
                                  spec.index_key_size(), " and ", spec.size_size()));
    }
    absl::Status status = AddList(spec.dtype(), spec.value_key(), plan);
    if (!status.ok()) return status;
    plan->kind = Kind::kIndexed;
    plan->type.form = RowForm::kPackedSparse;
    plan->type.shape.assign(spec.size().begin(), spec.size().end());
    for (const int64_t size : spec.size()) {
      if (size < 0)
        return Invalid(plan->name, absl::StrCat("size: expected at least 0, found ", size));
    }
    for (const std::string& key : spec.index_key()) {
      absl::StatusOr<size_t> list =
          ListOf(plan->name, key, DType::kInt64, ExampleFeature::kAnyCount, true);
      if (!list.ok()) return list.status();
      plan->index_lists.push_back(*list);
    }
    plan->already_sorted = spec.already_sorted();
    return absl::OkStatus();
  }

  ParsedFeatures* const result_;
  const bool batched_;
  std::set<std::string> names_;
};

}  // namespace

Signature ParsedFeatures::signature() const {
  Signature signature;
  for (const ParsedFeaturePlan& feature : features)
    signature.push_back({feature.name, feature.type});
  return signature;
}

absl::StatusOr<ParsedFeatures> PlanParsedFeatures(
    const google::protobuf::RepeatedPtrField<v1::ParsedFeature>& features, bool batched) {
  if (features.size() > kMaxFeatures) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", kMaxFeatures, " features, found ", features.size()));
  }
  ParsedFeatures result;
  Planner planner(&result, batched);
  for (const v1::ParsedFeature& feature : features) {
    if (absl::Status status = planner.Add(feature); !status.ok()) return status;
  }
  return result;
}

}  // namespace penstock
