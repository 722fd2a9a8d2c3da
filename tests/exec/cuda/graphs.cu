// A graph captured from streams, launched many times, and updated; and one that is built by hand.
#include "check.h"

__global__ void add(int* x, int n, int what) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += what;
}

int main() {
  const int n = 1000;
  int *x, *y;
  CUDA(cudaMalloc(&x, n * sizeof(int)));
  CUDA(cudaMalloc(&y, n * sizeof(int)));
  CUDA(cudaMemset(x, 0, n * sizeof(int)));
  CUDA(cudaMemset(y, 0, n * sizeof(int)));
  cudaStream_t s, t;
  CUDA(cudaStreamCreate(&s));
  CUDA(cudaStreamCreate(&t));
  cudaEvent_t fork, join;
  CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  cudaGraph_t graph;
  CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  CUDA(cudaEventRecord(fork, s));
  CUDA(cudaStreamWaitEvent(t, fork, 0));
  add<<<8, 128, 0, s>>>(x, n, 1);
  add<<<8, 128, 0, t>>>(y, n, 2);
  CUDA(cudaEventRecord(join, t));
  CUDA(cudaStreamWaitEvent(s, join, 0));
  CUDA(cudaMemcpyAsync(y, x, sizeof(int), cudaMemcpyDeviceToDevice, s));
  CUDA(cudaStreamEndCapture(s, &graph));
  size_t nodes = 0;
  CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 3);
  cudaGraphExec_t exec;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int k = 0; k < 10; ++k) CUDA(cudaGraphLaunch(exec, s));
  CUDA(cudaStreamSynchronize(s));
  int hx[2], hy[2];
  CUDA(cudaMemcpy(hx, x, sizeof hx, cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(hy, y, sizeof hy, cudaMemcpyDeviceToHost));
  CHECK(hx[0] == 10 && hx[1] == 10 && hy[0] == 10 && hy[1] == 20);

  cudaGraph_t by_hand;
  CUDA(cudaGraphCreate(&by_hand, 0));
  int what = 5, count = n;
  void* arguments[] = {&x, &count, &what};
  cudaKernelNodeParams node{};
  node.func = reinterpret_cast<void*>(add);
  node.gridDim = dim3(8);
  node.blockDim = dim3(128);
  node.kernelParams = arguments;
  cudaGraphNode_t first, second;
  CUDA(cudaGraphAddKernelNode(&first, by_hand, nullptr, 0, &node));
  what = 7;
  CUDA(cudaGraphAddKernelNode(&second, by_hand, &first, 1, &node));
  cudaGraphExec_t other;
  CUDA(cudaGraphInstantiate(&other, by_hand, 0));
  CUDA(cudaGraphLaunch(other, s));
  what = 100;
  CUDA(cudaGraphExecKernelNodeSetParams(other, second, &node));
  CUDA(cudaGraphLaunch(other, s));
  CUDA(cudaStreamSynchronize(s));
  CUDA(cudaMemcpy(hx, x, sizeof hx, cudaMemcpyDeviceToHost));
  CHECK(hx[0] == 10 + 12 + 105);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphExecDestroy(other));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaGraphDestroy(by_hand));
  std::puts("ok");
}
