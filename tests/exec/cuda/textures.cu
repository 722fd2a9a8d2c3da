// A texture over an array, with filtering; one over linear memory; and a surface.
#include <cmath>
#include <vector>

#include "check.h"

__global__ void read(cudaTextureObject_t image, cudaTextureObject_t line, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  out[y * width + x] = tex2D<float>(image, x + 1.0f, y + 0.5f) + tex1Dfetch<float>(line, x);
}

__global__ void write(cudaSurfaceObject_t surface, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) surf2Dwrite(float(x * y), surface, x * 4, y);
}

int main() {
  const int width = 20, height = 10;
  std::vector<float> host(width * height), line(width), out(width * height);
  for (int i = 0; i < width * height; ++i) host[i] = i % 7;
  for (int i = 0; i < width; ++i) line[i] = 100 * i;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CUDA(cudaMallocArray(&array, &format, width, height, cudaArraySurfaceLoadStore));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, host.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how{};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.filterMode = cudaFilterModeLinear;
  how.readMode = cudaReadModeElementType;
  cudaTextureObject_t image, linear;
  CUDA(cudaCreateTextureObject(&image, &resource, &how, nullptr));
  float *memory, *result;
  CUDA(cudaMalloc(&memory, width * 4));
  CUDA(cudaMalloc(&result, width * height * 4));
  CUDA(cudaMemcpy(memory, line.data(), width * 4, cudaMemcpyHostToDevice));
  cudaResourceDesc flat{};
  flat.resType = cudaResourceTypeLinear;
  flat.res.linear.devPtr = memory;
  flat.res.linear.desc = format;
  flat.res.linear.sizeInBytes = width * 4;
  cudaTextureDesc plain{};
  plain.readMode = cudaReadModeElementType;
  CUDA(cudaCreateTextureObject(&linear, &flat, &plain, nullptr));
  const dim3 block(8, 8), grid((width + 7) / 8, (height + 7) / 8);
  read<<<grid, block>>>(image, linear, result, width, height);
  CUDA(cudaMemcpy(out.data(), result, width * height * 4, cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const float right = host[y * width + std::min(x + 1, width - 1)];
      const float wanted = (host[y * width + x] + right) / 2 + line[x];
      CHECK(std::abs(out[y * width + x] - wanted) < 0.01f);
    }
  cudaSurfaceObject_t surface;
  CUDA(cudaCreateSurfaceObject(&surface, &resource));
  write<<<grid, block>>>(surface, width, height);
  CUDA(cudaMemcpy2DFromArray(out.data(), width * 4, array, 0, 0, width * 4, height, cudaMemcpyDeviceToHost));
  for (int i = 0; i < width * height; ++i) CHECK(out[i] == float((i % width) * (i / width)));
  CUDA(cudaDestroyTextureObject(image));
  CUDA(cudaDestroyTextureObject(linear));
  CUDA(cudaDestroySurfaceObject(surface));
  CUDA(cudaFreeArray(array));
  std::puts("ok");
}
