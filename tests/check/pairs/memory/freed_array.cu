/* A kernel reads an array that the host has freed.

place = gpu.memory.allocate(256, "table")
gpu.memory.write(place, np.arange(64, dtype=np.int32).tobytes())
y = gpu.zeros(64, np.int32)
if fault:
    gpu.memory.free(place)
module.copy[1, 64](place, y)
if not fault:
    gpu.memory.free(place)
same(y, np.arange(64))
*/
extern "C" __global__ void copy(const int *x, int *y) {
  y[threadIdx.x] = x[threadIdx.x];  // fault: use-after-free
}
