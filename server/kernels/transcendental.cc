#include "server/kernels/arithmetic.h"
#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/transcendental.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/lane_program-inl.h"
#include "server/kernels/transcendental-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

Handler TranscendentalHandler(int code, Lane lane, Form form) {
  switch (static_cast<Transcendental>(code)) {
    case Transcendental::kExp:
      return UnaryOfFloats<ExpOp>(lane, form);
    case Transcendental::kLog:
      return UnaryOfFloats<LogOp>(lane, form);
    case Transcendental::kLog1p:
      return UnaryOfFloats<Log1pOp>(lane, form);
    case Transcendental::kTanh:
      return UnaryOfFloats<TanhOp>(lane, form);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
HWY_EXPORT(TranscendentalHandler);
Handler FindTranscendental(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(TranscendentalHandler)(code, lane, form);
}
}  // namespace penstock::kernels
#endif  // HWY_ONCE
