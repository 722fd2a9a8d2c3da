#include <algorithm>

#include "graph.hpp"

// Memory that graphs allocate and free.

namespace simt::driver {
namespace {

/// Memory of all allocation nodes, by address.
auto& graph_memories = *new std::map<uint64_t, std::weak_ptr<GraphMemory>>;
/// Memory that a launch has left allocated outlives its graphs, until it is freed.
auto& outlasting = *new std::map<uint64_t, std::shared_ptr<GraphMemory>>;

/// High watermarks of a device.
struct Watermarks {
  uint64_t used = 0, reserved = 0;
};
auto& watermarks = *new std::map<const Device*, Watermarks>;

uint64_t reserved(const Device& device) {
  uint64_t bytes = 0;
  for (const auto& [address, weak] : graph_memories)
    if (const auto memory = weak.lock(); memory && &memory->device == &device) bytes += memory->bytes;
  return bytes;
}

uint64_t used(const Device& device) {
  uint64_t bytes = 0;
  for (const auto& [address, memory] : outlasting)
    if (&memory->device == &device) bytes += memory->bytes;
  return bytes;
}

}  // namespace

GraphMemory::GraphMemory(Device& of, uint64_t size, const Graph& graph)
    : device(of),
      bytes(size),
      address(of.allocate(size, Origin::Device, 0, "graph memory")),
      owner(graph.id) {}

GraphMemory::~GraphMemory() {
  if (lost) return;
  graph_memories.erase(address);
  try {
    synchronize(device);      // a launch may still use it
  } catch (const Failure&) {  // its fault has been reported
  }
  if (device.allocations.contains(address)) device.free(address);
}

void forget_graph_memory(Device& device) {
  std::erase_if(graph_memories, [&](const auto& entry) {
    const auto memory = entry.second.lock();
    if (!memory || &memory->device != &device) return false;
    memory->lost = true;
    return true;
  });
  std::erase_if(outlasting, [&](const auto& entry) { return &entry.second->device == &device; });
}

AllocationTask task_of_allocation(const Graph& graph, const CUDA_MEM_ALLOC_NODE_PARAMS& p) {
  require(p.bytesize > 0 && (p.accessDescs != nullptr || p.accessDescCount == 0));
  require(p.poolProps.handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
          p.poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
  require(p.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  Device& device = Process::get().device(p.poolProps.location.id);
  require(device.arena_bytes > 0, CUDA_ERROR_INVALID_CONTEXT);
  AllocationTask task;
  task.memory = std::make_shared<GraphMemory>(device, p.bytesize, graph);
  task.properties = p.poolProps;
  task.access.assign(p.accessDescs, p.accessDescs + p.accessDescCount);
  graph_memories[task.memory->address] = task.memory;
  Watermarks& marks = watermarks[&device];
  marks.reserved = std::max(marks.reserved, reserved(device));
  return task;
}

Task task_of_free(const Graph& graph, CUdeviceptr address) {
  const auto found = graph_memories.find(address);
  require(found != graph_memories.end());
  FreeTask task{found->second.lock()};
  require(task.memory != nullptr && task.memory->freed_in == 0);
  task.memory->freed_in = graph.id;
  return task;
}

void allocate(const AllocationTask& task) {
  task.memory->allocated = true;
  outlasting[task.memory->address] = task.memory;
  const Device& device = task.memory->device;
  Watermarks& marks = watermarks[&device];
  marks.used = std::max(marks.used, used(device));
}

void free(const FreeTask& task) {
  task.memory->allocated = false;
  outlasting.erase(task.memory->address);
}

bool free_graph_memory(uint64_t address) {
  const auto found = graph_memories.find(address);
  if (found == graph_memories.end()) return false;
  const auto memory = found->second.lock();
  require(memory != nullptr && memory->allocated && memory->freed_in != memory->owner);
  memory->allocated = false;
  outlasting.erase(address);
  return true;
}

}  // namespace simt::driver

using namespace simt::driver;

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return guarded([&] { Process::get().device(device); });  // unused memory is not retained
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute which, void* value) {
  return guarded([&] {
    require(value != nullptr);
    const Device& device = Process::get().device(ordinal);
    const auto put = [&](uint64_t bytes) { *static_cast<cuuint64_t*>(value) = bytes; };
    switch (which) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        return put(used(device));
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        return put(watermarks[&device].used);
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        return put(reserved(device));
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        return put(watermarks[&device].reserved);
    }
    fail(CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute which, void* value) {
  return guarded([&] {
    require(value != nullptr && *static_cast<const cuuint64_t*>(value) == 0);
    const Device& device = Process::get().device(ordinal);
    require(which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
    Watermarks& marks = watermarks[&device];
    if (which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
      marks.used = used(device);
    else
      marks.reserved = reserved(device);
  });
}
