// What the L2 holds: after memsets and copies, with access policy windows, in streams, launches and graphs.
#include <cstring>

#include "check.h"

constexpr int hot_floats = 1 << 15, cold_floats = 1 << 20;

__global__ void sum_up(const float* x, float* sink, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  if (sum == 1e30f) *sink = sum;
}

struct Timer {
  cudaEvent_t begin, end;
  Timer() {
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
  }
  template <class Work>
  float operator()(cudaStream_t stream, Work work) {
    CUDA(cudaEventRecord(begin, stream));
    work();
    CUDA(cudaEventRecord(end, stream));
    CUDA(cudaEventSynchronize(end));
    float time = 0;
    CUDA(cudaEventElapsedTime(&time, begin, end));
    return time;
  }
};

int main(int count, char** arguments) {
  const bool timed = count > 1 && !std::strcmp(arguments[1], "timed");
  float *hot, *other, *cold, *sink;
  CUDA(cudaMalloc(&hot, hot_floats * 4));
  CUDA(cudaMalloc(&other, hot_floats * 4));
  CUDA(cudaMalloc(&cold, cold_floats * 4));
  CUDA(cudaMalloc(&sink, 4));
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  Timer time;
  const auto run = [&](const float* x, int n) {
    return time(stream, [&] { sum_up<<<16, 256, 0, stream>>>(x, sink, n); });
  };

  // Memsets and copies within the device.
  const float first = run(hot, hot_floats), warm = run(hot, hot_floats);
  CUDA(cudaMemsetAsync(cold, 0, cold_floats * 4, stream));
  const float flushed = run(hot, hot_floats);
  CUDA(cudaMemsetAsync(cold, 0, cold_floats * 4, stream));
  CUDA(cudaMemsetAsync(hot, 0, hot_floats * 4, stream));
  const float set = run(hot, hot_floats);
  CUDA(cudaMemcpyAsync(other, hot, hot_floats * 4, cudaMemcpyDeviceToDevice, stream));
  const float copied = run(other, hot_floats);
  // What was set or copied is in the slices that own it, not in those that are near its readers.
  if (timed) CHECK(warm < 0.6f * first && flushed > 0.9f * first && set < 0.7f * first && copied < 0.7f * first);

  // Device attributes and limits.
  cudaDeviceProp properties;
  CUDA(cudaGetDeviceProperties(&properties, 0));
  CHECK(properties.persistingL2CacheMaxSize > 0 && properties.accessPolicyMaxWindowSize == 128 << 20);
  size_t limit = 1;
  CUDA(cudaDeviceGetLimit(&limit, cudaLimitPersistingL2CacheSize));
  CHECK(limit == 0);
  CUDA(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, size_t{1} << 40));
  CUDA(cudaDeviceGetLimit(&limit, cudaLimitPersistingL2CacheSize));
  CHECK(limit == static_cast<size_t>(properties.persistingL2CacheMaxSize));
  CUDA(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 512 << 10));

  // A window of the stream.
  cudaLaunchAttributeValue window{};
  window.accessPolicyWindow = {hot, hot_floats * 4, 1, cudaAccessPropertyPersisting, cudaAccessPropertyStreaming};
  CUDA(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window));
  cudaLaunchAttributeValue got{};
  CUDA(cudaStreamGetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &got));
  CHECK(got.accessPolicyWindow.base_ptr == hot && got.accessPolicyWindow.hitRatio == 1);
  run(hot, hot_floats);
  run(cold, cold_floats);
  const float kept = run(hot, hot_floats);
  CUDA(cudaCtxResetPersistingL2Cache());
  run(cold, cold_floats);
  const float reset = run(hot, hot_floats);
  if (timed) CHECK(kept < 1.1f * warm && reset > 0.9f * first);

  // One of a launch, and none.
  cudaLaunchAttributeValue none{};
  CUDA(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &none));
  CUDA(cudaCtxResetPersistingL2Cache());
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeAccessPolicyWindow;
  attribute.val = window;
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = 16;
  configuration.blockDim = 256;
  configuration.stream = stream;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  CUDA(cudaLaunchKernelEx(&configuration, sum_up, static_cast<const float*>(hot), sink, hot_floats));
  run(cold, cold_floats);
  const float of_launch = run(hot, hot_floats);
  if (timed) CHECK(of_launch < 1.1f * warm);

  // One that a graph captures.
  CUDA(cudaCtxResetPersistingL2Cache());
  run(cold, cold_floats);
  CUDA(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window));
  cudaGraph_t graph;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  sum_up<<<16, 256, 0, stream>>>(hot, sink, hot_floats);
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &none));
  cudaGraphExec_t executable;
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, stream));
  run(cold, cold_floats);
  const float of_graph = run(hot, hot_floats);
  if (timed) CHECK(of_graph < 1.1f * warm);

  // Accepted without effect: the test asks the Result for its words.
  CUDA(cudaFuncSetAttribute(sum_up, cudaFuncAttributePreferredSharedMemoryCarveout, 50));

  // What a window cannot be.
  window.accessPolicyWindow.hitRatio = 2;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window) == cudaErrorInvalidValue);
  window.accessPolicyWindow.hitRatio = 1;
  window.accessPolicyWindow.num_bytes = (128 << 20) + 1;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window) == cudaErrorInvalidValue);
  window.accessPolicyWindow.num_bytes = 4;
  window.accessPolicyWindow.missProp = cudaAccessPropertyPersisting;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window) == cudaErrorInvalidValue);
  std::puts("ok");
}
