/* The program does not free an allocation.

place = gpu.memory.allocate(256, "table")  # fault: leak-device
module.fill[1, 64](place)
if not fault:
    gpu.memory.free(place)
*/
extern "C" __global__ void fill(int *x) { x[threadIdx.x] = 1; }
