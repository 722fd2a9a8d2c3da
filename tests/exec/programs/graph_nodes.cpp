#include <cstring>
#include <string>

#include "driver.hpp"

// Graphs made node by node: values, queries, clones, instances and their updates.

namespace {

constexpr unsigned n = 100;
int calls = 0;

void called(void* argument) {
  calls += *static_cast<int*>(argument);
}

size_t count_of(CUgraph graph) {
  size_t count = 0;
  OK(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

/// fill with 5 -> x * 3 + 1 -> copy to another array -> host call, and an empty node beside them
void values(const Gpu& gpu, CUstream stream) {
  const CUdeviceptr a = allocate(n), b = allocate(n);
  CUgraph graph;
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode fill, kernel, copy, host, empty;
  const CUDA_MEMSET_NODE_PARAMS filled{a, 0, 5, 4, n, 1};
  OK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &filled, gpu.context));
  {
    Affine affine(a, n, 3, 1);
    const auto node = affine.node(gpu);
    OK(cuGraphAddKernelNode(&kernel, graph, &fill, 1, &node));
    affine.a = 100;  // its arguments were copied
  }
  const auto moved = copy_node(b, a, n * 4);
  OK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &moved, gpu.context));
  int step = 1;
  const CUDA_HOST_NODE_PARAMS call{called, &step};
  OK(cuGraphAddHostNode(&host, graph, &copy, 1, &call));
  OK(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));
  const CUgraphNode twice[] = {fill, fill};
  CUgraphNode none;
  FAILS(INVALID_VALUE, cuGraphAddEmptyNode(&none, graph, twice, 2));
  CHECK(count_of(graph) == 5);

  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphUpload(exec, stream));
  for (int k = 0; k < 2; ++k) OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(b) == 16 && word(b + 4 * (n - 1)) == 16 && calls == 2);

  // What a node was given can be read and set; the instance keeps what it has.
  CUDA_KERNEL_NODE_PARAMS got;
  OK(cuGraphKernelNodeGetParams(kernel, &got));
  CHECK(got.func == gpu.affine && got.gridDimX == 2 && *static_cast<unsigned*>(got.kernelParams[2]) == 3);
  Affine other(a, n, 7, 0);
  const auto next = other.node(gpu);
  OK(cuGraphKernelNodeSetParams(kernel, &next));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(b) == 16);
  OK(cuGraphExecKernelNodeSetParams(exec, kernel, &next));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(b) == 35);
  CUDA_MEMSET_NODE_PARAMS two = filled;
  two.value = 2;
  OK(cuGraphExecMemsetNodeSetParams(exec, fill, &two, gpu.context));
  OK(cuGraphNodeSetEnabled(exec, kernel, 0));
  unsigned enabled = 1;
  OK(cuGraphNodeGetEnabled(exec, kernel, &enabled));
  CHECK(enabled == 0);
  FAILS(INVALID_VALUE, cuGraphNodeSetEnabled(exec, host, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(b) == 2);
  step = 10;
  const CUDA_HOST_NODE_PARAMS nothing{nullptr, nullptr};
  FAILS(INVALID_VALUE, cuGraphExecHostNodeSetParams(exec, host, &nothing));
  FAILS(INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, copy, &next));

  // `extra` names the arguments as one buffer.
  struct {
    CUdeviceptr p;
    unsigned n, a, b;
  } buffer{a, n, 0, 9};
  size_t size = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  auto packed = next;
  packed.kernelParams = nullptr;
  packed.extra = extra;
  OK(cuGraphExecKernelNodeSetParams(exec, kernel, &packed));
  OK(cuGraphNodeSetEnabled(exec, kernel, 1));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(b) == 9);
  OK(cuGraphExecDestroy(exec));
  FAILS(INVALID_VALUE, cuGraphLaunch(exec, stream));
  OK(cuGraphDestroy(graph));
  FAILS(INVALID_VALUE, cuGraphDestroy(graph));
  std::printf("values\n");
}

void structure(CUstream stream) {
  CUgraph graph;
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode a, b, c;
  OK(cuGraphAddEmptyNode(&a, graph, nullptr, 0));
  OK(cuGraphAddEmptyNode(&b, graph, &a, 1));
  OK(cuGraphAddEmptyNode(&c, graph, nullptr, 0));
  OK(cuGraphAddDependencies(graph, &b, &c, 1));
  FAILS(INVALID_VALUE, cuGraphAddDependencies(graph, &b, &c, 1));
  size_t count = 3;
  CUgraphNode nodes[3], from[3], to[3];
  OK(cuGraphGetRootNodes(graph, nodes, &count));
  CHECK(count == 1 && nodes[0] == a && nodes[1] == nullptr);
  count = 3;
  OK(cuGraphGetEdges(graph, from, to, &count));
  CHECK(count == 2 && from[0] == a && to[0] == b && from[1] == b && to[1] == c && from[2] == nullptr);
  count = 1;
  OK(cuGraphNodeGetDependencies(c, nodes, &count));
  CHECK(count == 1 && nodes[0] == b);
  OK(cuGraphNodeGetDependentNodes(a, nullptr, &count));
  CHECK(count == 1);
  CUgraphNodeType type;
  OK(cuGraphNodeGetType(a, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_EMPTY);

  CUgraph clone;
  CUgraphNode twin;
  OK(cuGraphClone(&clone, graph));
  OK(cuGraphNodeFindInClone(&twin, b, clone));
  CHECK(twin != b);
  FAILS(INVALID_VALUE, cuGraphNodeFindInClone(&twin, twin, clone));
  OK(cuGraphDestroyNode(b));
  CHECK(count_of(graph) == 2 && count_of(clone) == 3);
  OK(cuGraphGetEdges(graph, nullptr, nullptr, &count));
  CHECK(count == 0);
  FAILS(INVALID_VALUE, cuGraphDestroyNode(b));

  // A cycle is found when the graph is instantiated.
  OK(cuGraphAddDependencies(graph, &a, &c, 1));
  OK(cuGraphAddDependencies(graph, &c, &a, 1));
  CUgraphExec exec;
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  FAILS(INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &parameters));
  CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE && parameters.hErrNode_out == a);
  OK(cuGraphRemoveDependencies(graph, &c, &a, 1));
  FAILS(INVALID_VALUE, cuGraphRemoveDependencies(graph, &c, &a, 1));
  OK(cuGraphInstantiateWithParams(&exec, graph, &parameters));
  CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);

  // An update needs the same topology.
  CUgraphExecUpdateResultInfo info;
  FAILS(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, clone, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && info.errorNode == nullptr);
  int step = 0;
  const CUDA_HOST_NODE_PARAMS call{called, &step};
  CUgraph changed;
  CUgraphNode first, second;
  OK(cuGraphCreate(&changed, 0));
  OK(cuGraphAddEmptyNode(&first, changed, nullptr, 0));
  OK(cuGraphAddHostNode(&second, changed, &first, 1, &call));
  FAILS(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, changed, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == second);
  OK(cuGraphLaunch(exec, stream));
  OK(cuGraphDestroy(changed));
  OK(cuGraphDestroy(clone));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  std::printf("structure\n");
}

/// A child graph, whole-graph updates, and the generic way to add and set nodes.
void children(const Gpu& gpu, CUstream stream) {
  const CUdeviceptr a = allocate(n);
  CUgraph child, graph;
  CUgraphNode inner, outer, before;
  OK(cuGraphCreate(&child, 0));
  Affine affine(a, n, 2, 1);
  auto node = affine.node(gpu);
  OK(cuGraphAddKernelNode(&inner, child, nullptr, 0, &node));
  OK(cuGraphCreate(&graph, 0));
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_MEMSET;
  parameters.memset = {a, 0, 4, 4, n, 1, gpu.context};
  OK(cuGraphAddNode(&before, graph, nullptr, 0, &parameters));
  OK(cuGraphAddChildGraphNode(&outer, graph, &before, 1, child));
  CUgraph held;
  OK(cuGraphChildGraphNodeGetGraph(outer, &held));
  CHECK(held != child && count_of(held) == 1);
  FAILS(INVALID_VALUE, cuGraphDestroy(held));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(a) == 9);
  affine.b = 3;
  OK(cuGraphKernelNodeSetParams(inner, &node));
  OK(cuGraphExecChildGraphNodeSetParams(exec, outer, child));
  parameters.memset.value = 10;
  OK(cuGraphExecNodeSetParams(exec, before, &parameters));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(a) == 23);
  CUgraphExecUpdateResultInfo info;
  OK(cuGraphExecUpdate(exec, graph, &info));  // as it was first
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(a) == 9);

  CUkernelNodeAttrValue value{};
  value.cooperative = 1;
  OK(cuGraphKernelNodeSetAttribute(inner, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  value.cooperative = 0;
  OK(cuGraphKernelNodeGetAttribute(inner, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  CHECK(value.cooperative == 1);
  FAILS(INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(exec, outer, child));

  parameters = {};
  parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  CUgraphNode none;
  FAILS(NOT_SUPPORTED, cuGraphAddNode(&none, graph, nullptr, 0, &parameters));
  FAILS(NOT_SUPPORTED, cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
  OK(cuGraphDestroy(child));
  OK(cuGraphDestroy(graph));
  OK(cuModuleUnload(gpu.module));
  FAILS(INVALID_HANDLE, cuGraphLaunch(exec, stream));
  OK(cuGraphExecDestroy(exec));
  std::printf("children\n");
}

/// Memory that exists from a launch's allocation to a free.
void memory(const Gpu& gpu, CUstream stream) {
  CUgraph graph;
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  wanted.bytesize = n * 4;
  CUgraphNode allocation, fill, release;
  OK(cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &wanted));
  const CUDA_MEMSET_NODE_PARAMS filled{wanted.dptr, 0, 6, 4, n, 1};
  OK(cuGraphAddMemsetNode(&fill, graph, &allocation, 1, &filled, gpu.context));
  CUgraph none;
  FAILS(NOT_SUPPORTED, cuGraphClone(&none, graph));
  CUgraphExec exec, second;
  OK(cuGraphInstantiate(&exec, graph, 0));
  FAILS(INVALID_VALUE, cuGraphInstantiate(&second, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(word(wanted.dptr) == 6);
  FAILS(INVALID_VALUE, cuGraphLaunch(exec, stream));  // still allocated
  cuuint64_t used = 0;
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == n * 4);
  OK(cuMemFreeAsync(wanted.dptr, stream));
  FAILS(INVALID_VALUE, cuMemFree(wanted.dptr));
  OK(cuGraphLaunch(exec, stream));
  OK(cuMemFree(wanted.dptr));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphAddMemFreeNode(&release, graph, &fill, 1, wanted.dptr));
  FAILS(INVALID_VALUE, cuGraphAddMemFreeNode(&release, graph, &fill, 1, wanted.dptr));
  FAILS(NOT_SUPPORTED, cuGraphDestroyNode(fill));
  OK(cuGraphInstantiate(&exec, graph, 0));
  for (int k = 0; k < 3; ++k) OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));

  // One graph allocates, another frees. What a launch has allocated outlives its graph.
  CUgraph freeing;
  CUgraphExec freer;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &wanted));
  OK(cuGraphCreate(&freeing, 0));
  OK(cuGraphAddMemFreeNode(&release, freeing, nullptr, 0, wanted.dptr));
  OK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  OK(cuGraphInstantiate(&freer, freeing, 0));
  FAILS(INVALID_VALUE, cuGraphLaunch(freer, stream));  // not allocated yet
  for (int k = 0; k < 2; ++k) OK(cuGraphLaunch(exec, stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuMemsetD32(wanted.dptr, 3, n));
  CHECK(word(wanted.dptr) == 3);
  OK(cuGraphLaunch(freer, stream));
  OK(cuGraphExecDestroy(freer));
  OK(cuGraphDestroy(freeing));
  FAILS(INVALID_VALUE, cuMemsetD32(wanted.dptr, 3, n));
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used));
  CHECK(used == 0);
  std::printf("memory\n");
}

void objects_and_text(CUstream stream) {
  calls = 0;
  int step = 1;
  CUuserObject object;
  OK(cuUserObjectCreate(&object, &step, called, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode node, record;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUevent event;
  OK(cuEventCreate(&event, 0));
  OK(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  OK(cuGraphAddEventRecordNode(&record, graph, &node, 1, event));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuEventSynchronize(event));
  FAILS(OPERATING_SYSTEM, cuGraphDebugDotPrint(graph, "/nowhere/graph.dot", 0));
  OK(cuGraphDebugDotPrint(graph, "graph.dot", CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
  std::FILE* file = std::fopen("graph.dot", "r");
  char text[1000];
  text[std::fread(text, 1, sizeof text - 1, file)] = '\0';
  std::fclose(file);
  CHECK(std::strstr(text, "digraph") && std::strstr(text, "EVENT_RECORD") && std::strstr(text, "->"));
  OK(cuGraphDestroy(graph));
  CHECK(calls == 0);
  OK(cuGraphExecDestroy(exec));
  CHECK(calls == 1);
  std::printf("objects_and_text\n");
}

}  // namespace

int main() {
  const Gpu gpu;
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  values(gpu, stream);
  structure(stream);
  memory(gpu, stream);
  objects_and_text(stream);
  children(gpu, stream);
}
