/* A stream reads what another one writes, without an event.

x, y = gpu.array(integers(64)), gpu.zeros(64, np.int32)
want = 3 * x.numpy() + 1
one, two = gpu.stream(), gpu.stream()
module.triple[1, 64, 0, one](x)
if not fault:
    two.wait(one.record())
module.next[1, 64, 0, two](x, y)
gpu.synchronize()
same(y, want)
*/
extern "C" __global__ void triple(int *x) {
  x[threadIdx.x] *= 3;  // other: race-launch
}
extern "C" __global__ void next(const int *x, int *y) {
  y[threadIdx.x] = x[threadIdx.x] + 1;  // fault: race-launch
}
