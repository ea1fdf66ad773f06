// Pipelines in words, for a terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

// "float32"; the codes are those of penstock.v1.DataType, ring/layout.h and penstock.h.
std::string DataTypeName(int dtype);

// "(512, 8, 8, 24)"; "?" for a size that only the data tells.
template <typename Sizes>
std::string ShapeName(const Sizes& sizes) {
  std::string text = "(";
  for (const int64_t size : sizes) {
    if (text.size() > 1) text += ", ";
    text += size < 0 ? "?" : std::to_string(size);
  }
  if (std::size(sizes) == 1) text += ",";
  return text + ")";
}

// "running", "finished", "failed".
std::string StateName(v1::PipelineState state);

// "6.0 MiB".
std::string ByteCount(uint64_t bytes);

// A line for each tensor of a batch, with aligned columns.
std::string DescribeElement(const v1::Pipeline& pipeline);

// "FILE, record 17, offset 4093 (epoch 0)".
std::string DescribePlace(const v1::RecordPlace& place);

// Where a row comes from, what was drawn for it, and its features: a line each.
std::string DescribeRow(const v1::ShowRowResponse& row);

// What a pipeline has in common with others: one line.
std::string DescribeShared(const v1::SharedPrefixStats& prefix);

// Where it is of the NUMA node that it was to have, and a line for each thing that could not be
// had; each begins with `prefix`.
std::string DescribeNuma(const v1::PipelineStats& stats, const std::string& prefix);

// What a read or a write that has not returned waits for: one line.
std::string DescribeCall(const v1::ReadUnderWay& call);
// The processes that compute a stage's rows; `busy`: the share of their time that they were at
// rows.
std::string DescribePython(const v1::PythonWorkers& workers, double busy);
// What the pipeline has taken for what it computes and keeps, and the most that it may take.
std::string DescribeWorkMemory(const v1::PipelineStats& stats);

// A line for each damaged place that was skipped, and one for those beyond the list.
void PrintSkipped(const v1::ListSkippedResponse& skipped, FILE* out);

}  // namespace penstock::ctl
