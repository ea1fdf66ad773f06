#include "server/engine/tensor/joined_tensor.h"

#include "server/engine/tensor/packed_ragged_tensor.h"
#include "server/engine/tensor/sparse_tensor.h"
#include "server/engine/tensor/variable_tensor.h"

namespace penstock {

std::unique_ptr<JoinedTensor> MakeJoinedTensor(const BatchTensor& tensor, const RowLayout& layout) {
  if (tensor.kind == TensorKind::kSparse) return std::make_unique<SparseTensor>(tensor, layout);
  if (layout.row.form == RowForm::kPackedRagged)
    return std::make_unique<PackedRaggedTensor>(tensor, layout);
  return std::make_unique<VariableTensor>(tensor, layout);
}

}  // namespace penstock
