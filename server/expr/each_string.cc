#include "server/expr/each_string.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/column.h"
#include "base/row_shape.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/one_piece_output.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

// Of a string beside its bytes, as StopLook counts it.
constexpr uint64_t kStringWork = 256;

// One string's result, in the scratch memory.
class OneResult final : public OnePieceOutput {
 public:
  using OnePieceOutput::OnePieceOutput;
  void SetShape(const Shape& shape) override { shape_ = shape; }
  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
};

class EachString final : public RowKernel {
 public:
  EachString(std::shared_ptr<const RowKernel> one, const TensorType& one_type, bool unknown,
             uint64_t bytes_max)
      : one_(std::move(one)), one_type_(one_type), unknown_(unknown), bytes_max_(bytes_max) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const auto strings = StringsOf(arguments[0], scratch);
    const size_t count = strings.size();
    auto* const results = scratch.AllocateArray<absl::string_view>(count);
    RowValue string;
    // Without a string nothing tells the sizes.
    Shape shape = one_type_.shape;
    for (int64_t& size : shape)
      if (size == kUnknownSize) size = 0;
    uint64_t total = 0;
    StopLook look;
    for (size_t i = 0; i < count; ++i) {
      look.Did(strings[i].size() + kStringWork);
      string.data = reinterpret_cast<const uint8_t*>(strings[i].data());
      string.bytes = strings[i].size();
      OneResult result(scratch);
      absl::Status status = one_->Run({&string, 1}, scratch, result);
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat("string ", i, " of ", count, ": ", status.message()));
      }
      if (HasUnknownAxes(one_type_.shape)) {
        if (i == 0) shape = result.shape();
        if (result.shape() != shape) {
          return absl::DataLossError(
              absl::StrCat("expected results of one shape, found ",
                           TypeToString({one_type_.dtype, shape}), " of the first string and ",
                           TypeToString({one_type_.dtype, result.shape()}), " of number ", i));
        }
      }
      const RowBytes row = result.row();
      results[i] = absl::string_view(reinterpret_cast<const char*>(row.data), row.size);
      total += row.size;
      if (total > bytes_max_) {
        return absl::ResourceExhaustedError(absl::StrCat("results larger than the limit: ", total,
                                                         " > ", bytes_max_, " bytes of ", i + 1,
                                                         " strings"));
      }
    }
    if (unknown_) {
      Shape whole = arguments[0].shape;
      whole.insert(whole.end(), shape.begin(), shape.end());
      out.SetShape(whole);
    }
    const bool is_bytes = one_type_.dtype != DType::kString;
    if (is_bytes || shape.empty()) return PutStrings({results, count}, is_bytes, out);
    return PutStrings(PartsOf({results, count}, shape, scratch), /*is_scalar=*/false, out);
  }

 private:
  // The strings of results that are tensors of them.
  static absl::Span<const absl::string_view> PartsOf(absl::Span<const absl::string_view> results,
                                                     const Shape& shape, Arena& scratch) {
    const size_t count = results.size() * static_cast<size_t>(*NumElements(shape));
    auto* const parts = scratch.AllocateArray<absl::string_view>(count);
    absl::string_view* end = parts;
    StopLook look;
    for (const absl::string_view result : results) {
      look.Did(kStringWork);
      const auto* const data = reinterpret_cast<const uint8_t*>(result.data());
      const auto strings = StringsOf({data, result.size(), shape}, scratch);
      end = std::copy(strings.begin(), strings.end(), end);
    }
    return {parts, count};
  }

  const std::shared_ptr<const RowKernel> one_;
  const TensorType one_type_;
  const bool unknown_;  // of the result, some size
  const uint64_t bytes_max_;
};

}  // namespace

absl::Status ReadStrings(const Argument& argument, std::string_view name) {
  if (argument.type.dtype == DType::kString && !argument.literal) return absl::OkStatus();
  return WrongArgument(
      name, absl::StrCat("a string or a tensor of strings, found ", TypeToString(argument.type)));
}

BoundRowFunction ForEachString(const Shape& strings, BoundRowFunction one, uint64_t bytes_max) {
  if (strings.empty()) return one;
  TensorType type = {one.type.dtype, strings};
  type.shape.insert(type.shape.end(), one.type.shape.begin(), one.type.shape.end());
  one.kernel = std::make_shared<EachString>(std::move(one.kernel), one.type,
                                            HasUnknownAxes(type.shape), bytes_max);
  one.type = std::move(type);
  return one;
}

}  // namespace penstock::expr
