/* A kernel is given the address of an array of the host.

x, y = integers(64), zeros(64)
module.copy[1, 64](x.ctypes.data if fault else x, y)
same(y, x)
*/
extern "C" __global__ void copy(const int *x, int *y) {
  y[threadIdx.x] = x[threadIdx.x];  // fault: host-pointer
}
