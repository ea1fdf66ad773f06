#include "server/expr/constant_texts.h"

#include <memory>
#include <utility>

#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

class ConstantTexts final : public RowKernel {
 public:
  explicit ConstantTexts(std::shared_ptr<const std::vector<std::string>> texts)
      : texts_(std::move(texts)) {}

  absl::Status Run(absl::Span<const RowValue>, Arena&, RowOutput& out) const override {
    const std::vector<absl::string_view> strings(texts_->begin(), texts_->end());
    return PutStrings(strings, /*is_scalar=*/false, out);
  }

 private:
  const std::shared_ptr<const std::vector<std::string>> texts_;
};

}  // namespace

BoundRowFunction BindTexts(const Shape& shape, std::vector<std::string> texts) {
  BoundRowFunction bound;
  bound.type = {DType::kString, shape};
  bound.texts = std::make_shared<const std::vector<std::string>>(std::move(texts));
  bound.kernel = std::make_shared<ConstantTexts>(bound.texts);
  return bound;
}

}  // namespace penstock::expr
