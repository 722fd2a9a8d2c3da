#include "launch.hpp"

#include <algorithm>

#include "modules.hpp"

// Launches.

namespace simt::driver {
namespace {

using Three = std::array<uint32_t, 3>;

uint64_t product(const Three& dimensions) {
  return uint64_t{dimensions[0]} * dimensions[1] * dimensions[2];
}

/// The contents of the parameter bank, from the pointers or the buffer given by the program.
Bytes packed(const Function& f, void** pointers, void** extra) {
  Bytes bytes(f.facts.parameter_bytes());
  if (extra) {
    const void* buffer = nullptr;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
        buffer = extra[1];
      else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
        size = *static_cast<const size_t*>(extra[1]);
      else
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    require(pointers == nullptr && (buffer != nullptr || size == 0));
    // The missing end of the last parameter is padding.
    require(size >= bytes.size() || f.facts.parameters.empty() || size > f.facts.parameters.back().offset);
    if (buffer) std::memcpy(bytes.data(), buffer, std::min(size, bytes.size()));
    return bytes;
  }
  require(pointers != nullptr || f.facts.parameters.empty());
  for (size_t k = 0; k < f.facts.parameters.size(); ++k) {
    const auto& parameter = f.facts.parameters[k];
    require(pointers[k] != nullptr);
    std::memcpy(bytes.data() + parameter.offset, pointers[k], parameter.size);
  }
  return bytes;
}

/// What a launch attribute that changes nothing here is called; nullptr for others.
const char* without_effect(CUlaunchAttributeID which) {
  switch (which) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      return "priorities of launches (cudaLaunchAttributePriority)";
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return "programmatic stream serialization (launches begin when the earlier ones have ended)";
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return "the scheduling policy of clusters (cudaLaunchAttributeClusterSchedulingPolicyPreference)";
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return "the preferred carve-out of shared memory (cudaLaunchAttributePreferredSharedMemoryCarveout)";
    default:
      return nullptr;
  }
}

}  // namespace

void check(const Launch& launch) {
  const Function& f = *launch.function;
  const Device& device = f.module.context.device;
  const auto limit = [&](int which) {
    return static_cast<uint64_t>(device.attribute(static_cast<CUdevice_attribute>(which)));
  };
  for (int k = 0; k < 3; ++k) {
    const auto axis = static_cast<size_t>(k);
    require(launch.grid[axis] > 0 && launch.grid[axis] <= limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + k));
    require(launch.block[axis] > 0 && launch.block[axis] <= limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + k));
  }
  const uint64_t threads = product(launch.block);
  require(threads <= limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  require(f.facts.max_threads == 0 || threads <= f.facts.max_threads, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  const uint64_t dynamic =
      f.dynamic_shared_limit ? uint64_t{f.dynamic_shared_limit}
                             : limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) -
                                   std::min<uint64_t>(f.facts.shared_bytes,
                                                      limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  require(launch.shared_bytes <= dynamic);
  if (const Three& c = launch.cluster; c[0] != 0) {
    require(limit(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0, CUDA_ERROR_NOT_SUPPORTED);
    require(product(c) > 0 && product(c) <= 16, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    for (size_t k = 0; k < 3; ++k) require(launch.grid[k] % c[k] == 0, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  }
  if (!launch.cooperative) return;
  const uint64_t resident =
      device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
      const_cast<Device&>(device).connection.call(OccupancyRequest{
          .module = f.module.id, .kernel = f.name, .threads = threads, .shared_bytes = launch.shared_bytes});
  require(product(launch.grid) <= resident, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

Launch make_launch(CUfunction function, Three grid, Three block, unsigned shared, void** pointers,
                   void** extra, std::span<const CUlaunchAttribute> attributes) {
  Launch launch;
  launch.function = function_of(function);
  launch.handle = function;
  launch.grid = grid;
  launch.block = block;
  launch.shared_bytes = shared;
  for (const CUlaunchAttribute& attribute : attributes) set_attribute(launch, attribute.id, attribute.value);
  check(launch);
  launch.parameters = packed(*launch.function, pointers, extra);
  return launch;
}

void set_attribute(Launch& launch, CUlaunchAttributeID which, const CUlaunchAttributeValue& value) {
  if (which == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    launch.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
  else if (which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    launch.cooperative = value.cooperative != 0;
  else if (which == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
    launch.window = window_of(launch.function->module.context.device, value.accessPolicyWindow);
  else if (const char* name = without_effect(which))
    note_without_effect(launch.function->module.context.device, name);
}

AccessWindow window_of(const Device& device, const CUaccessPolicyWindow& window) {
  if (window.num_bytes == 0) return {};
  const int most = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
  require(most > 0, CUDA_ERROR_NOT_SUPPORTED);
  require(window.num_bytes <= static_cast<size_t>(most));
  require(window.hitRatio >= 0 && window.hitRatio <= 1);
  require(window.hitProp <= CU_ACCESS_PROPERTY_PERSISTING && window.missProp <= CU_ACCESS_PROPERTY_STREAMING);
  return {reinterpret_cast<uint64_t>(window.base_ptr), window.num_bytes, window.hitRatio,
          static_cast<uint32_t>(window.hitProp), static_cast<uint32_t>(window.missProp)};
}

}  // namespace simt::driver

using namespace simt::driver;

namespace {

void launch(CUfunction function, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block, unsigned shared,
            CUstream handle, void** pointers, void** extra, std::span<const CUlaunchAttribute> attributes) {
  Stream& stream = stream_of(handle);
  Launch made = make_launch(function, grid, block, shared, pointers, extra, attributes);
  const auto is_window = [](const CUlaunchAttribute& a) {
    return a.id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  };
  if (std::none_of(attributes.begin(), attributes.end(), is_window)) made.window = stream.window;
  submit(stream, std::move(made));
  for (const CUlaunchAttribute& attribute : attributes)
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && attribute.value.programmaticEvent.event)
      submit(stream, Record{object_of<Event>(attribute.value.programmaticEvent.event)});
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void** parameters, void** extra) {
  return guarded([&] {
    launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, parameters, extra,
           {});
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return guarded([&] {
    require(config != nullptr && (config->attrs != nullptr || config->numAttrs == 0));
    const CUlaunchConfig& c = *config;
    launch(function, {c.gridDimX, c.gridDimY, c.gridDimZ}, {c.blockDimX, c.blockDimY, c.blockDimZ},
           c.sharedMemBytes, c.hStream, parameters, extra, {c.attrs, c.numAttrs});
  });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   CUstream stream, void** parameters) {
  return guarded([&] {
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, parameters,
           nullptr, {&cooperative, 1});
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  return guarded([&] {
    require(function != nullptr);
    submit(stream_of(stream), HostCall{function, argument});
  });
}
