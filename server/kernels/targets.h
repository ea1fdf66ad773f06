// The instruction sets that kernels are compiled for. Must be included before highway's headers, in
// every kernel.
#pragma once

// The project's baseline is x86-64-v2, which is SSE4.2 without AES; no kernel here uses AES. Older
// sets than the baseline are left out, and AVX-512's later additions, which gain nothing measurable
// here.
#ifndef HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLE_PCLMUL_AES
#endif
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
