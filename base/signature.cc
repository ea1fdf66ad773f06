#include "base/signature.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock {

bool HasUnknownSize(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), kUnknownSize) != shape.end();
}

std::optional<int64_t> NumElements(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  return count;
}

std::optional<int64_t> NumBytes(const TensorType& type) {
  std::optional<int64_t> count = NumElements(type.shape);
  const int64_t element_bytes = DTypeSize(type.dtype);
  int64_t bytes = 0;
  if (!count || element_bytes == 0 || type.packed() ||
      __builtin_mul_overflow(*count, element_bytes, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

std::string ShapeToString(const Shape& shape) {
  std::string text = "(";
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    absl::StrAppend(&text, axis ? ", " : "",
                    shape[axis] < 0 ? std::string("?") : absl::StrCat(shape[axis]));
  }
  absl::StrAppend(&text, shape.size() == 1 ? ",)" : ")");
  return text;
}

std::string TypeToString(const TensorType& type) {
  const bool is_ragged = type.form == RowForm::kRagged || type.form == RowForm::kPackedRagged;
  const char* form = type.form == RowForm::kPlain ? "" : is_ragged ? "ragged " : "sparse ";
  return absl::StrCat(form, DTypeName(type.dtype), " ", ShapeToString(type.shape),
                      type.narrow_splits ? " with row splits of int32" : "");
}

namespace {

// How many letters are put in, left out, replaced, or exchanged with the next one: the optimal
// string alignment distance (G. Navarro, A guided tour to approximate string matching, ACM
// Computing Surveys 33, 2001), by three rows.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
    std::swap(two_above, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string SignatureToString(const Signature& signature) {
  std::string text;
  for (const Feature& feature : signature) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", feature.name, " ", TypeToString(feature.type));
  }
  return text;
}

std::string NearestName(std::string_view name, const std::vector<std::string>& known) {
  std::string nearest;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = NearestName(name, known);
  return nearest.empty() ? "" : absl::StrCat(", did you mean \"", nearest, "\"?");
}

std::string ListNames(const std::vector<std::string>& names) {
  constexpr size_t kShown = 16;
  if (names.size() <= kShown) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kShown, ", "), " and ",
                      names.size() - kShown, " more");
}

}  // namespace penstock
