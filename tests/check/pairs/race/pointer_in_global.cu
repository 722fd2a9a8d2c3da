/* An atomic on another thread's local memory, through a pointer that it has left in global memory.
gpu: a100

y, pointers = zeros(64), zeros(64, np.int64)
module.add[1, 64](y, pointers)
same(y, np.full(64, 7))
*/
extern "C" __global__ void add(int *y, int **pointers) {
  const int t = threadIdx.x;
  int mine[4] = {t, t, 2, t};
  pointers[t] = mine;  // other: race-local
  __syncthreads();
#ifdef FAULT
  atomicAdd(pointers[t ^ 1] + 2, 5);  // fault: race-local
#else
  atomicAdd(pointers[t] + 2, 5);
#endif
  __syncthreads();
  y[t] = mine[2];
}
