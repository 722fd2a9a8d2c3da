/* A cooperative grid of more blocks than the GPU holds at once.

blocks = 4 * module.nothing.occupancy(1024).ctas
y = zeros(blocks + fault)
module.nothing[blocks + fault, 1024](y, cooperative=True)  # fault: cooperative-residency
same(y, np.ones(blocks))
*/
extern "C" __global__ void nothing(int *y) {
  if (threadIdx.x == 0) y[blockIdx.x] = 1;
}
