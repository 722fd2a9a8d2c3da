// Independent operations: how many lanes an SM computes in a cycle.
//
// Each warp keeps CHAINS chains of dependent operations under way, so that no latency shows. The time is that
// from the first warp's begin to the last one's end on one SM, by its clock; twice the LENGTH less once the
// LENGTH leaves what beginning and end take.
//
// Macros: TYPE: of the values. STEP(x, a, b): the operation, a statement that changes x. ODD_STEP(x, a, b): the
// operation of every second chain, by default the same. LENGTH: operations of each chain. CHAINS: chains of a
// thread.

#ifndef LENGTH
#define LENGTH 64
#endif
#ifndef CHAINS
#define CHAINS 8
#endif
#ifndef ODD_STEP
#define ODD_STEP STEP
#endif

template <int count>
__device__ __forceinline__ void work(TYPE (&x)[CHAINS], TYPE a, TYPE b) {
#pragma unroll
  for (int i = 0; i < count; ++i)
#pragma unroll
    for (int k = 0; k < CHAINS; ++k) {
      if (k % 2) {
        ODD_STEP(x[k], a, b);
      } else {
        STEP(x[k], a, b);
      }
    }
}

// begins, ends: of each warp, in its SM's clock. DOUBLE: twice the LENGTH.
extern "C" __global__ void throughput(TYPE* values, long long* begins, long long* ends, TYPE a, TYPE b) {
  TYPE x[CHAINS];
#pragma unroll
  for (int k = 0; k < CHAINS; ++k) x[k] = values[threadIdx.x] + static_cast<TYPE>(k);
  long long begin = 0, end = 0;
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {  // the first brings the instructions into the caches
    __syncthreads();
    begin = clock64();
#ifdef DOUBLE
    work<2 * LENGTH>(x, a, b);
#else
    work<LENGTH>(x, a, b);
#endif
    __syncthreads();
    end = clock64();
  }
  TYPE sum = x[0];
#pragma unroll
  for (int k = 1; k < CHAINS; ++k) sum = sum + x[k];
  values[threadIdx.x] = sum;
  if (threadIdx.x % 32 == 0) {
    begins[threadIdx.x / 32] = begin;
    ends[threadIdx.x / 32] = end;
  }
}
