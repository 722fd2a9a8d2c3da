/* The event that the second stream waits for is recorded before the first one's launch.

x, y = gpu.array(integers(64)), gpu.zeros(64, np.int32)
want = 3 * x.numpy() + 1
one, two = gpu.stream(), gpu.stream()
event = one.record()
module.triple[1, 64, 0, one](x)
if not fault:
    event = one.record()
two.wait(event)
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
