// Molecular dynamics: a cell list built with atomics, forces from neighbours, steps in a captured graph.
#include <cassert>
#include <cmath>
#include <vector>

#include "check.h"

struct Box {
  float side;
  int cells, room;
};
__constant__ Box box;
__device__ unsigned overflow;

template <class T>
struct Buffer {
  explicit Buffer(size_t n) : size(n * sizeof(T)) { CUDA(cudaMallocAsync(&data, size, nullptr)); }
  ~Buffer() { cudaFreeAsync(data, nullptr); }
  T* data;
  size_t size;
};

__global__ void sort_into_cells(const float4* at, int* counts, int* members, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int cell = int(at[i].y / box.side * box.cells) * box.cells + int(at[i].x / box.side * box.cells);
  const int place = atomicAdd(&counts[cell], 1);
  assert(cell >= 0 && cell < box.cells * box.cells);
  if (place < box.room)
    members[cell * box.room + place] = i;
  else
    atomicInc(&overflow, ~0u);
}

__global__ void __launch_bounds__(64)
    forces(const float4* at, const int* counts, const int* members, float2* force) {
  const int cx = blockIdx.x, cy = blockIdx.y, cell = cy * box.cells + cx;
  extern __shared__ float4 near[];
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  for (int d = 0; d < 9; ++d) {
    const int x = cx + d % 3 - 1, y = cy + d / 3 - 1;
    if (x < 0 || y < 0 || x >= box.cells || y >= box.cells) continue;
    for (int k = threadIdx.x; k < counts[y * box.cells + x]; k += blockDim.x)
      near[atomicAdd(&found, 1)] = at[members[(y * box.cells + x) * box.room + k]];
  }
  __syncthreads();
  for (int k = threadIdx.x; k < counts[cell]; k += blockDim.x) {
    const int i = members[cell * box.room + k];
    float2 sum = make_float2(0, 0);
    for (int j = 0; j < found; ++j) {
      const float dx = at[i].x - near[j].x, dy = at[i].y - near[j].y, r2 = dx * dx + dy * dy;
      if (r2 == 0 || r2 > 1) continue;
      const float push = (1 - sqrtf(r2)) * rsqrtf(r2);
      sum.x += push * dx, sum.y += push * dy;
    }
    force[i] = sum;
  }
}

__global__ void moved(float4* at, const float2* force, float step, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 p = at[i];
  p.z += step * force[i].x, p.w += step * force[i].y;
  p.x = fminf(fmaxf(p.x + step * p.z, 0.f), box.side * 0.999f);
  p.y = fminf(fmaxf(p.y + step * p.w, 0.f), box.side * 0.999f);
  at[i] = p;
}

int main() {
  const int n = 300, cells = 8, room = 32, steps = 3;
  const Box b{8.f, cells, room};
  CUDA(cudaMemcpyToSymbolAsync(box, &b, sizeof b, 0, cudaMemcpyHostToDevice));
  std::vector<float4> host(n), got(n);
  unsigned state = 7;
  const auto number = [&] { return float((state = state * 1664525 + 1013904223) >> 8) / (1 << 24); };
  for (float4& p : host) p.x = 8 * number(), p.y = 8 * number(), p.z = p.w = 0;
  {
    Buffer<float4> at(n);
    Buffer<float2> force(n);
    Buffer<int> counts(cells * cells), members(cells * cells * room);
    CUDA(cudaMemcpy(at.data, host.data(), at.size, cudaMemcpyHostToDevice));
    CUDA(
        cudaFuncSetAttribute(forces, cudaFuncAttributeMaxDynamicSharedMemorySize, 9 * room * sizeof(float4)));
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaMemsetAsync(counts.data, 0, counts.size, stream));
    sort_into_cells<<<(n + 63) / 64, 64, 0, stream>>>(at.data, counts.data, members.data, n);
    forces<<<dim3(cells, cells), 64, 9 * room * sizeof(float4), stream>>>(at.data, counts.data, members.data,
                                                                          force.data);
    moved<<<(n + 63) / 64, 64, 0, stream>>>(at.data, force.data, 0.05f, n);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int s = 0; s < steps; ++s) CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaMemcpyAsync(got.data(), at.data, at.size, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
  }
  unsigned lost;
  CUDA(cudaMemcpyFromSymbol(&lost, overflow, sizeof lost));
  CHECK(lost == 0);
  for (int s = 0; s < steps; ++s) {
    std::vector<float4> next = host;
    for (int i = 0; i < n; ++i) {
      float fx = 0, fy = 0;
      for (int j = 0; j < n; ++j) {
        const float dx = host[i].x - host[j].x, dy = host[i].y - host[j].y, r2 = dx * dx + dy * dy;
        if (r2 == 0 || r2 > 1) continue;
        const float push = (1 - std::sqrt(r2)) / std::sqrt(r2);
        fx += push * dx, fy += push * dy;
      }
      float4& p = next[i];
      p.z += 0.05f * fx, p.w += 0.05f * fy;
      p.x = std::fmin(std::fmax(p.x + 0.05f * p.z, 0.f), 7.992f);
      p.y = std::fmin(std::fmax(p.y + 0.05f * p.w, 0.f), 7.992f);
    }
    host = next;
  }
  for (int i = 0; i < n; ++i)
    CHECK(std::fabs(got[i].x - host[i].x) < 1e-3f && std::fabs(got[i].w - host[i].w) < 1e-3f);
  std::puts("ok");
}
