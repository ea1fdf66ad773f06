// The rows that the hosts of a world have made of one batch, put together in the order of the
// hosts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/row_shape.h"
#include "server/engine/tensor/batch_sink.h"
#include "tests/support/pipeline.h"

namespace penstock::test {

inline std::vector<int64_t> Numbers(const std::string& bytes) {
  std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

inline std::string BytesOf(const std::vector<int64_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
}

// Offsets or row splits go on behind those before them.
inline void AppendOffsets(const std::string& more, std::string* joined) {
  std::vector<int64_t> all = Numbers(*joined);
  const int64_t base = all.empty() ? 0 : all.back();
  const std::vector<int64_t> added = Numbers(more);
  for (size_t i = all.empty() ? 0 : 1; i < added.size(); ++i) all.push_back(base + added[i]);
  *joined = BytesOf(all);
}

// The parts of one tensor, as ring/layout.h has them. `is_first`: nothing is joined yet.
inline std::string AppendTensor(const BatchTensor& tensor, const std::vector<std::string>& more,
                                bool is_first, std::vector<std::string>* joined) {
  joined->resize(more.size());
  if (tensor.fixed()) {
    (*joined)[0] += more[0];
    return "";
  }
  size_t part = 0;
  if (tensor.type.dtype == DType::kString) {
    AppendOffsets(more[part], &(*joined)[part]);
    ++part;
  }
  (*joined)[part] += more[part];
  ++part;
  if (tensor.kind == TensorKind::kRagged) {
    for (int axis = 0; axis < tensor.ragged_rank; ++axis, ++part)
      AppendOffsets(more[part], &(*joined)[part]);
    return "";
  }
  const bool is_sparse = tensor.kind == TensorKind::kSparse;
  if (is_sparse) {
    // Behind the rows that the shape tells, which stands last.
    const int64_t rows = is_first ? 0 : Numbers((*joined)[part + 1])[0];
    std::vector<int64_t> indices = Numbers(more[part]);
    for (size_t i = 0; i < indices.size(); i += tensor.type.shape.size()) indices[i] += rows;
    (*joined)[part++] += BytesOf(indices);
  }
  if (!is_sparse && !HasUnknownAxes(tensor.type.shape)) return "";
  std::vector<int64_t> shape = Numbers(more[part]);
  if (!is_first) {
    std::vector<int64_t> before = Numbers((*joined)[part]);
    const int64_t rows_before = before[0];
    before[0] = shape[0];
    if (before != shape) return "rows of other shapes";
    shape[0] += rows_before;
  }
  (*joined)[part] = BytesOf(shape);
  return "";
}

// Where a batch of one host differs from the hosts' batches of the same step, put together; ""
// where it does not.
inline std::string JoinedDifference(const std::vector<BatchTensor>& tensors,
                                    const std::vector<const Batch*>& hosts, const Batch& whole) {
  uint32_t rows = 0, shape_rows = 0;
  bool is_first = true;
  std::vector<std::vector<std::string>> parts(tensors.size());
  // Of a batch that is an element, what comes whole to every host.
  const auto is_whole = [&](size_t i) {
    return !tensors[i].batched && std::all_of(hosts.begin(), hosts.end(), [&](const Batch* one) {
      return one->parts[i] == whole.parts[i];
    });
  };
  for (const Batch* const batch : hosts) {
    if (batch->info.step != whole.info.step || batch->info.epoch != whole.info.epoch)
      return absl::StrCat("step ", batch->info.step, " of epoch ", batch->info.epoch);
    if (WithoutCounts(batch->info.cursor) != WithoutCounts(whole.info.cursor))
      return "another cursor";
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string wrong = AppendTensor(tensors[i], batch->parts[i], is_first, &parts[i]);
      if (!wrong.empty() && !is_whole(i)) return absl::StrCat("tensor ", i, ": ", wrong);
    }
    is_first = false;
    rows += batch->info.rows;
    shape_rows += batch->info.shape_rows;
  }
  const bool counts_rows = !tensors.empty() && tensors[0].batched;
  if (!counts_rows) rows = whole.info.rows, shape_rows = whole.info.shape_rows;
  if (rows != whole.info.rows || shape_rows != whole.info.shape_rows)
    return absl::StrCat(rows, " rows and ", shape_rows, " with those that are none, not ",
                        whole.info.rows, " and ", whole.info.shape_rows);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (is_whole(i)) continue;
    for (size_t part = 0; part < whole.parts[i].size(); ++part) {
      if (part >= parts[i].size() || parts[i][part] != whole.parts[i][part])
        return absl::StrCat("tensor ", i, " (", tensors[i].name, ") has other bytes in part ",
                            part);
    }
  }
  return "";
}

}  // namespace penstock::test
