// What a program asks of a device before it begins.
#include <cstring>

#include "check.h"

__global__ void __launch_bounds__(256) kernel(float* x) { x[threadIdx.x] += 1; }

int main(int, char** arguments) {
  int count = 0, device = -1, runtime = 0, driver = 0, value = 0;
  CUDA(cudaGetDeviceCount(&count));
  CHECK(count == 1);
  CUDA(cudaGetDevice(&device));
  CHECK(device == 0);
  CUDA(cudaRuntimeGetVersion(&runtime));
  CUDA(cudaDriverGetVersion(&driver));
  CHECK(runtime / 1000 == CUDART_VERSION / 1000 && driver >= 12000);
  cudaDeviceProp properties;
  CUDA(cudaGetDeviceProperties(&properties, 0));
  CHECK(properties.warpSize == 32 && properties.multiProcessorCount == 132 && properties.major == 9);
  CHECK(properties.totalGlobalMem == size_t{80} << 30 && std::strstr(properties.name, "H100"));
  CHECK(properties.sharedMemPerBlock == 48 << 10 && properties.sharedMemPerBlockOptin == 227 << 10);
  CHECK(properties.maxThreadsPerMultiProcessor == 2048 && properties.l2CacheSize > 40 << 20);
  CHECK(properties.maxGridSize[1] == 65535 && properties.regsPerMultiprocessor == 65536);
  CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  CHECK(value == 9);
  cudaFuncAttributes of_kernel;
  CUDA(cudaFuncGetAttributes(&of_kernel, kernel));
  CHECK(of_kernel.maxThreadsPerBlock == 256 && of_kernel.numRegs > 0 && of_kernel.ptxVersion >= 75);
  int ctas = 0, grid = 0, block = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, kernel, 256, 0));
  CHECK(ctas == 8);
  CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 0));
  CHECK(block == 256 && grid == 8 * 132);
  size_t free, total;
  CUDA(cudaMemGetInfo(&free, &total));
  CHECK(free == total);
  void* memory;
  CUDA(cudaMalloc(&memory, 1 << 20));
  CHECK(reinterpret_cast<size_t>(memory) % properties.textureAlignment == 0);
  CUDA(cudaMemGetInfo(&free, &total));
  CHECK(total - free == 1 << 20);
  CUDA(cudaDeviceCanAccessPeer(&value, 0, 0));
  std::puts("ok");
}
