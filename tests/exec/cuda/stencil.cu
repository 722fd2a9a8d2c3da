// A stencil over pitched memory, with a texture of its input, a class template, several streams and 3D
// copies.
#include <cmath>
#include <vector>

#include "check.h"

__constant__ float weights[3];

template <class T, int RADIUS>
class Stencil {
 public:
  Stencil(int width, int height) : width_(width), height_(height) {
    CUDA(cudaMallocPitch(&in_, &in_pitch_, width * sizeof(T), height));
    CUDA(cudaMallocPitch(&out_, &out_pitch_, width * sizeof(T), height));
    CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0));
  }
  ~Stencil() {
    cudaFree(in_);
    cudaFree(out_);
    cudaStreamDestroy(stream_);
  }
  std::vector<T> run(const std::vector<T>& values);

 private:
  int width_, height_;
  T *in_, *out_;
  size_t in_pitch_, out_pitch_;
  cudaStream_t stream_;
};

template <class T, int RADIUS>
__global__ void apply(cudaTextureObject_t in, T* out, size_t pitch, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  T sum = 0;
#pragma unroll
  for (int d = -RADIUS; d <= RADIUS; ++d) {
    sum += weights[d < 0 ? -d : d] * tex2D<T>(in, x + d + 0.5f, y + 0.5f);
    if (d) sum += weights[d < 0 ? -d : d] * tex2D<T>(in, x + 0.5f, y + d + 0.5f);
  }
  reinterpret_cast<T*>(reinterpret_cast<char*>(out) + y * pitch)[x] = sum;
}

template <class T, int RADIUS>
std::vector<T> Stencil<T, RADIUS>::run(const std::vector<T>& values) {
  CUDA(cudaMemcpy2DAsync(in_, in_pitch_, values.data(), width_ * sizeof(T), width_ * sizeof(T), height_,
                         cudaMemcpyHostToDevice, stream_));
  cudaResourceDesc what{};
  what.resType = cudaResourceTypePitch2D;
  what.res.pitch2D = {in_, cudaCreateChannelDesc<T>(), size_t(width_), size_t(height_), in_pitch_};
  cudaTextureDesc how{};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeBorder;
  how.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  CUDA(cudaCreateTextureObject(&texture, &what, &how, nullptr));
  const dim3 block(32, 4), grid((width_ + 31) / 32, (height_ + 3) / 4);
  apply<T, RADIUS><<<grid, block, 0, stream_>>>(texture, out_, out_pitch_, width_, height_);
  CUDA(cudaGetLastError());
  std::vector<T> result(values.size());
  CUDA(cudaMemcpy2DAsync(result.data(), width_ * sizeof(T), out_, out_pitch_, width_ * sizeof(T), height_,
                         cudaMemcpyDeviceToHost, stream_));
  CUDA(cudaStreamSynchronize(stream_));
  CUDA(cudaDestroyTextureObject(texture));
  return result;
}

void volumes() {
  const cudaExtent extent = make_cudaExtent(20 * sizeof(int), 7, 5),
                   part = make_cudaExtent(8 * sizeof(int), 3, 2);
  std::vector<int> host(20 * 7 * 5), back(8 * 3 * 2);
  for (size_t i = 0; i < host.size(); ++i) host[i] = int(i);
  cudaPitchedPtr volume;
  CUDA(cudaMalloc3D(&volume, extent));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(host.data(), 20 * sizeof(int), 20, 7);
  copy.dstPtr = volume;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&copy));
  copy = {};
  copy.srcPtr = volume;
  copy.srcPos = make_cudaPos(4 * sizeof(int), 2, 1);
  copy.dstPtr = make_cudaPitchedPtr(back.data(), 8 * sizeof(int), 8, 3);
  copy.extent = part;
  copy.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&copy));
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 8; ++x) CHECK(back[(z * 3 + y) * 8 + x] == ((z + 1) * 7 + y + 2) * 20 + x + 4);
  CUDA(cudaFree(volume.ptr));
}

int main() {
  const int width = 75, height = 30;
  const float host_weights[] = {0.5f, 0.25f, 0.125f};
  CUDA(cudaMemcpyToSymbol(weights, host_weights, sizeof weights));
  std::vector<float> values(width * height);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i % 17);
  Stencil<float, 2> one(width, height), two(width, height);
  const std::vector<float> first = one.run(values), second = two.run(first);
  const auto expected = [&](const std::vector<float>& v) {
    std::vector<float> r(v.size());
    const auto at = [&](int x, int y) {
      return x < 0 || y < 0 || x >= width || y >= height ? 0 : v[y * width + x];
    };
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        float sum = 0;
        for (int d = -2; d <= 2; ++d) {
          sum += host_weights[std::abs(d)] * at(x + d, y);
          if (d) sum += host_weights[std::abs(d)] * at(x, y + d);
        }
        r[y * width + x] = sum;
      }
    return r;
  };
  const auto e1 = expected(values), e2 = expected(first);
  for (size_t i = 0; i < e1.size(); ++i) CHECK(std::fabs(first[i] - e1[i]) < 1e-4f * (1 + e1[i]));
  for (size_t i = 0; i < e2.size(); ++i) CHECK(std::fabs(second[i] - e2[i]) < 1e-4f * (1 + e2[i]));
  volumes();
  std::puts("ok");
}
