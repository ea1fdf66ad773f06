// Casts by name. To integers they saturate, drop the fraction and take NaN to 0; to bool they give
// x != 0; to floating types they round to nearest.
#include "server/expr/function.h"

namespace penstock::expr {
namespace {

#define PENSTOCK_CAST(name, dtype) \
  { name, name "(x)", "x as " name ".", 1, TypeRule::kCast, kernels::Operation(), DType::dtype }
const ElementwiseFunction kFamily[] = {
    PENSTOCK_CAST("bool", kBool),       PENSTOCK_CAST("int8", kInt8),
    PENSTOCK_CAST("uint8", kUint8),     PENSTOCK_CAST("int16", kInt16),
    PENSTOCK_CAST("uint16", kUint16),   PENSTOCK_CAST("int32", kInt32),
    PENSTOCK_CAST("uint32", kUint32),   PENSTOCK_CAST("int64", kInt64),
    PENSTOCK_CAST("uint64", kUint64),   PENSTOCK_CAST("float32", kFloat32),
    PENSTOCK_CAST("float64", kFloat64),
};
#undef PENSTOCK_CAST

const ElementwiseRegistration kRegistration(kFamily);

}  // namespace
}  // namespace penstock::expr
