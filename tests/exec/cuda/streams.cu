// Two streams that copy and compute at the same time, with pinned memory and events across streams.
#include "check.h"

__global__ void scale(int* x, int n, int by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}

int main() {
  const int n = 1 << 14, parts = 4, each = n / parts;
  int *host, *device;
  CUDA(cudaMallocHost(&host, n * sizeof(int)));
  CUDA(cudaMalloc(&device, n * sizeof(int)));
  for (int i = 0; i < n; ++i) host[i] = i;
  cudaStream_t streams[2];
  int least, greatest;
  CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(greatest <= least);
  CUDA(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithPriority(&streams[1], cudaStreamNonBlocking, greatest));
  for (int p = 0; p < parts; ++p) {
    cudaStream_t s = streams[p % 2];
    CUDA(cudaMemcpyAsync(device + p * each, host + p * each, each * sizeof(int), cudaMemcpyHostToDevice, s));
    scale<<<each / 128, 128, 0, s>>>(device + p * each, each, 3);
    CUDA(cudaMemcpyAsync(host + p * each, device + p * each, each * sizeof(int), cudaMemcpyDeviceToHost, s));
  }
  cudaEvent_t done;
  CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  CUDA(cudaEventRecord(done, streams[1]));
  CUDA(cudaStreamWaitEvent(streams[0], done, 0));
  scale<<<n / 128, 128, 0, streams[0]>>>(device, n, 2);
  CUDA(cudaStreamSynchronize(streams[0]));
  for (int i = 0; i < n; ++i) CHECK(host[i] == 3 * i);
  CUDA(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) CHECK(host[i] == 6 * i);
  // A copy in the legacy default stream, for which the program waits, follows what is in blocking streams.
  cudaStream_t blocking;
  CUDA(cudaStreamCreate(&blocking));
  scale<<<n / 128, 128, 0, blocking>>>(device, n, 2);
  CUDA(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) CHECK(host[i] == 12 * i);
  CUDA(cudaStreamDestroy(blocking));
  CUDA(cudaStreamQuery(streams[0]));
  for (cudaStream_t s : streams) CUDA(cudaStreamDestroy(s));
  CUDA(cudaFreeHost(host));
  std::puts("ok");
}
