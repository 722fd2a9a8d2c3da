// Kernel attributes and occupancy.
#include <cstddef>
#include <cstring>

#include "registration.hpp"

namespace runtime {
namespace {

cudaError_t attributes(cudaFuncAttributes* result, const void* host) {
  if (!result) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  RUNTIME_TRY(function_of(host, &function));
  *result = {};
  const auto get = [function](auto& field, CUfunction_attribute attribute) {
    int value = 0;
    const CUresult status = cuFuncGetAttribute(&value, attribute, function);
    field = value;
    return status;
  };
  RUNTIME_TRY(get(result->sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  RUNTIME_TRY(get(result->constSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  RUNTIME_TRY(get(result->localSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  RUNTIME_TRY(get(result->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  RUNTIME_TRY(get(result->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS));
  RUNTIME_TRY(get(result->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION));
  RUNTIME_TRY(get(result->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION));
  RUNTIME_TRY(get(result->cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA));
  RUNTIME_TRY(get(result->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  RUNTIME_TRY(get(result->preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
  RUNTIME_TRY(get(result->clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET));
  RUNTIME_TRY(get(result->requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH));
  RUNTIME_TRY(get(result->requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT));
  RUNTIME_TRY(get(result->requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH));
  RUNTIME_TRY(
      get(result->clusterSchedulingPolicyPreference, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE));
  return to_error(
      get(result->nonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
}

// CUDA 11's structure ends before the fields for clusters.
cudaError_t attributes_v11(void* result, const void* host) {
  if (!result) return cudaErrorInvalidValue;
  cudaFuncAttributes all;
  RUNTIME_TRY(attributes(&all, host));
  std::memcpy(result, &all, offsetof(cudaFuncAttributes, clusterDimMustBeSet));
  return cudaSuccess;
}

cudaError_t set_attribute(const void* host, cudaFuncAttribute attribute, int value) {
  CUfunction function = nullptr;
  RUNTIME_TRY(function_of(host, &function));
  return forward(cuFuncSetAttribute, function, attribute, value);
}

cudaError_t set_cache_config(const void* host, cudaFuncCache config) {
  CUfunction function = nullptr;
  RUNTIME_TRY(function_of(host, &function));
  return forward(cuFuncSetCacheConfig, function, config);
}

cudaError_t set_bank_size(const void* host, cudaSharedMemConfig config) {
  CUfunction function = nullptr;
  RUNTIME_TRY(function_of(host, &function));
  return forward(cuFuncSetSharedMemConfig, function, config);
}

cudaError_t name_of(const char** name, const void* host) {
  if (!name) return cudaErrorInvalidValue;
  if (const KernelSymbol* symbol = find_kernel(host)) {
    *name = symbol->name.c_str();
    return cudaSuccess;
  }
  CUkernel kernel = nullptr;
  RUNTIME_TRY(kernel_of(host, &kernel));
  return to_error(cuKernelGetName(name, kernel));
}

cudaError_t parameter(const void* host, size_t index, size_t* offset, size_t* size) {
  CUkernel kernel = nullptr;
  RUNTIME_TRY(kernel_of(host, &kernel));
  return to_error(cuKernelGetParamInfo(kernel, index, offset, size));
}

cudaError_t parameter_count(const void* host, size_t* count) {
  if (!count) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  RUNTIME_TRY(kernel_of(host, &kernel));
  size_t offset = 0;
  size_t size = 0;
  for (*count = 0; cuKernelGetParamInfo(kernel, *count, &offset, &size) == CUDA_SUCCESS;) ++*count;
  return cudaSuccess;
}

cudaError_t active_blocks(int* blocks, const void* host, int block, size_t shared, unsigned int flags) {
  CUfunction function = nullptr;
  RUNTIME_TRY(function_of(host, &function));
  return to_error(
      cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block, shared, flags));
}

cudaError_t available_shared(size_t* size, const void* host, int blocks, int block) {
  CUfunction function = nullptr;
  RUNTIME_TRY(function_of(host, &function));
  return to_error(cuOccupancyAvailableDynamicSMemPerBlock(size, function, blocks, block));
}

template <auto Occupancy>
cudaError_t clusters(int* result, const void* host, const cudaLaunchConfig_t* config) {
  if (!config) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  RUNTIME_TRY(function_of(host, &function));
  const CUlaunchConfig driver_config = driver_launch_config(*config);
  return to_error(Occupancy(result, function, &driver_config));
}

}  // namespace
}  // namespace runtime

using namespace runtime;

extern "C" {

cudaError_t v11_cudaFuncGetAttributes(void* result, const void* host) {
  return call(attributes_v11, result, host);
}
cudaError_t v12_cudaFuncGetAttributes(cudaFuncAttributes* result, const void* host) {
  return call(attributes, result, host);
}
cudaError_t cudaFuncSetAttribute(const void* host, cudaFuncAttribute attribute, int value) {
  return call(set_attribute, host, attribute, value);
}
cudaError_t cudaFuncSetCacheConfig(const void* host, cudaFuncCache config) {
  return call(set_cache_config, host, config);
}
cudaError_t cudaFuncSetSharedMemConfig(const void* host, cudaSharedMemConfig config) {
  return call(set_bank_size, host, config);
}
cudaError_t cudaFuncGetName(const char** name, const void* host) {
  return call(name_of, name, host);
}
cudaError_t cudaFuncGetParamInfo(const void* host, size_t index, size_t* offset, size_t* size) {
  return call(parameter, host, index, offset, size);
}
cudaError_t cudaFuncGetParamCount(const void* host, size_t* count) {
  return call(parameter_count, host, count);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int block,
                                                          size_t shared) {
  return call(active_blocks, blocks, host, block, shared, 0u);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host, int block,
                                                                   size_t shared, unsigned int flags) {
  return call(active_blocks, blocks, host, block, shared, flags);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* size, const void* host, int blocks, int block) {
  return call(available_shared, size, host, blocks, block);
}
cudaError_t cudaOccupancyMaxActiveClusters(int* result, const void* host, const cudaLaunchConfig_t* config) {
  return call(clusters<cuOccupancyMaxActiveClusters>, result, host, config);
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* result, const void* host,
                                                 const cudaLaunchConfig_t* config) {
  return call(clusters<cuOccupancyMaxPotentialClusterSize>, result, host, config);
}

}  // extern "C"
