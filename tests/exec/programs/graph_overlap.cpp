#include "driver.hpp"

// Simulated time of graphs: independent nodes overlap, dependent ones do not.

namespace {

/// Milliseconds of a graph of `count` kernels, one after the other or side by side.
float time_of(const Gpu& gpu, CUstream stream, bool chain, unsigned count) {
  CUgraph graph;
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode last = nullptr;
  for (unsigned k = 0; k < count; ++k) {
    CUdeviceptr p = allocate(1);
    unsigned steps = 2000;
    void* pointers[] = {&p, &steps};
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = gpu.count;
    node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = pointers;
    OK(cuGraphAddKernelNode(&last, graph, &last, chain && k > 0 ? 1 : 0, &node));
  }
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  CUevent start, end;
  OK(cuEventCreate(&start, 0));
  OK(cuEventCreate(&end, 0));
  OK(cuEventRecord(start, stream));
  OK(cuGraphLaunch(exec, stream));
  OK(cuEventRecord(end, stream));
  OK(cuEventSynchronize(end));
  float milliseconds = 0;
  OK(cuEventElapsedTime(&milliseconds, start, end));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  return milliseconds;
}

}  // namespace

int main() {
  const Gpu gpu;
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const float one = time_of(gpu, stream, true, 1);
  const float chain = time_of(gpu, stream, true, 4);
  const float beside = time_of(gpu, stream, false, 4);
  std::printf("%g %g %g\n", one, chain, beside);
}
