#pragma once
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

// What the programs of this folder have in common.

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (0)

/// `call` returns `expected`.
#define RETURNS(call, expected)                                         \
  do {                                                                  \
    const CUresult result_ = (call);                                    \
    if (result_ != (expected)) {                                        \
      const char* name_ = "?";                                          \
      cuGetErrorName(result_, &name_);                                  \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, name_); \
      std::exit(1);                                                     \
    }                                                                   \
  } while (0)
#define OK(call) RETURNS(call, CUDA_SUCCESS)

inline CUdevice start() {
  CUdevice device;
  CUcontext context;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  return device;
}

inline CUmodule load(const char* ptx) {
  CUmodule module;
  OK(cuModuleLoadData(&module, ptx));
  return module;
}

inline CUfunction function(CUmodule module, const char* name) {
  CUfunction found;
  OK(cuModuleGetFunction(&found, module, name));
  return found;
}

/// Launches one CTA of `threads`.
template <class... Arguments>
void launch(CUfunction kernel, unsigned threads, Arguments... arguments) {
  void* parameters[] = {&arguments..., nullptr};
  OK(cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr));
}

template <class T>
CUdeviceptr upload(const std::vector<T>& values) {
  CUdeviceptr address;
  OK(cuMemAlloc(&address, values.size() * sizeof(T)));
  OK(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(T)));
  return address;
}

template <class T>
std::vector<T> download(CUdeviceptr address, size_t count) {
  std::vector<T> values(count);
  OK(cuMemcpyDtoH(values.data(), address, count * sizeof(T)));
  return values;
}
