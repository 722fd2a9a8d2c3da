// Device properties, in the structures of CUDA 11, 12 and 13.
#include <cstddef>
#include <cstring>

#include "properties_v13.hpp"
#include "runtime.hpp"

namespace runtime {
namespace {

struct Attributes {
  CUdevice device;
  int operator[](CUdevice_attribute attribute) const {
    int value = 0;
    return cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
  }
};

// Skips a field that a version of the structure lacks.
#define FIELD(field, attribute) \
  if constexpr (requires { result.field; }) result.field = attributes[CU_DEVICE_ATTRIBUTE_##attribute]

template <class Properties>
void fill_limits(Properties& result, const Attributes& attributes) {
  FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK);
  FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK);
  FIELD(warpSize, WARP_SIZE);
  FIELD(memPitch, MAX_PITCH);
  FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
  FIELD(maxThreadsDim[0], MAX_BLOCK_DIM_X);
  FIELD(maxThreadsDim[1], MAX_BLOCK_DIM_Y);
  FIELD(maxThreadsDim[2], MAX_BLOCK_DIM_Z);
  FIELD(maxGridSize[0], MAX_GRID_DIM_X);
  FIELD(maxGridSize[1], MAX_GRID_DIM_Y);
  FIELD(maxGridSize[2], MAX_GRID_DIM_Z);
  FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY);
  FIELD(major, COMPUTE_CAPABILITY_MAJOR);
  FIELD(minor, COMPUTE_CAPABILITY_MINOR);
  FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT);
  FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR);
  FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR);
  FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK);
  FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
  FIELD(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE);
}

template <class Properties>
void fill_features(Properties& result, const Attributes& attributes) {
  FIELD(clockRate, CLOCK_RATE);
  FIELD(deviceOverlap, GPU_OVERLAP);
  FIELD(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT);
  FIELD(integrated, INTEGRATED);
  FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY);
  FIELD(computeMode, COMPUTE_MODE);
  FIELD(concurrentKernels, CONCURRENT_KERNELS);
  FIELD(ECCEnabled, ECC_ENABLED);
  FIELD(pciBusID, PCI_BUS_ID);
  FIELD(pciDeviceID, PCI_DEVICE_ID);
  FIELD(pciDomainID, PCI_DOMAIN_ID);
  FIELD(tccDriver, TCC_DRIVER);
  FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT);
  FIELD(unifiedAddressing, UNIFIED_ADDRESSING);
  FIELD(memoryClockRate, MEMORY_CLOCK_RATE);
  FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH);
  FIELD(l2CacheSize, L2_CACHE_SIZE);
  FIELD(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE);
  FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED);
  FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED);
  FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED);
  FIELD(managedMemory, MANAGED_MEMORY);
  FIELD(isMultiGpuBoard, MULTI_GPU_BOARD);
  FIELD(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID);
  FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED);
  FIELD(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
  FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS);
  FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS);
  FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED);
  FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
  FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH);
  FIELD(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH);
  FIELD(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
  FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
  FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED);
  FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED);
  FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED);
  FIELD(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED);
  FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED);
  FIELD(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED);
  FIELD(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
  FIELD(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING);
  FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES);
  FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
  FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED);
  FIELD(clusterLaunch, CLUSTER_LAUNCH);
  FIELD(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS);
  FIELD(deviceNumaConfig, NUMA_CONFIG);
  FIELD(deviceNumaId, NUMA_ID);
  FIELD(mpsEnabled, MPS_ENABLED);
  FIELD(hostNumaId, HOST_NUMA_ID);
  FIELD(gpuPciDeviceID, GPU_PCI_DEVICE_ID);
  FIELD(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID);
  FIELD(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED);
}

template <class Properties>
void fill_textures(Properties& result, const Attributes& attributes) {
  FIELD(textureAlignment, TEXTURE_ALIGNMENT);
  FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT);
  FIELD(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH);
  FIELD(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH);
  FIELD(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
  FIELD(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH);
  FIELD(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT);
  FIELD(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH);
  FIELD(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT);
  FIELD(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
  FIELD(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
  FIELD(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH);
  FIELD(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH);
  FIELD(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT);
  FIELD(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH);
  FIELD(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT);
  FIELD(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH);
  FIELD(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE);
  FIELD(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE);
  FIELD(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE);
  FIELD(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH);
  FIELD(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH);
  FIELD(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS);
  FIELD(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH);
  FIELD(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT);
  FIELD(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
  FIELD(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH);
  FIELD(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS);
}

template <class Properties>
void fill_surfaces(Properties& result, const Attributes& attributes) {
  FIELD(surfaceAlignment, SURFACE_ALIGNMENT);
  FIELD(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH);
  FIELD(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH);
  FIELD(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT);
  FIELD(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH);
  FIELD(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT);
  FIELD(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH);
  FIELD(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH);
  FIELD(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS);
  FIELD(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH);
  FIELD(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT);
  FIELD(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS);
  FIELD(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH);
  FIELD(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH);
  FIELD(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS);
}

template <class Properties>
cudaError_t properties(Properties* result, int device) {
  if (!result) return cudaErrorInvalidValue;
  int count = 0;
  RUNTIME_TRY(cuDeviceGetCount(&count));
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  *result = {};
  RUNTIME_TRY(cuDeviceGetName(result->name, sizeof result->name, device));
  RUNTIME_TRY(cuDeviceGetUuid_v2(&result->uuid, device));
  RUNTIME_TRY(cuDeviceTotalMem(&result->totalGlobalMem, device));
  const Attributes attributes{device};
  fill_limits(*result, attributes);
  fill_features(*result, attributes);
  fill_textures(*result, attributes);
  fill_surfaces(*result, attributes);
  return cudaSuccess;
}

// CUDA 11's structure is a prefix of CUDA 12's.
constexpr size_t size_v11 = offsetof(cudaDeviceProp, hostRegisterSupported);
static_assert(size_v11 == 728);

cudaError_t properties_v11(void* result, int device) {
  if (!result) return cudaErrorInvalidValue;
  cudaDeviceProp all;
  RUNTIME_TRY(properties(&all, device));
  std::memcpy(result, &all, size_v11);
  return cudaSuccess;
}

// The device that matches or exceeds `wanted` in the most respects; the first of several.
cudaError_t choose(int* device, const cudaDeviceProp* wanted) {
  if (!device || !wanted) return cudaErrorInvalidValue;
  int count = 0;
  RUNTIME_TRY(cuDeviceGetCount(&count));
  if (!count) return cudaErrorNoDevice;
  int best = -1;
  for (int candidate = 0; candidate < count; ++candidate) {
    cudaDeviceProp offered;
    RUNTIME_TRY(properties(&offered, candidate));
    const bool newer = offered.major * 10 + offered.minor >= wanted->major * 10 + wanted->minor;
    const int score = newer + (offered.totalGlobalMem >= wanted->totalGlobalMem) +
                      (offered.multiProcessorCount >= wanted->multiProcessorCount) +
                      (offered.sharedMemPerBlock >= wanted->sharedMemPerBlock) +
                      (offered.regsPerBlock >= wanted->regsPerBlock) +
                      (offered.clockRate >= wanted->clockRate);
    if (score <= best) continue;
    best = score;
    *device = candidate;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using runtime::query;

extern "C" {

cudaError_t v11_cudaGetDeviceProperties(void* result, int device) {
  return query(runtime::properties_v11, result, device);
}
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* result, int device) {
  return query(runtime::properties<cudaDeviceProp>, result, device);
}
cudaError_t v13_cudaGetDeviceProperties(runtime::DevicePropertiesV13* result, int device) {
  return query(runtime::properties<runtime::DevicePropertiesV13>, result, device);
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return query(runtime::choose, device, wanted);
}

}  // extern "C"
