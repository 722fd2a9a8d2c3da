/* Two tiles of a matrix are on their way; the second is used after the wait for the first.
gpu: h100

from simt._engine import functional

x = gpu.array(integers((8, 32)))
y = zeros((16, 8))
tiles = functional.encode_tensor_map(3, x.address, [32, 8], [128], [8, 8], [1, 1])
module.transpose[1, 64](tiles, y)
same(y, x.numpy()[:, 8:24].T)
*/
#include "instructions.cuh"
#ifdef FAULT
#define OF_TILE(k) 0
#else
#define OF_TILE(k) (k)
#endif
struct alignas(64) TensorMap {
  char bytes[128];
};
extern "C" __global__ void transpose(const __grid_constant__ TensorMap map, int *y) {
  __shared__ __align__(128) int tiles[2][64];
  __shared__ unsigned long long full[2];
  const int t = threadIdx.x;
  if (t == 0)
    for (int k = 0; k < 2; ++k) {
      MBARRIER_INIT(&full[k], 1);
      FENCE_ASYNC();
    }
  __syncthreads();
  if (t == 0)
#pragma unroll 1
    for (int k = 0; k < 2; ++k) {
      MBARRIER_EXPECT(&full[k], 256);
      TENSOR_LOAD(tiles[k], &map, 8 + 8 * k, 0, &full[k]);  // other: race-async
    }
#pragma unroll 1
  for (int k = 0; k < 2; ++k) {
    MBARRIER_WAIT(&full[OF_TILE(k)], 0);
    y[(8 * k + t / 8) * 8 + t % 8] = tiles[k][t % 8 * 8 + t / 8];  // fault: race-async
  }
  MBARRIER_WAIT(&full[1], 0);
}
