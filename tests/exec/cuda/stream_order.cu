// Work in several streams, and what orders it; the argument names what is left out.
#include <cstring>

#include "check.h"

__global__ void fill(int* x, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value;
}

__global__ void add(const int* x, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}

int main(int count, char** arguments) {
  const auto without = [&](const char* what) { return count > 1 && std::strcmp(arguments[1], what) == 0; };
  const int n = 1 << 10;
  const size_t bytes = n * sizeof(int);
  int *host, *x, *y;
  CUDA(cudaMallocHost(&host, bytes));
  CUDA(cudaMalloc(&x, bytes));
  CUDA(cudaMalloc(&y, bytes));
  cudaStream_t a, b, blocking;
  CUDA(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CUDA(cudaStreamCreate(&blocking));
  cudaEvent_t event, fork, join;
  for (cudaEvent_t* each : {&event, &fork, &join})
    CUDA(cudaEventCreateWithFlags(each, cudaEventDisableTiming));

  // An event between two streams.
  CUDA(cudaMemsetAsync(y, 0, bytes, b));
  fill<<<n / 128, 128, 0, a>>>(x, n, 1);
  CUDA(cudaEventRecord(event, a));
  if (!without("event")) CUDA(cudaStreamWaitEvent(b, event, 0));
  add<<<n / 128, 128, 0, b>>>(x, y, n);
  CUDA(cudaDeviceSynchronize());

  // A copy, and a kernel that needs it.
  for (int i = 0; i < n; ++i) host[i] = 2;
  CUDA(cudaMemcpyAsync(x, host, bytes, cudaMemcpyHostToDevice, a));
  if (!without("wait for a copy")) CUDA(cudaStreamSynchronize(a));
  add<<<n / 128, 128, 0, b>>>(x, y, n);
  CUDA(cudaDeviceSynchronize());

  // The legacy default stream waits for blocking streams, not for others.
  fill<<<n / 128, 128, 0, without("blocking stream") ? a : blocking>>>(x, n, 3);
  add<<<n / 128, 128>>>(x, y, n);
  CUDA(cudaMemcpy(host, y, bytes, cudaMemcpyDeviceToHost));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i) CHECK(host[i] == 6);

  // Branches of a graph.
  CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CUDA(cudaEventRecord(fork, a));
  CUDA(cudaStreamWaitEvent(b, fork, 0));
  fill<<<n / 128, 128, 0, a>>>(x, n, 4);
  fill<<<n / 128, 128, 0, b>>>(y, n, 5);
  if (without("edge of a graph")) add<<<n / 128, 128, 0, b>>>(x, y, n);
  CUDA(cudaEventRecord(join, b));
  CUDA(cudaStreamWaitEvent(a, join, 0));
  if (!without("edge of a graph")) add<<<n / 128, 128, 0, a>>>(x, y, n);
  cudaGraph_t graph;
  CUDA(cudaStreamEndCapture(a, &graph));
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int k = 0; k < 2; ++k) CUDA(cudaGraphLaunch(exec, a));
  CUDA(cudaMemcpyAsync(host, y, bytes, cudaMemcpyDeviceToHost, a));
  CUDA(cudaStreamSynchronize(a));
  for (int i = 0; i < n; ++i) CHECK(host[i] == 9);

  // Memory that is freed and allocated anew is not the same.
  int* z;
  CUDA(cudaMallocAsync(&z, bytes, a));
  fill<<<n / 128, 128, 0, a>>>(z, n, 1);
  CUDA(cudaFreeAsync(z, a));
  CUDA(cudaMallocAsync(&z, bytes, b));
  fill<<<n / 128, 128, 0, b>>>(z, n, 2);
  CUDA(cudaFreeAsync(z, b));
  CUDA(cudaDeviceSynchronize());

  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  for (cudaStream_t each : {a, b, blocking}) CUDA(cudaStreamDestroy(each));
  for (cudaEvent_t each : {event, fork, join}) CUDA(cudaEventDestroy(each));
  CUDA(cudaFreeHost(host));
  CUDA(cudaFree(x));
  CUDA(cudaFree(y));
  std::puts("ok");
}
