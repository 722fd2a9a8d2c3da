/* Order through a third stream: a waits for nothing, b for a, c for b. The faulty c waits for no one.

x, y = gpu.array(integers(64)), gpu.zeros(64, np.int32)
want = 3 * x.numpy() + 1
a, b, c = gpu.stream(), gpu.stream(), gpu.stream()
module.triple[1, 64, 0, a](x)
b.wait(a.record())
module.nothing[1, 1, 0, b]()
if not fault:
    c.wait(b.record())
module.next[1, 64, 0, c](x, y)
gpu.synchronize()
same(y, want)
*/
extern "C" __global__ void triple(int *x) {
  x[threadIdx.x] *= 3;  // other: race-launch
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void next(const int *x, int *y) {
  y[threadIdx.x] = x[threadIdx.x] + 1;  // fault: race-launch
}
