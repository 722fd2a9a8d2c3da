// A kernel that launches a kernel. Errors are not looked at.
__global__ void child(int* counts) { atomicAdd(&counts[blockIdx.x], 1); }

__global__ void parent(int* counts) { child<<<4, 64>>>(counts); }

int main() {
  int* counts = nullptr;
  cudaMalloc(&counts, 4 * sizeof(int));
  parent<<<1, 1>>>(counts);
  cudaDeviceSynchronize();
}
