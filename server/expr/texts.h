// Functions of texts: of each string of a tensor by itself, and of two strings at a time.
//
// Threads:  while a program is compiled; the kernels are safe from any thread, and so must be the
//           functions given.
// Errors:   what is no string is InvalidArgument that names the argument.
// Limits:   as each_string.h; of two tensors whose shapes turn out not to broadcast the row is
//           DataLoss.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/expr/function.h"

namespace penstock::expr {

// Writes what one text becomes.
using EachText = std::function<absl::Status(absl::string_view text, RowOutput& out)>;

// `type`: of the result of one text; it takes the place of each string of `input`, the only tensor
// argument, at position 0.
absl::StatusOr<BoundRowFunction> BindEachText(const Argument& input, std::string_view name,
                                              TensorType type, EachText function);

// The result of one text that is a text.
void PutText(absl::string_view text, RowOutput& out);

// The result of one text that is some texts, of the type kString (kUnknownSize,). ResourceExhausted
// as PutStrings() (string_row.h).
absl::Status PutTexts(absl::Span<const absl::string_view> texts, RowOutput& out);

// Appends what two texts become: a text, or the bytes of one value.
using EachPair = std::function<void(absl::string_view a, absl::string_view b, std::string* out)>;

// `pair`: the first two arguments, each a string, a tensor of strings or a constant, at least one
// no constant. `dtype`: of the result, of the shape to which theirs broadcast.
absl::StatusOr<BoundRowFunction> BindEachPair(absl::Span<const Argument> pair, std::string_view a,
                                              std::string_view b, DType dtype, EachPair function);

}  // namespace penstock::expr
