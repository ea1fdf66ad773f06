// Constants of the graph: made from the spec's, and read back as numbers while compiling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/expr/graph.h"
#include "server/expr/program.h"

namespace penstock::expr {

// A scalar without dtype becomes a weak constant of float64 or int64.
absl::StatusOr<const Node*> MakeConstant(Graph& graph, const NamedConstant& constant);

// REQUIRES: a constant of one element.
double ScalarValue(const Node& node);
int64_t ScalarInteger(const Node& node);

// The elements; REQUIRES: a constant of an integer type.
std::vector<int64_t> ConstantIntegers(const Node& node);

// Whether a weak integer constant is representable in `dtype`, an integer type.
bool FitsInteger(const Node& node, DType dtype);

// The digits of a weak integer constant.
std::string IntegerText(const Node& node);

}  // namespace penstock::expr
