/* A warp waits for a flag that another one sets only behind a barrier for both.
slow: the faulty one runs until a time limit
one_order: the other warp sets the flag first, and nobody waits

x, y = integers(32), zeros(32)
module.wait[1, 64](x, y)
same(y, x)
*/
extern "C" __global__ void wait(const int *x, int *y) {
  __shared__ volatile int flag;
  __shared__ volatile int value[32];
  const int t = threadIdx.x;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t < 32) {
    while (flag == 0) {  // fault: deadlock
    }
    __threadfence_block();
    __syncwarp();
    y[t] = value[t];
#ifdef FAULT
    __syncthreads();
#endif
  } else {
#ifdef FAULT
    __syncthreads();  // other: deadlock
#endif
    value[t - 32] = x[t - 32];
    __syncwarp();
    __threadfence_block();
    if (t == 32) flag = 1;
  }
}
