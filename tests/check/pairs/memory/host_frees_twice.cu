/* The host frees an allocation twice.

place, y = gpu.memory.allocate(256), zeros(64)
module.fill[1, 64](place)
gpu.memory.free(place)  # other: double-free
if fault:
    gpu.memory.free(place)  # fault: double-free
*/
extern "C" __global__ void fill(int *x) { x[threadIdx.x] = 1; }
