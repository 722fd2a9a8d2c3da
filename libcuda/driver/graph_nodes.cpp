#include <algorithm>

#include "copy.hpp"
#include "graph.hpp"
#include "launch.hpp"
#include "modules.hpp"

// Nodes that launch, copy, fill, call the host, contain a graph, or record or wait for events.

namespace simt::driver {
namespace {

/// Describes memory as the parameters of a copy do.
template <class Pointer>
void put_side(const Copy::Side& side, CUmemorytype& type, Pointer& host, CUdeviceptr& device) {
  if (Process::get().device_of(side.address)) {
    type = CU_MEMORYTYPE_DEVICE;
    device = side.address;
  } else {
    type = CU_MEMORYTYPE_HOST;
    host = reinterpret_cast<Pointer>(side.address);
  }
}

}  // namespace

Task task_of(const CUDA_KERNEL_NODE_PARAMS_v3& p) {
  CUfunction function = p.func;
  if (!function && p.ctx) {
    Kernel& kernel = object_of<Kernel>(p.kern);
    Context& context = object_of<Context>(p.ctx, CUDA_ERROR_INVALID_CONTEXT);
    function = handle_of<CUfunction>(&function_named(kernel.library.in(context), kernel.name));
  } else if (!function) {
    function = reinterpret_cast<CUfunction>(p.kern);
  }
  KernelTask task;
  require(p.kernelParams == nullptr || p.extra == nullptr);
  task.launch =
      make_launch(function, {p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ},
                  p.sharedMemBytes, p.kernelParams, p.extra, {});
  task.launch.handle = p.func;
  task.kernel = p.func ? nullptr : p.kern;
  return task;
}

Task task_of(const CUDA_MEMCPY3D& p) {
  CopyTask task{copy_of(p), p};
  check(task.copy);
  return task;
}

Task task_of(const CUDA_MEMSET_NODE_PARAMS_v1& p) {
  const Fill fill{p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
  check(fill);
  return fill;
}

Task task_of(const CUDA_HOST_NODE_PARAMS_v1& p) {
  require(p.fn != nullptr);
  return HostCall{p.fn, p.userData};
}

Task task_of_child(CUgraph graph) {
  Graph& g = graph_of(graph);
  require(!has_memory_nodes(g), CUDA_ERROR_NOT_SUPPORTED);
  return ChildTask{&copy_graph(g)};
}

Task record_task_of(CUevent event) {
  return Record{object_of<Event>(event)};
}

Task wait_task_of(CUevent event) {
  return Wait{object_of<Event>(event)};
}

CUDA_MEMCPY3D parameters_of(const Copy& copy) {
  CUDA_MEMCPY3D p{};
  put_side(copy.from, p.srcMemoryType, p.srcHost, p.srcDevice);
  put_side(copy.to, p.dstMemoryType, p.dstHost, p.dstDevice);
  p.srcPitch = copy.from.pitch;
  p.dstPitch = copy.to.pitch;
  if (copy.from.pitch) p.srcHeight = copy.from.slice / copy.from.pitch;
  if (copy.to.pitch) p.dstHeight = copy.to.slice / copy.to.pitch;
  p.WidthInBytes = copy.width;
  p.Height = copy.height;
  p.Depth = copy.depth;
  return p;
}

}  // namespace simt::driver

using namespace simt::driver;

namespace {

/// Adds a node; its task is made after everything else has been checked.
template <class Make>
CUresult add(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
             size_t count, const Make& make) {
  return guarded([&] {
    require(out != nullptr);
    Graph& g = graph_of(graph);
    const auto checked = dependencies_of(g, dependencies, edges, count);
    Task task = make(g);
    for (const Dependency& d : checked) check_edge(d.node->task, task, d.edge);
    *out = handle_of<CUgraphNode>(&add_node(g, checked, std::move(task)));
  });
}

/// The task of a node of kind T. Throws Failure for other nodes.
template <class T>
T& task(CUgraphNode node) {
  T* found = std::get_if<T>(&node_of(node).task);
  require(found != nullptr);
  return *found;
}

/// Replaces a node's task by another of the same kind; a kernel's attributes are kept.
void set(CUgraphNode node, Task next) {
  Task& now = node_of(node).task;
  require(now.index() == next.index());
  if (auto* kernel = std::get_if<KernelTask>(&next)) keep_attributes(std::get<KernelTask>(now), *kernel);
  now = std::move(next);
}

/// Parameters of earlier versions are a prefix of later ones.
template <class Earlier>
CUDA_KERNEL_NODE_PARAMS_v3 latest(const Earlier* parameters) {
  require(parameters != nullptr);
  CUDA_KERNEL_NODE_PARAMS_v3 p{};
  std::memcpy(&p, parameters, sizeof *parameters);
  return p;
}

template <class Parameters>
void get_kernel(CUgraphNode node, Parameters* out) {
  require(out != nullptr);
  KernelTask& kernel = task<KernelTask>(node);
  Launch& launch = kernel.launch;
  Node& n = node_of(node);
  n.parameters.clear();
  for (const auto& parameter : launch.function->facts.parameters)
    n.parameters.push_back(launch.parameters.data() + parameter.offset);
  CUDA_KERNEL_NODE_PARAMS_v3 p{};
  p.func = launch.handle;
  p.gridDimX = launch.grid[0];
  p.gridDimY = launch.grid[1];
  p.gridDimZ = launch.grid[2];
  p.blockDimX = launch.block[0];
  p.blockDimY = launch.block[1];
  p.blockDimZ = launch.block[2];
  p.sharedMemBytes = launch.shared_bytes;
  p.kernelParams = n.parameters.empty() ? nullptr : n.parameters.data();
  p.kern = kernel.kernel;
  if (sizeof *out < sizeof p && !p.func)  // an earlier version has no field for a kernel
    p.func = handle_of<CUfunction>(&*launch.function);
  std::memcpy(out, &p, sizeof *out);
}

template <class Parameters>
const Parameters& given(const Parameters* parameters) {
  require(parameters != nullptr);
  return *parameters;
}

void check_context(CUcontext context) {
  object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT);
}

[[noreturn]] void unsupported(const char* what) {
  say_once(std::string("graph nodes for ") + what + " are not supported (CUDA_ERROR_NOT_SUPPORTED)");
  fail(CUDA_ERROR_NOT_SUPPORTED);
}

/// The task described by generic parameters.
Task described_task(const CUgraphNodeParams& p) {
  require((p.reserved0[0] | p.reserved0[1] | p.reserved0[2]) == 0 && p.reserved2 == 0);
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return task_of(p.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      require(p.memcpy.flags == 0 && p.memcpy.reserved == 0);
      if (p.memcpy.copyCtx) check_context(p.memcpy.copyCtx);
      return task_of(p.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      if (p.memset.ctx) check_context(p.memset.ctx);
      return task_of(CUDA_MEMSET_NODE_PARAMS{p.memset.dst, p.memset.pitch, p.memset.value,
                                             p.memset.elementSize, p.memset.width, p.memset.height});
    case CU_GRAPH_NODE_TYPE_HOST:
      return task_of(CUDA_HOST_NODE_PARAMS{p.host.fn, p.host.userData});
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return Nothing{};
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return wait_task_of(p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return record_task_of(p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      unsupported("external semaphores");
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      unsupported("batched memory operations");
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      unsupported("conditions");
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

/// As above, for a new node.
Task new_task(CUgraphNodeParams& p, Graph& graph) {
  if (p.type == CU_GRAPH_NODE_TYPE_GRAPH) {
    if (p.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) return task_of_child(p.graph.graph);
    Graph& child = graph_of(p.graph.graph);
    require(&child != &graph && child.parent == nullptr && child.captures == 0);
    return ChildTask{&child};
  }
  if (p.type == CU_GRAPH_NODE_TYPE_MEM_FREE) return task_of_free(graph, p.free.dptr);
  if (p.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return described_task(p);
  AllocationTask made =
      task_of_allocation(graph, CUDA_MEM_ALLOC_NODE_PARAMS{p.alloc.poolProps, p.alloc.accessDescs,
                                                           p.alloc.accessDescCount, p.alloc.bytesize, 0});
  p.alloc.dptr = made.memory->address;
  return made;
}

/// As above, for an existing node.
Task next_task(const CUgraphNodeParams* p) {
  require(p != nullptr);
  require(p->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && p->type != CU_GRAPH_NODE_TYPE_MEM_FREE,
          CUDA_ERROR_NOT_SUPPORTED);
  return p->type == CU_GRAPH_NODE_TYPE_GRAPH ? task_of_child(p->graph.graph) : described_task(*p);
}

}  // namespace

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return add(node, graph, dependencies, nullptr, count, [&](Graph&) { return task_of(latest(parameters)); });
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  return guarded([&] { get_kernel(node, parameters); });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return guarded([&] { set(node, task_of(latest(parameters))); });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return guarded([&] { set_task(exec, node, task_of(latest(parameters))); });
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* parameters, CUcontext context) {
  return add(node, graph, dependencies, nullptr, count, [&](Graph&) {
    check_context(context);
    return task_of(given(parameters));
  });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* parameters) {
  return guarded([&] {
    require(parameters != nullptr);
    *parameters = task<CopyTask>(node).parameters;
  });
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* parameters) {
  return guarded([&] { set(node, task_of(given(parameters))); });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* parameters,
                                        CUcontext context) {
  return guarded([&] {
    check_context(context);
    set_task(exec, node, task_of(given(parameters)));
  });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
  return add(node, graph, dependencies, nullptr, count, [&](Graph&) {
    check_context(context);
    return task_of(given(parameters));
  });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* parameters) {
  return guarded([&] {
    require(parameters != nullptr);
    const Fill& fill = task<Fill>(node);
    *parameters = {fill.address, fill.pitch, fill.value, fill.element, fill.width, fill.height};
  });
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* parameters) {
  return guarded([&] { set(node, task_of(given(parameters))); });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
  return guarded([&] {
    check_context(context);
    set_task(exec, node, task_of(given(parameters)));
  });
}

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* parameters) {
  return add(node, graph, dependencies, nullptr, count, [&](Graph&) { return task_of(given(parameters)); });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* parameters) {
  return guarded([&] {
    require(parameters != nullptr);
    const HostCall& call = task<HostCall>(node);
    *parameters = {call.function, call.argument};
  });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
  return guarded([&] { set(node, task_of(given(parameters))); });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* parameters) {
  return guarded([&] { set_task(exec, node, task_of(given(parameters))); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
  return add(node, graph, dependencies, nullptr, count, [&](Graph&) { return task_of_child(child); });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return guarded([&] {
    require(graph != nullptr);
    *graph = handle_of<CUgraph>(task<ChildTask>(node).graph);
  });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count) {
  return add(node, graph, dependencies, nullptr, count, [](Graph&) { return Task(Nothing{}); });
}

#define EVENT_NODES(kind, alternative, make)                                                              \
  CUresult cuGraphAddEvent##kind##Node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, \
                                       size_t count, CUevent event) {                                     \
    return add(node, graph, dependencies, nullptr, count, [&](Graph&) { return make(event); });           \
  }                                                                                                       \
  CUresult cuGraphEvent##kind##NodeGetEvent(CUgraphNode node, CUevent* event) {                           \
    return guarded([&] {                                                                                  \
      require(event != nullptr);                                                                          \
      *event = handle_of<CUevent>(&*task<alternative>(node).event);                                       \
    });                                                                                                   \
  }                                                                                                       \
  CUresult cuGraphEvent##kind##NodeSetEvent(CUgraphNode node, CUevent event) {                            \
    return guarded([&] { set(node, make(event)); });                                                      \
  }                                                                                                       \
  CUresult cuGraphExecEvent##kind##NodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {      \
    return guarded([&] { set_task(exec, node, make(event)); });                                           \
  }
EVENT_NODES(Record, Record, record_task_of)
EVENT_NODES(Wait, Wait, wait_task_of)
#undef EVENT_NODES

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr address) {
  return add(node, graph, dependencies, nullptr, count, [&](Graph& g) { return task_of_free(g, address); });
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return guarded([&] {
    require(address != nullptr);
    *address = task<FreeTask>(node).memory->address;
  });
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return add(node, graph, dependencies, nullptr, count, [&](Graph& g) {
    AllocationTask made = task_of_allocation(g, given(parameters));
    parameters->dptr = made.memory->address;
    return Task(std::move(made));
  });
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return guarded([&] {
    require(parameters != nullptr);
    const AllocationTask& allocation = task<AllocationTask>(node);
    *parameters = {allocation.properties, allocation.access.data(), allocation.access.size(),
                   allocation.memory->bytes, allocation.memory->address};
  });
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* parameters) {
  return add(node, graph, dependencies, edges, count, [&](Graph& g) {
    require(parameters != nullptr);
    return new_task(*parameters, g);
  });
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* parameters) {
  return cuGraphAddNode_v2(node, graph, dependencies, nullptr, count, parameters);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* parameters) {
  return guarded([&] { set(node, next_task(parameters)); });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters) {
  return guarded([&] { set_task(exec, node, next_task(parameters)); });
}

// Earlier versions of functions.

#undef cuGraphAddKernelNode
#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuGraphExecKernelNodeSetParams
extern "C" {
__attribute__((visibility("default"))) CUresult
cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                     const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return add(node, graph, dependencies, nullptr, count, [&](Graph&) { return task_of(latest(parameters)); });
}

__attribute__((visibility("default"))) CUresult
cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return guarded([&] { get_kernel(node, parameters); });
}

__attribute__((visibility("default"))) CUresult
cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return guarded([&] { set(node, task_of(latest(parameters))); });
}

__attribute__((visibility("default"))) CUresult cuGraphExecKernelNodeSetParams(
    CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return guarded([&] { set_task(exec, node, task_of(latest(parameters))); });
}
}
