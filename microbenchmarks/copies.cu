// Copies into shared memory that threads wait for later: cp.async, and bulk copies that complete on an mbarrier; and
// loads of another CTA's shared memory.

#include "clock.cuh"

// cycles[0], cycles[1]: of `steps` rounds and of twice as many, in each of which every thread copies `each` times 16
// bytes, and waits.
extern "C" __global__ void copy_async(const char* data, int each, int steps, long long* cycles) {
  extern __shared__ __align__(16) char memory[];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(memory)) + 16 * threadIdx.x;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = part < 0 ? 2 : steps << part;
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
#pragma unroll 4
      for (int k = 0; k < each; ++k)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
                     "l"(data + 16 * (threadIdx.x + k * blockDim.x))
                     : "memory");
      asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    if (part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
}

#if __CUDA_ARCH__ >= 900
// As before, with `each` bulk copies of `bytes` by one thread in each round.
extern "C" __global__ void copy_bulk(const char* data, int bytes, int each, int steps, long long* cycles) {
  extern __shared__ __align__(16) char memory[];
  __shared__ __align__(8) unsigned long long barrier;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(memory));
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(at) : "memory");
  unsigned phase = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = part < 0 ? 2 : steps << part;
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}" ::"r"(at),
                   "r"(bytes * each)
                   : "memory");
#pragma unroll 1
      for (int k = 0; k < each; ++k)
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
            "l"(data + k * bytes), "r"(bytes), "r"(at)
            : "memory");
      unsigned done = 0;
      while (!done)
        asm volatile(
            "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(at), "r"(phase)
            : "memory");
      phase ^= 1;
    }
    if (part >= 0) cycles[part] = clock64() - begin;
  }
}

// A chase by CTA 0 of a cluster in the shared memory of CTA 1, where offset 0 leads to itself.
extern "C" __global__ void chase_cluster(int steps, long long* cycles, unsigned* end) {
  __shared__ unsigned memory[32];
  const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(memory));
  unsigned rank, other;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(other) : "r"(own));
  memory[threadIdx.x] = other;
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
  if (rank == 0) {
    unsigned p = other;
#pragma unroll 1
    for (int part = -1; part < 2; ++part) {
      const int count = part < 0 ? 4 : steps << part;
      const long long begin = clock_after(p);
#pragma unroll 4
      for (int i = 0; i < count; ++i) asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(p)::"memory");
      const long long now = clock_after(p);
      if (part >= 0) cycles[part] = now - begin;
    }
    *end = p;
  }
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}

// CTA 0's threads read 16 bytes each of CTA 1's shared memory, over and over.
extern "C" __global__ void within_cluster(int loads, long long* cycles, unsigned* sink) {
  extern __shared__ __align__(16) char memory[];
  const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(memory)) + 16 * threadIdx.x;
  unsigned rank, other, sum = 0;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(other) : "r"(own));
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = rank > 0 ? 0 : part < 0 ? 8 : loads << part;
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      uint4 v;
      asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(other));
      sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (rank == 0) sink[threadIdx.x] = sum;
    __syncthreads();
    if (rank == 0 && part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}
#endif
