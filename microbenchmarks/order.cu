// In which order a scheduler's warps go: how long each takes for the same work, while all have some.
//
// Macros: LENGTH: rounds of eight independent operations.

// begins, ends: of each warp, in its SM's clock.
extern "C" __global__ void order(float* values, long long* begins, long long* ends, float a, float b) {
  float x[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = values[threadIdx.x] + k;
  long long begin = 0, end = 0;
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {  // the first brings the instructions into the caches
    __syncthreads();
    begin = clock64();
#pragma unroll 4
    for (int i = 0; i < LENGTH; ++i)
#pragma unroll
      for (int k = 0; k < 8; ++k) x[k] = __fmaf_rn(x[k], a, b);
    // The clock is read after the last results are there.
    float sum = x[0];
#pragma unroll
    for (int k = 1; k < 8; ++k) sum += x[k];
    values[threadIdx.x] = sum;
    end = clock64();
  }
  if (threadIdx.x % 32 == 0) {
    begins[threadIdx.x / 32] = begin;
    ends[threadIdx.x / 32] = end;
  }
}
