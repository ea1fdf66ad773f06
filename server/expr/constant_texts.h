// A tensor of texts that stand in an expression, ["cat", "dog"], or that a constant has.
//
// Threads:  while a program is compiled; the kernel is safe from any thread.
#pragma once

#include <string>
#include <vector>

#include "server/expr/function.h"

namespace penstock::expr {

// A kernel without arguments whose every row is `texts`. REQUIRES: as many as `shape`, of an axis
// at least, holds.
BoundRowFunction BindTexts(const Shape& shape, std::vector<std::string> texts);

}  // namespace penstock::expr
