// Launches the kernels of gpu-benches' gpu-stream on parts of its arrays: in CTAs of THREADS threads, two on each SM,
// WAVES times. The first launch leaves the L2 as a long one does; the second goes on behind it.
//
//     gpu_stream KERNEL THREADS WAVES

#include <cstdlib>
#include <cstring>

#define main benchmark_main
#include "gpu-stream/main.cu"
#undef main

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const char* names[] = {"init", "read", "scale", "triad", "stencil3", "stencil5"};
  const kernel_ptr_type kernels[] = {init_kernel<double>,  read_kernel<double>,        scale_kernel<double>,
                                     triad_kernel<double>, stencil1d3pt_kernel<double>, stencil1d5pt_kernel<double>};
  kernel_ptr_type kernel = nullptr;
  for (int i = 0; i < 6; ++i)
    if (!strcmp(names[i], arguments[1])) kernel = kernels[i];
  if (!kernel) return 2;

  cudaDeviceProp gpu;
  if (cudaGetDeviceProperties(&gpu, 0) != cudaSuccess) return 1;
  const size_t threads = atoi(arguments[2]), ctas = 2 * gpu.multiProcessorCount * size_t(atoi(arguments[3]));
  const size_t elements = ctas * threads;
  double* arrays[4];
  for (double*& array : arrays)
    if (cudaMalloc(&array, 2 * elements * sizeof(double)) != cudaSuccess) return 1;
  // The published run has two CTAs on an SM by asking for little shared memory; a third finds none here.
  const int shared = gpu.sharedMemPerMultiprocessor / 2 - 9 * 1024;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  for (size_t first = 0; first < 2 * elements; first += elements)
    kernel<<<ctas, threads, shared>>>(arrays[0] + first, arrays[1] + first, arrays[2] + first, arrays[3] + first,
                                      elements, false);
  return cudaDeviceSynchronize() != cudaSuccess;
}
