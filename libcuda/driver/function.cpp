#include "modules.hpp"

// Attributes of kernels, and how many of their CTAs fit on an SM.

using namespace simt::driver;

namespace {

constexpr int first_settable = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;

/// Registers per thread. Queried only once, because ptxas may have to run.
uint32_t registers_of(Function& f) {
  if (f.registers == 0)
    f.registers = static_cast<uint32_t>(
        f.module.context.device.connection.call(RegistersRequest{.module = f.module.id, .kernel = f.name}));
  return f.registers;
}

int attribute_of(Function& f, CUfunction_attribute which) {
  const Device& device = f.module.context.device;
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return f.facts.max_threads ? static_cast<int>(f.facts.max_threads)
                                 : device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(f.facts.shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(f.facts.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(registers_of(f));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      return f.module.ptx_version;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 10 * device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
             device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return f.dynamic_shared_limit ? static_cast<int>(f.dynamic_shared_limit)
                                    : device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) -
                                          static_cast<int>(f.facts.shared_bytes);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: {
      if (const auto set = f.attributes.find(which); set != f.attributes.end()) return set->second;
      const int axis = which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
      if (axis >= 0 && axis < 3) return static_cast<int>(f.facts.cluster[static_cast<size_t>(axis)]);
      return which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ? -1 : 0;
    }
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void set_attribute(Function& f, CUfunction_attribute which, int value) {
  require(which >= first_settable && which < CU_FUNC_ATTRIBUTE_MAX);
  if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
    note_without_effect(f.module.context.device,
                        "the preferred carve-out of shared memory (cudaFuncSetAttribute)");
  if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    f.attributes[which] = value;
    return;
  }
  const int most = f.module.context.device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  require(value >= 0 && value + static_cast<int>(f.facts.shared_bytes) <= most);
  f.dynamic_shared_limit = static_cast<uint32_t>(value);
}

/// CTAs per SM; 0 if not even one fits.
int active_ctas(Function& f, int threads, size_t shared) {
  require(threads > 0);
  return static_cast<int>(
      f.module.context.device.connection.call(OccupancyRequest{.module = f.module.id,
                                                               .kernel = f.name,
                                                               .threads = static_cast<uint64_t>(threads),
                                                               .shared_bytes = shared}));
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
  return guarded([&] {
    require(value != nullptr);
    *value = attribute_of(function_of(function), which);
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  return guarded([&] { set_attribute(function_of(function), which, value); });
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute which, CUkernel kernel, CUdevice) {
  return cuFuncGetAttribute(value, which, reinterpret_cast<CUfunction>(kernel));
}

CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel, CUdevice) {
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), which, value);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return guarded([&] {
    note_without_effect(function_of(function).module.context.device,
                        "the preferred cache configuration (cudaFuncSetCacheConfig)");
  });
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice) {
  return cuFuncSetCacheConfig(reinterpret_cast<CUfunction>(kernel), config);
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  return guarded([&] { function_of(function); });
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return guarded([&] {
    const auto& parameters = function_of(function).facts.parameters;
    require(offset != nullptr && index < parameters.size());
    *offset = parameters[index].offset;
    if (size) *size = parameters[index].size;
  });
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), index, offset, size);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* ctas, CUfunction function, int threads,
                                                     size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(ctas, function, threads, shared, 0);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* ctas, CUfunction function, int threads,
                                                              size_t shared, unsigned flags) {
  return guarded([&] {
    require(ctas != nullptr && flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    *ctas = active_ctas(function_of(function), threads, shared);
  });
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                   unsigned) {
  return guarded([&] {
    require(grid != nullptr && block != nullptr && limit >= 0);
    Function& f = function_of(function);
    const Device& device = f.module.context.device;
    const int warp = device.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    int most = attribute_of(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    if (limit > 0) most = std::min(most, limit);
    int best_threads = 0, best_ctas = 0;
    // The largest block among those with maximum occupancy, as CUDA's documentation specifies.
    for (int threads = (most + warp - 1) / warp * warp; threads > 0; threads -= warp) {
      const int block_threads = std::min(threads, most);
      const int ctas = active_ctas(f, block_threads, shared_of ? shared_of(block_threads) : shared);
      if (ctas * block_threads <= best_ctas * best_threads) continue;
      best_threads = block_threads;
      best_ctas = ctas;
    }
    *block = best_threads;
    *grid = best_ctas * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  });
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int ctas, int threads) {
  return guarded([&] {
    require(bytes != nullptr && ctas > 0);
    Function& f = function_of(function);
    const auto most = static_cast<size_t>(
        f.module.context.device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    size_t low = 0, high = most - std::min<size_t>(most, f.facts.shared_bytes);
    require(active_ctas(f, threads, 0) >= ctas);
    while (low < high) {
      const size_t middle = (low + high + 1) / 2;
      if (active_ctas(f, threads, middle) >= ctas)
        low = middle;
      else
        high = middle - 1;
    }
    *bytes = low;
  });
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig*) {
  return guarded([&] {
    require(size != nullptr);
    Function& f = function_of(function);
    const bool clusters = f.module.context.device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0;
    const auto allowed = f.attributes.find(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    *size = !clusters ? 0 : allowed != f.attributes.end() && allowed->second ? 16 : 8;
  });
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  return guarded([&] {
    require(clusters != nullptr && config != nullptr);
    Function& f = function_of(function);
    const Device& device = f.module.context.device;
    unsigned size = 1;
    for (unsigned k = 0; k < config->numAttrs; ++k)
      if (config->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        size = config->attrs[k].value.clusterDim.x * config->attrs[k].value.clusterDim.y *
               config->attrs[k].value.clusterDim.z;
    require(size > 0);
    const unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    const int ctas = active_ctas(f, static_cast<int>(threads), config->sharedMemBytes) *
                     device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    *clusters = ctas / static_cast<int>(size);
  });
}
