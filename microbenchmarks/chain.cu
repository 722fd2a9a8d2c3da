// Dependent instructions: the latency of an operation from its result to the next one that needs it.
//
// One warp executes LENGTH operations, each of which needs the one before, between two readings of the clock;
// twice the LENGTH less once the LENGTH leaves what the chain itself takes.
//
// Macros: TYPE: of the values. STEP(x, a, b): the operation, an expression or statement that changes x.
// LENGTH: operations between the readings.

#ifndef LENGTH
#define LENGTH 128
#endif

template <int count>
__device__ __forceinline__ long long timed(TYPE& x, TYPE a, TYPE b) {
  const long long begin = clock64();
#pragma unroll
  for (int i = 0; i < count; ++i) { STEP(x, a, b); }
  // The clock is read after the last result is there: the reading depends on it.
  asm volatile("" ::"r"(*reinterpret_cast<int*>(&x)) : "memory");
  const long long end = clock64();
  return end - begin;
}

extern "C" __global__ void chain(TYPE* values, long long* cycles, TYPE a, TYPE b) {
  TYPE x = values[threadIdx.x];
  long long once = 0, twice = 0;
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {  // the first brings the instructions into the caches
    once = timed<LENGTH>(x, a, b);
    twice = timed<2 * LENGTH>(x, a, b);
  }
  values[threadIdx.x] = x;
  if (threadIdx.x == 0) {
    cycles[0] = once;
    cycles[1] = twice;
  }
}
