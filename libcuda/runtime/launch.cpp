// Launches.
#include <vector>

#include "registration.hpp"
#include "versions.hpp"

namespace runtime {
namespace {

// What `<<<grid, block, shared, stream>>>` passes to the kernel's host function.
struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared;
  void* stream;
};

thread_local std::vector<Configuration> configurations;

bool within(dim3 size, CUdevice device, CUdevice_attribute limit_x) {
  int limits[3] = {};
  for (int axis = 0; axis < 3; ++axis)
    cuDeviceGetAttribute(&limits[axis], static_cast<CUdevice_attribute>(limit_x + axis), device);
  const auto fits = [](unsigned int extent, int limit) {
    return extent > 0 && extent <= static_cast<unsigned int>(limit);
  };
  return fits(size.x, limits[0]) && fits(size.y, limits[1]) && fits(size.z, limits[2]);
}

bool possible(dim3 grid, dim3 block) {
  CUdevice device = 0;
  int threads = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return true;
  cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
  return within(grid, device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) &&
         within(block, device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) &&
         static_cast<size_t>(block.x) * block.y * block.z <= static_cast<size_t>(threads);
}

// The driver reports every invalid launch as an invalid value; the runtime has a separate error for grids or
// blocks that the device does not support.
cudaError_t launch_error(CUresult result, dim3 grid, dim3 block) {
  if (result == CUDA_ERROR_INVALID_VALUE && !possible(grid, block)) return cudaErrorInvalidConfiguration;
  return to_error(result);
}

// The driver's launch functions accept a kernel in place of a function.
CUfunction as_function(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                   cudaStream_t stream) {
  return launch_error(cuLaunchKernel(as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned int>(shared), stream, arguments, nullptr),
                      grid, block);
}

cudaError_t launch_symbol(KernelSymbol* symbol, dim3 grid, dim3 block, void** arguments, size_t shared,
                          cudaStream_t stream) {
  if (!symbol) return cudaErrorInvalidDeviceFunction;
  CUkernel kernel = nullptr;
  RUNTIME_TRY(kernel_of(*symbol, &kernel));
  return launch(kernel, grid, block, arguments, shared, stream);
}

cudaError_t launch_host(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                        cudaStream_t stream) {
  CUkernel kernel = nullptr;
  RUNTIME_TRY(kernel_of(host, &kernel));
  return launch(kernel, grid, block, arguments, shared, stream);
}

cudaError_t launch_cooperative(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
  CUkernel kernel = nullptr;
  RUNTIME_TRY(kernel_of(host, &kernel));
  return launch_error(
      cuLaunchCooperativeKernel(as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                static_cast<unsigned int>(shared), stream, arguments),
      grid, block);
}

cudaError_t launch_configured(const cudaLaunchConfig_t* config, const void* host, void** arguments) {
  if (!config) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  RUNTIME_TRY(kernel_of(host, &kernel));
  const CUlaunchConfig driver_config = driver_launch_config(*config);
  return launch_error(cuLaunchKernelEx(&driver_config, as_function(kernel), arguments, nullptr),
                      config->gridDim, config->blockDim);
}

cudaError_t find_function(CUfunction* function, const void* host) {
  if (!function) return cudaErrorInvalidValue;
  return function_of(host, function);
}

cudaError_t find_kernel_handle(CUkernel* kernel, const void* host) {
  if (!kernel) return cudaErrorInvalidValue;
  return kernel_of(host, kernel);
}

}  // namespace

CUlaunchConfig driver_launch_config(const cudaLaunchConfig_t& config) {
  CUlaunchConfig result{};
  result.gridDimX = config.gridDim.x;
  result.gridDimY = config.gridDim.y;
  result.gridDimZ = config.gridDim.z;
  result.blockDimX = config.blockDim.x;
  result.blockDimY = config.blockDim.y;
  result.blockDimZ = config.blockDim.z;
  result.sharedMemBytes = static_cast<unsigned int>(config.dynamicSmemBytes);
  result.hStream = config.stream;
  result.attrs = convert<CUlaunchAttribute*>(config.attrs);
  result.numAttrs = config.numAttrs;
  return result;
}

}  // namespace runtime

using namespace runtime;

extern "C" {

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations.empty()) return remember(cudaErrorMissingConfiguration);
  const Configuration& top = configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<void**>(stream) = top.stream;
  configurations.pop_back();
  return cudaSuccess;
}

// The handle is only valid for __cudaLaunchKernel. It is not yet a driver kernel: host code requests it only
// once, while errors in the module must be reported by every launch.
cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* host) {
  KernelSymbol* symbol = find_kernel(host);
  *handle = reinterpret_cast<cudaKernel_t>(symbol);
  return symbol ? cudaSuccess : remember(cudaErrorInvalidDeviceFunction);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
  return call(launch_symbol, reinterpret_cast<KernelSymbol*>(handle), grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  return call(launch_host, host, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* host, dim3 grid, dim3 block, void** arguments,
                                        size_t shared, cudaStream_t stream) {
  return call(launch_cooperative, host, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host, void** arguments) {
  return call(launch_configured, config, host, arguments);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call(cuLaunchHostFunc, stream, function, data);
}

// CUDA 13 lets the program choose whether the thread that waits for the function blocks or spins.
cudaError_t cudaLaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t function, void* data, unsigned int mode) {
  return mode > 1 ? remember(cudaErrorInvalidValue) : cudaLaunchHostFunc(stream, function, data);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* host) {
  return call(find_function, function, host);
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return call(find_kernel_handle, kernel, host);
}

}  // extern "C"
