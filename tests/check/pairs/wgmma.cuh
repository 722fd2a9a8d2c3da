// What products of a 64 x 16 by a 16 x 8 matrix of f16 share; see PTX ISA, wgmma, for the layouts.
#pragma once
#include "instructions.cuh"

#ifndef TILE_FENCE
#define TILE_FENCE FENCE_ASYNC
#endif

// The right matrix (8 rows of 16 along k, as 8 words each) as two core matrices of 8 rows of 16 bytes.
#define TILE(b)                                                                                         \
  __shared__ __align__(128) unsigned tile[64];                                                               \
  if (threadIdx.x < 64) tile[threadIdx.x % 8 / 4 * 32 + threadIdx.x / 8 * 4 + threadIdx.x % 4] = b[threadIdx.x]; \
  TILE_FENCE();                                                                                            \
  const unsigned long long descriptor = (SHARED(tile) & 0x3ffff) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32

#define ROW (threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4)
#define COLUMN (threadIdx.x % 4)
#define LEFT(a)                                                                                  \
  float d[4] = {0, 0, 0, 0};                                                                        \
  const unsigned left[4] = {a[ROW * 8 + COLUMN], a[(ROW + 8) * 8 + COLUMN], a[ROW * 8 + COLUMN + 4], \
                            a[(ROW + 8) * 8 + COLUMN + 4]}
