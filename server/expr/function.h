// Functions of the expression language and their registry. One file in server/functions registers
// one function, or one family.
//
// Threads:  registration before main(); everything else is constant and safe from any thread.
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
#include "base/signature.h"
#include "server/expr/draws.h"
#include "server/expr/row_kernel.h"
#include "server/kernels/lane_program.h"

namespace penstock {
class FileSystem;
}

namespace penstock::expr {

// An argument given as a constant in the text: a number, a name in quotes, a flag, or a list of
// numbers. A scalar NamedConstant counts too.
using Literal =
    std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>>;

// One argument at a call, by position. Keywords have been sorted into the positions that the
// signature gives them.
struct Argument {
  TensorType type;                   // of one row; dtype kInvalid for a text or list literal
  bool weak = false;                 // a literal number without a type of its own
  bool given = true;                 // false: absent, the default of the signature holds
  const Literal* literal = nullptr;  // null unless known at compile time
  // Of a tensor of strings that is known at compile time, in C order; else null.
  std::shared_ptr<const std::vector<std::string>> texts = nullptr;
  // Of the argument "seed" of a random function, given or not: where its draws come from.
  const DrawSource* draws = nullptr;
  // Of a tensor of numbers that is known at compile time: the bytes of its elements, in C order;
  // else null.
  const std::vector<uint8_t>* constant = nullptr;
};

// What a call becomes once its argument types are known.
struct BoundRowFunction {
  TensorType type;  // of the result; sizes may be kUnknownSize
  std::shared_ptr<const RowKernel> kernel;
  // Which arguments the kernel receives at run time (positions of tensors, in order); literals are
  // bound into the kernel.
  std::vector<int> tensor_arguments;
  // Promises that element i of the result is bit 7 - i % 8 of byte i / 8 of the only tensor
  // argument, which lets the compiler fuse what follows with the unpacking.
  bool unpacks_bits = false;
  // The kernel receives one more argument behind those, the row's identity: it makes Draws.
  bool draws = false;
  // It is of all axes of its first tensor argument. Behind `batch` that is the batch's axis, too:
  // no row's affair.
  bool takes_all_axes = false;
  // Its tensor arguments broadcast, as those of arithmetic do: behind `batch` they must do so row
  // by row.
  bool broadcasts = false;
  // The result itself, where it is always the same strings; else null.
  std::shared_ptr<const std::vector<std::string>> texts = nullptr;
};

// A function that is computed row by row.
struct RowFunction {
  std::string_view name;
  // As it would stand in a manual: "decode_jpeg(contents, channels=0, ratio=1,
  // fancy_upscaling=True, dct_method=\"\")". Keywords and defaults are read from it.
  std::string_view signature;
  // Arguments, shapes, dtypes, convention, source, errors: its manual.
  std::string_view doc;
  // An error is InvalidArgument: "expected a string scalar, found uint8 (194,)".
  absl::StatusOr<BoundRowFunction> (*bind)(absl::Span<const Argument> arguments);
  // Has an argument "seed" and binds a kernel that draws. Two calls of it are never one, unless
  // both are given the same seed: then they draw the same numbers, so that an image and its mask
  // can be moved alike.
  bool random = false;
  // In the place of `bind`, of a function that reads files: those that the spec may name, which
  // outlive the kernel.
  absl::StatusOr<BoundRowFunction> (*bind_files)(absl::Span<const Argument> arguments,
                                                 FileSystem& files) = nullptr;
};

// How the type of an element-wise function follows from its arguments (docs/expressions.md,
// "Types").
enum class TypeRule : uint8_t {
  kPromote,   // the promoted type of all arguments
  kNumber,    // the same, but flags are refused (NumPy's `-`)
  kPower,     // the same, but of integers no constant second argument below 0 either
  kIntegral,  // the same for integers and flags only
  kInteger,   // the same for integers only
  kRound,     // the promoted type; integers are returned as they are
  kFloating,  // the promoted type made floating
  kDivide,    // the same by the rules of `/`
  kCompare,   // computed in the promoted type, the result is bool
  kSelect,    // the first argument is a condition, the others are promoted
  kCast,      // cast_to
};

// A function that is computed element by element with broadcasting.
struct ElementwiseFunction {
  std::string_view name;
  std::string_view signature;
  std::string_view doc;
  int num_arguments;
  TypeRule rule;
  kernels::Operation operation;
  DType cast_to = DType::kInvalid;
  // Of flags, where they are computed otherwise than integers: the function that does it. One with
  // one argument more gets False as the last.
  std::string_view of_flags = {};
  // Of strings: the function that takes them. "": they are refused.
  std::string_view of_strings = {};
  // Of comparisons: what they give of a lesser number and a greater one, and of a greater one and a
  // lesser one.
  bool of_lesser = false;
  bool of_greater = false;
};

// Another arrangement of the same elements. It costs nothing by itself: a view of a view, of a
// constant or of packed bits is folded into the work around it.
struct BoundView {
  Shape shape;
  // For each element of the result in C order, which element of the argument it is. Empty: the same
  // order.
  std::vector<int32_t> source;
};

// A function that only rearranges its first argument; the others are literals, or what the data
// gives.
struct ViewFunction {
  std::string_view name;
  std::string_view signature;
  std::string_view doc;
  // `arguments[0]` is one row; all its sizes are known. `batched` tells that the text sees an axis
  // in front of it (a literal shape then begins with -1, axes count from it).
  absl::StatusOr<BoundView> (*bind)(absl::Span<const Argument> arguments, bool batched);
  // The same of a row whose sizes only the data tells, of one that is too large for a list of its
  // elements, or where another argument is of the data: as a kernel that gets the row, and behind
  // it the other tensor_arguments. `batched` is then true where any of them is.
  absl::StatusOr<BoundRowFunction> (*bind_row)(absl::Span<const Argument> arguments, bool batched);
};

// Register by static object: `const RowFunctionRegistration kDecodeJpeg({...});` in an anonymous
// namespace. A name that is taken is a bug and ends the process.
struct RowFunctionRegistration {
  explicit RowFunctionRegistration(const RowFunction& function);
};
struct ElementwiseRegistration {
  explicit ElementwiseRegistration(absl::Span<const ElementwiseFunction> family);
};
struct ViewRegistration {
  explicit ViewRegistration(const ViewFunction& function);
};

// A parameter as its function's signature gives it.
struct Parameter {
  std::string name;
  bool required = true;
};

struct FunctionEntry {
  std::variant<RowFunction, ElementwiseFunction, ViewFunction> function;
  std::vector<Parameter> parameters;  // in order

  std::string_view name() const;
  std::string_view signature() const;
  std::string_view doc() const;
};

// Null when there is none of that name. Registration happens before main(), so all of this is safe
// from any thread.
const FunctionEntry* FindFunction(std::string_view name);
// All functions, by name.
std::vector<const FunctionEntry*> AllFunctions();

}  // namespace penstock::expr
