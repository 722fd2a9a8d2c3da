// Streams through device memory as programs write them: a thread moves one element, CTAs go along the arrays.
//
// Of a launch the time is taken.

extern "C" __global__ void fill_each(double* to, long long elements) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < elements) to[i] = 1.25;
}

extern "C" __global__ void scale_each(double* to, const double* from, long long elements) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < elements) to[i] = from[i] * 1.25;
}

// With more bytes under way, and CTAs that last: a thread reads `rounds` times two vectors of 16 bytes. In each
// round, the CTAs read what is next to each other.
extern "C" __global__ void read_vectors(const uint4* from, int rounds, unsigned* sink) {
  const uint4* at = from + blockIdx.x * 2LL * blockDim.x + threadIdx.x;
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < rounds; ++i, at += 2LL * gridDim.x * blockDim.x) {
    const uint4 v = at[0], w = at[blockDim.x];
    sum ^= v.x ^ v.y ^ v.z ^ v.w ^ w.x ^ w.y ^ w.z ^ w.w;
  }
  if (sum == 0x12345678u) sink[0] = sum;
}
