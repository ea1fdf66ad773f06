#include "server/expr/scalar_type.h"

namespace penstock::expr {

TensorType ScalarType(DType dtype) {
  TensorType type;
  type.dtype = dtype;
  return type;
}

}  // namespace penstock::expr
