// What benchmarks/exec.py measures, over the driver API: seconds a call, one line each. An argument N makes each
// call an Nth as often, and copies an Nth as large.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void ok(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::printf("%s\n", name);
  std::exit(1);
}

int share = 1;

template <class Body>
void measure(const char* name, int times, const Body& body) {
  times = std::max(1, times / share);
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < times; ++k) body();
  ok(cuCtxSynchronize());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%s %.9f\n", name, seconds.count() / times);
}

const char* const ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry empty() { ret; }
)";

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) share = std::atoi(arguments[1]);
  ok(cuInit(0));
  CUcontext context;
  ok(cuDevicePrimaryCtxRetain(&context, 0));
  ok(cuCtxSetCurrent(context));
  CUmodule module;
  ok(cuModuleLoadData(&module, ptx));
  CUfunction empty;
  ok(cuModuleGetFunction(&empty, module, "empty"));
  int value;
  CUdevice device;
  CUdeviceptr memory;
  const auto launch = [&] { ok(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr)); };
  launch();
  measure("cuCtxGetDevice", 1'000'000, [&] { ok(cuCtxGetDevice(&device)); });
  measure("cuDeviceGetAttribute", 1'000'000,
          [&] { ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)); });
  measure("cuStreamQuery", 1'000'000, [&] { ok(cuStreamQuery(nullptr)); });
  measure("launch", 10'000, launch);
  measure("launch_and_wait", 2'000, [&] {
    launch();
    ok(cuCtxSynchronize());
  });
  measure("allocate_and_free", 2'000, [&] {
    ok(cuMemAlloc(&memory, 4096));
    ok(cuMemFree(memory));
  });
  const size_t bytes = (size_t{256} << 20) / share;
  std::vector<char> host(bytes, 1), other(bytes, 2);
  ok(cuMemAlloc(&memory, bytes));
  ok(cuMemcpyHtoD(memory, host.data(), bytes));
  measure("memcpy_of_the_host", 3, [&] { std::copy(host.begin(), host.end(), other.begin()); });
  measure("cuMemcpyHtoD", 3, [&] { ok(cuMemcpyHtoD(memory, host.data(), bytes)); });
  measure("cuMemcpyDtoH", 3, [&] { ok(cuMemcpyDtoH(other.data(), memory, bytes)); });
}
