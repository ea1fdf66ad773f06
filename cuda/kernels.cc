// The compiled kernels, as bytes of the program.
#include "cuda/expansion.h"

#ifdef PENSTOCK_CUDA_KERNELS
// clang-format off
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "penstock_cuda_kernels_begin:\n"
    ".incbin \"" PENSTOCK_CUDA_KERNELS "\"\n"
    "penstock_cuda_kernels_end:\n"
    ".popsection\n");
// clang-format on
extern "C" const uint8_t penstock_cuda_kernels_begin[] __attribute__((visibility("hidden")));
extern "C" const uint8_t penstock_cuda_kernels_end[] __attribute__((visibility("hidden")));
#endif

namespace penstock::cuda {

std::span<const uint8_t> Kernels() {
#ifdef PENSTOCK_CUDA_KERNELS
  return {penstock_cuda_kernels_begin, penstock_cuda_kernels_end};
#else
  return {};
#endif
}

}  // namespace penstock::cuda
