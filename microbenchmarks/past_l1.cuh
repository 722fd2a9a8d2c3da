// How a load looks that goes past the L1: PAST_L1 ".u32 %0, [%1];". Before Volta PTX has no .relaxed, and .cg does it.
#pragma once

#if __CUDA_ARCH__ >= 700
#define PAST_L1 "ld.relaxed.gpu.global"
#else
#define PAST_L1 "ld.global.cg"
#endif
