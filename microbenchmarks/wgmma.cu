// Products by a warpgroup, of matrices in shared memory: what an SM's tensor cores do in a cycle.
//
// Macros: TYPE: of the accumulators. COUNT: of them in a thread. MULTIPLY(d, a, b): the instruction. STEPS: of them.

extern "C" __global__ void __launch_bounds__(128) wgmma(long long* cycles, TYPE* sink) {
  extern __shared__ __align__(1024) unsigned memory[];
  for (int i = threadIdx.x; i < 8192; i += 128) memory[i] = 0;
  __syncthreads();
  const unsigned long long start = static_cast<unsigned long long>(__cvta_generic_to_shared(memory)) >> 4;
  // Without swizzling; 128 and 256 bytes between the small matrices.
  const unsigned long long a = start | 8ull << 16 | 16ull << 32, b = a;
  TYPE d[COUNT];
#pragma unroll
  for (int i = 0; i < COUNT; ++i) d[i] = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int steps = part < 0 ? 4 : STEPS << part;
    __syncthreads();
    const long long begin = clock64();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll 4
    for (int i = 0; i < steps; ++i) MULTIPLY(d, a, b);
    asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::: "memory");
    TYPE sum = d[0];
#pragma unroll
    for (int i = 1; i < COUNT; ++i) sum += d[i];
    sink[threadIdx.x] = sum;
    __syncthreads();
    if (part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
}
