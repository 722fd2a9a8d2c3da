// Other graph nodes (host functions, child graphs, events, allocations), and properties of all nodes.
#include "copy.hpp"
#include "graph_node.hpp"

namespace runtime {
namespace {

cudaError_t driver_node(const cudaGraphNodeParams& parameters, CUgraphNodeParams* result) {
  *result = {};
  result->type = static_cast<CUgraphNodeType>(parameters.type);
  switch (parameters.type) {
    case cudaGraphNodeTypeKernel: {
      const auto& kernel = parameters.kernel;
      CUDA_KERNEL_NODE_PARAMS driver_kernel;
      RUNTIME_TRY(driver_kernel_node({kernel.func, kernel.gridDim, kernel.blockDim, kernel.sharedMemBytes,
                                      kernel.kernelParams, kernel.extra},
                                     &driver_kernel));
      result->kernel = {driver_kernel.func,      driver_kernel.gridDimX,       driver_kernel.gridDimY,
                        driver_kernel.gridDimZ,  driver_kernel.blockDimX,      driver_kernel.blockDimY,
                        driver_kernel.blockDimZ, driver_kernel.sharedMemBytes, driver_kernel.kernelParams,
                        driver_kernel.extra,     driver_kernel.kern,           driver_kernel.ctx};
      return cudaSuccess;
    }
    case cudaGraphNodeTypeMemcpy:
      result->memcpy.copyCtx = current_context();
      return driver_copy(parameters.memcpy.copyParams, &result->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      const auto& memset = parameters.memset;
      result->memset = {reinterpret_cast<CUdeviceptr>(memset.dst),
                        memset.pitch,
                        memset.value,
                        memset.elementSize,
                        memset.width,
                        memset.height,
                        current_context()};
      return cudaSuccess;
    }
    case cudaGraphNodeTypeHost:
      result->host = {parameters.host.fn, parameters.host.userData};
      return cudaSuccess;
    case cudaGraphNodeTypeGraph:
      result->graph = {parameters.graph.graph,
                       static_cast<CUgraphChildGraphNodeOwnership>(parameters.graph.ownership)};
      return cudaSuccess;
    case cudaGraphNodeTypeEmpty:
      return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
      result->eventWait.event = parameters.eventWait.event;
      return cudaSuccess;
    case cudaGraphNodeTypeEventRecord:
      result->eventRecord.event = parameters.eventRecord.event;
      return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc:
      result->alloc = reinterpret_cast<const CUDA_MEM_ALLOC_NODE_PARAMS_v2&>(parameters.alloc);
      return cudaSuccess;
    case cudaGraphNodeTypeMemFree:
      result->free.dptr = reinterpret_cast<CUdeviceptr>(parameters.free.dptr);
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      result->conditional = {parameters.conditional.handle,
                             static_cast<CUgraphConditionalNodeType>(parameters.conditional.type),
                             parameters.conditional.size, nullptr, current_context()};
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
  }
}

// Two kinds of nodes return results to the program when they are added.
void return_results(const CUgraphNodeParams& from, cudaGraphNodeParams* to) {
  if (from.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) to->alloc.dptr = pointer(from.alloc.dptr);
  if (from.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) to->conditional.phGraph_out = from.conditional.phGraph_out;
}

cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
  if (!parameters) return cudaErrorInvalidValue;
  CUgraphNodeParams driver_parameters;
  RUNTIME_TRY(driver_node(*parameters, &driver_parameters));
  RUNTIME_TRY(forward(cuGraphAddNode_v2, node, graph, dependencies, edges, count, &driver_parameters));
  return_results(driver_parameters, parameters);
  return cudaSuccess;
}

cudaError_t set(cudaGraphNode_t node, const cudaGraphNodeParams* parameters) {
  if (!parameters) return cudaErrorInvalidValue;
  CUgraphNodeParams driver_parameters;
  RUNTIME_TRY(driver_node(*parameters, &driver_parameters));
  return to_error(cuGraphNodeSetParams(node, &driver_parameters));
}

cudaError_t set_in_instance(cudaGraphExec_t instance, cudaGraphNode_t node,
                            const cudaGraphNodeParams* parameters) {
  if (!parameters) return cudaErrorInvalidValue;
  CUgraphNodeParams driver_parameters;
  RUNTIME_TRY(driver_node(*parameters, &driver_parameters));
  return to_error(cuGraphExecNodeSetParams(instance, node, &driver_parameters));
}

}  // namespace
}  // namespace runtime

using namespace runtime;

extern "C" {

cudaError_t v11_cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 cudaGraphNodeParams* parameters) {
  return call(add, node, graph, dependencies, nullptr, count, parameters);
}
cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                const cudaGraphEdgeData* edges, size_t count,
                                cudaGraphNodeParams* parameters) {
  return call(add, node, graph, dependencies, edges, count, parameters);
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  return call(set, node, parameters);
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                       cudaGraphNodeParams* parameters) {
  return call(set_in_instance, instance, node, parameters);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call(cuGraphNodeGetType, node, type);
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t instance, cudaGraphNode_t node, unsigned int* enabled) {
  return call(cuGraphNodeGetEnabled, instance, node, enabled);
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t instance, cudaGraphNode_t node, unsigned int enabled) {
  return call(cuGraphNodeSetEnabled, instance, node, enabled);
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return call(cuGraphDestroyNode, node);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count) {
  return call(cuGraphAddEmptyNode, node, graph, dependencies, count);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const cudaHostNodeParams* parameters) {
  return call(cuGraphAddHostNode, node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* parameters) {
  return call(cuGraphHostNodeGetParams, node, parameters);
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters) {
  return call(cuGraphHostNodeSetParams, node, parameters);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                           const cudaHostNodeParams* parameters) {
  return call(cuGraphExecHostNodeSetParams, instance, node, parameters);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t count, cudaGraph_t child) {
  return call(cuGraphAddChildGraphNode, node, graph, dependencies, count, child);
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* child) {
  return call(cuGraphChildGraphNodeGetGraph, node, child);
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  return call(cuGraphExecChildGraphNodeSetParams, instance, node, child);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, size_t count,
                                        cudaEvent_t event) {
  return call(cuGraphAddEventRecordNode, node, graph, dependencies, count, event);
}
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return call(cuGraphEventRecordNodeGetEvent, node, event);
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return call(cuGraphEventRecordNodeSetEvent, node, event);
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t instance, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  return call(cuGraphExecEventRecordNodeSetEvent, instance, node, event);
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, size_t count, cudaEvent_t event) {
  return call(cuGraphAddEventWaitNode, node, graph, dependencies, count, event);
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return call(cuGraphEventWaitNodeGetEvent, node, event);
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return call(cuGraphEventWaitNodeSetEvent, node, event);
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t instance, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  return call(cuGraphExecEventWaitNodeSetEvent, instance, node, event);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count,
                                     cudaMemAllocNodeParams* parameters) {
  return call(cuGraphAddMemAllocNode, node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* parameters) {
  return call(cuGraphMemAllocNodeGetParams, node, parameters);
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, size_t count, void* address) {
  return call(cuGraphAddMemFreeNode, node, graph, dependencies, count, address);
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* address) {
  return call(cuGraphMemFreeNodeGetParams, node, static_cast<CUdeviceptr*>(address));
}

}  // extern "C"
