// Functions of the expression language and their registry. One file in server/functions registers one function, or one family.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/base/signature.h"
#include "server/expr/row_kernel.h"

namespace penstock::expr {

// An argument given as a constant in the text: a number, a name in quotes, a flag, or a list of integers. A scalar NamedConstant counts too.
using Literal = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>>;

// One argument at a call, by position. Keywords have been sorted into the positions that the signature gives them.
struct Argument {
  TensorType type;           // of one row; dtype kInvalid for a text or list literal
  bool weak = false;         // a literal number without a type of its own
  bool given = true;         // false: absent, the default of the signature holds
  const Literal* literal = nullptr;  // null unless known at compile time
};

// What a call becomes once its argument types are known.
struct BoundRowFunction {
  TensorType type;  // of the result; sizes may be kUnknownSize
  std::shared_ptr<const RowKernel> kernel;
  // Which arguments the kernel receives at run time (positions of tensors, in order); literals are bound into the kernel.
  std::vector<int> tensor_arguments;
};

// A function that is computed row by row. (Elementwise families and views register in their own forms beside this one.)
struct RowFunction {
  std::string_view name;
  // As it would stand in a manual: "decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, dct_method=\"\")". Keywords and
  // defaults are read from it.
  std::string_view signature;
  // Arguments, shapes, dtypes, convention, source, errors: its manual.
  std::string_view doc;
  // An error is InvalidArgument: "expected a string scalar, found uint8 (194,)".
  absl::StatusOr<BoundRowFunction> (*bind)(absl::Span<const Argument> arguments);
};

// Registers by static object: `const RowFunctionRegistration kDecodeJpeg({...});` in an anonymous namespace.
struct RowFunctionRegistration {
  explicit RowFunctionRegistration(const RowFunction& function);
};

}  // namespace penstock::expr
