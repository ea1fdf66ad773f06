// The strings of one row, and rows made of strings: a string scalar is its bytes; of a tensor the
// sizes of all of them (uint32) come first.
//
// Threads:  safe from any thread.
// Owns:     nothing: the strings lie in the row, the list of them in the scratch memory.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/expr/row_kernel.h"

namespace penstock::expr {

absl::Span<const absl::string_view> StringsOf(const RowValue& row, Arena& scratch);

// Writes a result's strings; its shape has been set where the type leaves it open. `is_scalar`: of
// the result, which then is one string. ResourceExhausted where they are more than a row's results
// may be (each_string.h).
absl::Status PutStrings(absl::Span<const absl::string_view> strings, bool is_scalar,
                        RowOutput& out);

}  // namespace penstock::expr
