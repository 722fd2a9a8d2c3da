// Copies and memsets of all shapes.
#include <cstring>
#include <vector>

#include "check.h"

int main() {
  const size_t width = 30, height = 7, depth = 3;
  std::vector<unsigned char> host(width * height * depth), back(width * height * depth);
  for (size_t i = 0; i < host.size(); ++i) host[i] = i * 37;
  unsigned char* pitched;
  size_t pitch;
  CUDA(cudaMallocPitch(&pitched, &pitch, width, height));
  CHECK(pitch >= width);
  CUDA(cudaMemcpy2D(pitched, pitch, host.data(), width, width, height, cudaMemcpyHostToDevice));
  CUDA(cudaMemset2D(pitched + pitch, pitch, 9, 5, 2));
  CUDA(cudaMemcpy2D(back.data(), width, pitched, pitch, width, height, cudaMemcpyDeviceToHost));
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < width; ++x)
      CHECK(back[y * width + x] == ((y == 1 || y == 2) && x < 5 ? 9 : host[y * width + x]));

  cudaPitchedPtr volume;
  const cudaExtent extent = make_cudaExtent(width, height, depth);
  CUDA(cudaMalloc3D(&volume, extent));
  cudaMemcpy3DParms in{};
  in.srcPtr = make_cudaPitchedPtr(host.data(), width, width, height);
  in.dstPtr = volume;
  in.extent = extent;
  in.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&in));
  cudaMemcpy3DParms out{};
  out.srcPtr = volume;
  out.srcPos = make_cudaPos(2, 1, 1);
  out.dstPtr = make_cudaPitchedPtr(back.data(), 10, 10, 4);
  out.extent = make_cudaExtent(10, 4, 2);
  out.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&out));
  for (size_t z = 0; z < 2; ++z)
    for (size_t y = 0; y < 4; ++y)
      for (size_t x = 0; x < 10; ++x)
        CHECK(back[(z * 4 + y) * 10 + x] == host[((z + 1) * height + y + 1) * width + x + 2]);

  int* numbers;
  CUDA(cudaMallocAsync(&numbers, 1000, nullptr));
  CUDA(cudaMemsetAsync(numbers, 0xff, 1000, nullptr));
  int first = 0;
  CUDA(cudaMemcpyAsync(&first, numbers + 100, sizeof first, cudaMemcpyDeviceToHost, nullptr));
  CUDA(cudaStreamSynchronize(nullptr));
  CHECK(first == -1);
  CUDA(cudaFreeAsync(numbers, nullptr));
  CUDA(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(pitched, host.data(), size_t{1} << 40, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  std::puts("ok");
}
