// The vectorAdd of the CUDA samples by number of elements: C = A + B, CTAs of 256 threads.
//
//     vectoradd ELEMENTS

#include <cstdlib>

__global__ void vectorAdd(const float* a, const float* b, float* c, int n) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i] + 0.0f;
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const int n = atoi(arguments[1]);
  float* host = static_cast<float*>(calloc(n, sizeof(float)));
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  cudaMemcpy(a, host, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, host, n * sizeof(float), cudaMemcpyHostToDevice);
  vectorAdd<<<(n + 255) / 256, 256>>>(a, b, c, n);
  cudaMemcpy(host, c, n * sizeof(float), cudaMemcpyDeviceToHost);
  return cudaGetLastError() != cudaSuccess;
}
