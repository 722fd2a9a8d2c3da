// Graphs: creation, edges, instantiation and launches.
#include "runtime.hpp"

namespace runtime {
namespace {

cudaError_t instantiate_v11(cudaGraphExec_t* instance, cudaGraph_t graph, cudaGraphNode_t* error_node,
                            char* log, size_t log_size) {
  if (log && log_size) log[0] = '\0';
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  const CUresult result = cuGraphInstantiateWithParams(instance, graph, &parameters);
  if (error_node) *error_node = parameters.hErrNode_out;
  return to_error(result);
}

cudaError_t update_v11(cudaGraphExec_t instance, cudaGraph_t graph, cudaGraphNode_t* error_node,
                       cudaGraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult status = cuGraphExecUpdate(instance, graph, &info);
  if (error_node) *error_node = info.errorNode;
  if (result) *result = static_cast<cudaGraphExecUpdateResult>(info.result);
  return to_error(status);
}

cudaError_t conditional_handle(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                               unsigned int default_value, unsigned int flags) {
  CUcontext context = nullptr;
  RUNTIME_TRY(cuCtxGetCurrent(&context));
  CUgraphConditionalHandle driver_handle = 0;
  RUNTIME_TRY(cuGraphConditionalHandleCreate(&driver_handle, graph, context, default_value, flags));
  *handle = driver_handle;
  return cudaSuccess;
}

cudaError_t instance_flags(cudaGraphExec_t instance, unsigned long long* flags) {
  if (!flags) return cudaErrorInvalidValue;
  cuuint64_t driver_flags = 0;
  RUNTIME_TRY(cuGraphExecGetFlags(instance, &driver_flags));
  *flags = driver_flags;
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using runtime::call;
using runtime::query;

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return call(cuGraphCreate, graph, flags);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(cuGraphDestroy, graph);
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return call(cuGraphClone, clone, graph);
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return call(cuGraphNodeFindInClone, node, original, clone);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call(cuGraphGetNodes, graph, nodes, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call(cuGraphGetRootNodes, graph, nodes, count);
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  return call(cuGraphDebugDotPrint, graph, path, flags);
}
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned int default_value, unsigned int flags) {
  return call(runtime::conditional_handle, handle, graph, default_value, flags);
}
// CUDA 13's execution contexts are not supported; null is the current context.
cudaError_t cudaGraphConditionalHandleCreate_v2(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                                const void* context, unsigned int default_value,
                                                unsigned int flags) {
  if (context) return runtime::remember(cudaErrorNotSupported);
  return call(runtime::conditional_handle, handle, graph, default_value, flags);
}

cudaError_t v11_cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                  size_t* count) {
  return call(cuGraphGetEdges, graph, from, to, count);
}
cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                 cudaGraphEdgeData* edges, size_t* count) {
  return call(cuGraphGetEdges_v2, graph, from, to, edges, count);
}
cudaError_t v11_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                             size_t* count) {
  return call(cuGraphNodeGetDependencies, node, dependencies, count);
}
cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                            cudaGraphEdgeData* edges, size_t* count) {
  return call(cuGraphNodeGetDependencies_v2, node, dependencies, edges, count);
}
cudaError_t v11_cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                               size_t* count) {
  return call(cuGraphNodeGetDependentNodes, node, dependents, count);
}
cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                              cudaGraphEdgeData* edges, size_t* count) {
  return call(cuGraphNodeGetDependentNodes_v2, node, dependents, edges, count);
}
cudaError_t v11_cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                         const cudaGraphNode_t* to, size_t count) {
  return call(cuGraphAddDependencies, graph, from, to, count);
}
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                        size_t count) {
  return call(cuGraphAddDependencies_v2, graph, from, to, edges, count);
}
cudaError_t v11_cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count) {
  return call(cuGraphRemoveDependencies, graph, from, to, count);
}
cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from,
                                           const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                           size_t count) {
  return call(cuGraphRemoveDependencies_v2, graph, from, to, edges, count);
}

cudaError_t v11_cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph,
                                     cudaGraphNode_t* error_node, char* log, size_t log_size) {
  return call(runtime::instantiate_v11, instance, graph, error_node, log, log_size);
}
cudaError_t v12_cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph, unsigned long long flags) {
  return call(cuGraphInstantiateWithFlags, instance, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* instance, cudaGraph_t graph,
                                          unsigned long long flags) {
  return call(cuGraphInstantiateWithFlags, instance, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* instance, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  return call(cuGraphInstantiateWithParams, instance, graph, parameters);
}
cudaError_t v11_cudaGraphExecUpdate(cudaGraphExec_t instance, cudaGraph_t graph, cudaGraphNode_t* error_node,
                                    cudaGraphExecUpdateResult* result) {
  return call(runtime::update_v11, instance, graph, error_node, result);
}
cudaError_t v12_cudaGraphExecUpdate(cudaGraphExec_t instance, cudaGraph_t graph,
                                    cudaGraphExecUpdateResultInfo* result) {
  return call(cuGraphExecUpdate, instance, graph, result);
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t instance, unsigned long long* flags) {
  return call(runtime::instance_flags, instance, flags);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t instance, cudaStream_t stream) {
  return call(cuGraphUpload, instance, stream);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
  return call(cuGraphLaunch, instance, stream);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
  return call(cuGraphExecDestroy, instance);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned int count, unsigned int flags) {
  return call(cuUserObjectCreate, object, data, destroy, count, flags);
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  return call(cuUserObjectRetain, object, count);
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return call(cuUserObjectRelease, object, count);
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  return call(cuGraphRetainUserObject, graph, object, count, flags);
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  return call(cuGraphReleaseUserObject, graph, object, count);
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  return query(cuDeviceGraphMemTrim, device);
}
cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return query(cuDeviceGetGraphMemAttribute, device, attribute, value);
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return query(cuDeviceSetGraphMemAttribute, device, attribute, value);
}

}  // extern "C"
