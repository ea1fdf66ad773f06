#include "server/expr/each_string.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/column.h"
#include "server/base/row_shape.h"
#include "server/expr/arguments.h"
#include "server/expr/one_piece_output.h"

namespace penstock::expr {
namespace {

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
    const RowValue& strings = arguments[0];
    size_t count = 1;
    for (const int64_t size : strings.shape) count *= static_cast<size_t>(size);
    RowBytes* const results = scratch.AllocateArray<RowBytes>(count);
    RowValue string;
    string.data = strings.data + count * sizeof(uint32_t);
    // Without a string nothing tells the sizes.
    Shape shape = one_type_.shape;
    for (int64_t& size : shape)
      if (size == kUnknownSize) size = 0;
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      uint32_t bytes;
      std::memcpy(&bytes, strings.data + i * sizeof(bytes), sizeof(bytes));
      string.bytes = bytes;
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
      results[i] = result.row();
      total += results[i].size;
      if (total > bytes_max_) {
        return absl::ResourceExhaustedError(absl::StrCat("results larger than the limit: ", total,
                                                         " > ", bytes_max_, " bytes of ", i + 1,
                                                         " strings"));
      }
      string.data += bytes;
    }
    if (unknown_) {
      Shape whole = strings.shape;
      whole.insert(whole.end(), shape.begin(), shape.end());
      out.SetShape(whole);
    }
    const bool sized = one_type_.dtype == DType::kString;
    uint8_t* to = out.Reserve(total + (sized ? count * sizeof(uint32_t) : 0));
    for (size_t i = 0; sized && i < count; ++i, to += sizeof(uint32_t)) {
      const auto bytes = static_cast<uint32_t>(results[i].size);
      std::memcpy(to, &bytes, sizeof(bytes));
    }
    for (size_t i = 0; i < count; ++i) {
      if (results[i].size > 0) std::memcpy(to, results[i].data, results[i].size);
      to += results[i].size;
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
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
