/* Two counters, which some threads raise one by one and others, in the faulty kernel, both at once by an atomic of
twice the size: atomics that do not overlap as a whole are not atomic to each other.

counts = zeros(2)
module.count[2, 64](counts)
same(counts, np.array([128, 64]))
*/
extern "C" __global__ void count(unsigned *counts) {
  if (threadIdx.x < 32) {
    atomicAdd(counts, 1);  // other: race-global
  } else {
#ifdef FAULT
    atomicAdd((unsigned long long *)counts, (1ull << 32) + 1);  // fault: race-global
#else
    atomicAdd(counts, 1);
    atomicAdd(counts + 1, 1);
#endif
  }
}
