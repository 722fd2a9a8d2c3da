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

extern "C" __global__ void read_each(double* data, long long elements) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < elements && data[i] == 1.25) data[i] = 0;
}

// With more bytes under way: 16 of each thread.
extern "C" __global__ void read_vectors(const uint4* from, long long elements, unsigned* sink) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i >= elements) return;
  const uint4 v = from[i];
  if ((v.x ^ v.y ^ v.z ^ v.w) == 0x12345678u) sink[0] = v.x;
}
