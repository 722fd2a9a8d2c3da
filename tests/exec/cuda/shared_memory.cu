// Dynamic shared memory, also more than 48 KB, and templates.
#include <vector>

#include "check.h"

template <typename T>
__global__ void reverse(T* x, int n) {
  extern __shared__ unsigned char bytes[];
  T* shared = reinterpret_cast<T*>(bytes);
  for (int i = threadIdx.x; i < n; i += blockDim.x) shared[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = shared[n - 1 - i];
}

template <typename T>
void try_it(int n, bool large) {
  std::vector<T> host(n);
  for (int i = 0; i < n; ++i) host[i] = T(i);
  T* device;
  CUDA(cudaMalloc(&device, n * sizeof(T)));
  CUDA(cudaMemcpy(device, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  if (large) {
    reverse<T><<<1, 128, n * sizeof(T)>>>(device, n);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CUDA(cudaFuncSetAttribute(reverse<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, n * sizeof(T)));
  }
  reverse<T><<<1, 128, n * sizeof(T)>>>(device, n);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) CHECK(host[i] == T(n - 1 - i));
}

int main() {
  try_it<int>(1000, false);
  try_it<double>(300, false);
  try_it<short>(30000, true);
  std::puts("ok");
}
