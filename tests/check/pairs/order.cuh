// Included before a kernel: its warps exchange their roles, so that they do everything in another order.
#pragma once

__device__ __forceinline__ uint3 other_thread() {
  const unsigned warps = blockDim.x / 32;
  if (blockDim.y > 1) return make_uint3(threadIdx.x, blockDim.y - 1 - threadIdx.y, threadIdx.z);
  if (blockDim.x % 32) return threadIdx;
  return make_uint3((warps - 1 - threadIdx.x / 32) * 32 + threadIdx.x % 32, 0, 0);
}
#define threadIdx (other_thread())
