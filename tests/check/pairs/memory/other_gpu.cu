/* A kernel is given an address in the memory of another GPU.

other = gpus(1)
own = gpu.array(np.arange(64, dtype=np.int32))
theirs = other.array(np.arange(64, dtype=np.int32))
padding = [other.memory.allocate(1 << 20) for _ in range(3)]
far = other.memory.allocate(256)
y = zeros(64)
module.copy[1, 64](far if fault else own, y)
for place in (*padding, far):
    other.memory.free(place)
same(y, np.arange(64))
*/
extern "C" __global__ void copy(const int *x, int *y) {
  y[threadIdx.x] = x[threadIdx.x];  // fault: wrong-gpu
}
