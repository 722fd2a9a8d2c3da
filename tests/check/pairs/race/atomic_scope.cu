/* Blocks add to one number with atomics that hold within a block only.

x, sum = integers(128), zeros(1)
module.add[2, 64](x, sum)
same(sum, [x.sum()])
*/
extern "C" __global__ void add(const int *x, int *sum) {
  const int own = x[blockIdx.x * 64 + threadIdx.x];
#ifdef FAULT
  atomicAdd_block(sum, own);  // fault: race-global
#else
  atomicAdd(sum, own);
#endif
}
