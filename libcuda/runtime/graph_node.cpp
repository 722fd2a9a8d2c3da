// Graph nodes that launch, copy or fill: adding them, and their parameters in graphs and executable graphs.
#include "graph_node.hpp"

#include "copy.hpp"
#include "registration.hpp"

namespace runtime {

CUcontext current_context() {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  return context;
}

cudaError_t driver_kernel_node(const cudaKernelNodeParams& parameters, CUDA_KERNEL_NODE_PARAMS* result) {
  *result = {};
  RUNTIME_TRY(kernel_of(parameters.func, &result->kern));
  result->gridDimX = parameters.gridDim.x;
  result->gridDimY = parameters.gridDim.y;
  result->gridDimZ = parameters.gridDim.z;
  result->blockDimX = parameters.blockDim.x;
  result->blockDimY = parameters.blockDim.y;
  result->blockDimZ = parameters.blockDim.z;
  result->sharedMemBytes = parameters.sharedMemBytes;
  result->kernelParams = parameters.kernelParams;
  result->extra = parameters.extra;
  return cudaSuccess;
}

// Launches pass a kernel in place of a driver function, so either field may hold the kernel.
cudaKernelNodeParams runtime_kernel_node(const CUDA_KERNEL_NODE_PARAMS& parameters) {
  const CUkernel kernel = parameters.kern ? parameters.kern : reinterpret_cast<CUkernel>(parameters.func);
  const void* host = host_of(kernel);
  cudaKernelNodeParams result{};
  result.func = host ? const_cast<void*>(host) : static_cast<void*>(kernel);
  result.gridDim = {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ};
  result.blockDim = {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ};
  result.sharedMemBytes = parameters.sharedMemBytes;
  result.kernelParams = parameters.kernelParams;
  result.extra = parameters.extra;
  return result;
}

CUDA_MEMSET_NODE_PARAMS driver_memset_node(const cudaMemsetParams& parameters) {
  return {reinterpret_cast<CUdeviceptr>(parameters.dst),
          parameters.pitch,
          parameters.value,
          parameters.elementSize,
          parameters.width,
          parameters.height};
}

cudaMemsetParams runtime_memset_node(const CUDA_MEMSET_NODE_PARAMS& parameters) {
  return {pointer(parameters.dst), parameters.pitch, parameters.value,
          parameters.elementSize,  parameters.width, parameters.height};
}

namespace {

// Sources of a node's parameters.

struct Kernel {
  using Parameters = CUDA_KERNEL_NODE_PARAMS;
  const cudaKernelNodeParams* from;
  cudaError_t operator()(Parameters* result) const {
    return from ? driver_kernel_node(*from, result) : cudaErrorInvalidValue;
  }
};

struct Memset {
  using Parameters = CUDA_MEMSET_NODE_PARAMS;
  const cudaMemsetParams* from;
  cudaError_t operator()(Parameters* result) const {
    if (!from) return cudaErrorInvalidValue;
    *result = driver_memset_node(*from);
    return cudaSuccess;
  }
};

struct Copy3d {
  using Parameters = CUDA_MEMCPY3D;
  const cudaMemcpy3DParms* from;
  cudaError_t operator()(Parameters* result) const {
    return from ? driver_copy(*from, result) : cudaErrorInvalidValue;
  }
};

struct Copy1d {
  using Parameters = CUDA_MEMCPY3D;
  void* destination;
  const void* source;
  size_t size;
  cudaMemcpyKind kind;
  cudaError_t operator()(Parameters* result) const {
    return driver_copy(destination, source, size, kind, result);
  }
};

struct CopyToSymbol {
  using Parameters = CUDA_MEMCPY3D;
  const void* symbol;
  const void* source;
  size_t size;
  size_t offset;
  cudaMemcpyKind kind;
  cudaError_t operator()(Parameters* result) const {
    void* address = nullptr;
    RUNTIME_TRY(symbol_range(symbol, size, offset, &address));
    return driver_copy(address, source, size, kind, result);
  }
};

struct CopyFromSymbol {
  using Parameters = CUDA_MEMCPY3D;
  void* destination;
  const void* symbol;
  size_t size;
  size_t offset;
  cudaMemcpyKind kind;
  cudaError_t operator()(Parameters* result) const {
    void* address = nullptr;
    RUNTIME_TRY(symbol_range(symbol, size, offset, &address));
    return driver_copy(destination, address, size, kind, result);
  }
};

// Destinations of a node's parameters.

struct Add {
  cudaGraphNode_t* node;
  cudaGraph_t graph;
  const cudaGraphNode_t* dependencies;
  size_t count;
  CUresult operator()(const CUDA_KERNEL_NODE_PARAMS& parameters) const {
    return cuGraphAddKernelNode(node, graph, dependencies, count, &parameters);
  }
  CUresult operator()(const CUDA_MEMCPY3D& parameters) const {
    return cuGraphAddMemcpyNode(node, graph, dependencies, count, &parameters, current_context());
  }
  CUresult operator()(const CUDA_MEMSET_NODE_PARAMS& parameters) const {
    return cuGraphAddMemsetNode(node, graph, dependencies, count, &parameters, current_context());
  }
};

struct Set {
  cudaGraphNode_t node;
  CUresult operator()(const CUDA_KERNEL_NODE_PARAMS& parameters) const {
    return cuGraphKernelNodeSetParams(node, &parameters);
  }
  CUresult operator()(const CUDA_MEMCPY3D& parameters) const {
    return cuGraphMemcpyNodeSetParams(node, &parameters);
  }
  CUresult operator()(const CUDA_MEMSET_NODE_PARAMS& parameters) const {
    return cuGraphMemsetNodeSetParams(node, &parameters);
  }
};

struct SetInInstance {
  cudaGraphExec_t instance;
  cudaGraphNode_t node;
  CUresult operator()(const CUDA_KERNEL_NODE_PARAMS& parameters) const {
    return cuGraphExecKernelNodeSetParams(instance, node, &parameters);
  }
  CUresult operator()(const CUDA_MEMCPY3D& parameters) const {
    return cuGraphExecMemcpyNodeSetParams(instance, node, &parameters, current_context());
  }
  CUresult operator()(const CUDA_MEMSET_NODE_PARAMS& parameters) const {
    return cuGraphExecMemsetNodeSetParams(instance, node, &parameters, current_context());
  }
};

template <class Source, class Target>
cudaError_t transfer(Source source, Target target) {
  typename Source::Parameters parameters;
  RUNTIME_TRY(source(&parameters));
  return to_error(target(parameters));
}

template <class Source, class Target>
cudaError_t apply(Source source, Target target) {
  return call(transfer<Source, Target>, source, target);
}

cudaError_t kernel_parameters(cudaGraphNode_t node, cudaKernelNodeParams* result) {
  CUDA_KERNEL_NODE_PARAMS parameters{};
  if (!result) return cudaErrorInvalidValue;
  RUNTIME_TRY(cuGraphKernelNodeGetParams(node, &parameters));
  *result = runtime_kernel_node(parameters);
  return cudaSuccess;
}

cudaError_t copy_parameters(cudaGraphNode_t node, cudaMemcpy3DParms* result) {
  CUDA_MEMCPY3D parameters{};
  if (!result) return cudaErrorInvalidValue;
  RUNTIME_TRY(cuGraphMemcpyNodeGetParams(node, &parameters));
  return runtime_copy(parameters, result);
}

cudaError_t memset_parameters(cudaGraphNode_t node, cudaMemsetParams* result) {
  CUDA_MEMSET_NODE_PARAMS parameters{};
  if (!result) return cudaErrorInvalidValue;
  RUNTIME_TRY(cuGraphMemsetNodeGetParams(node, &parameters));
  *result = runtime_memset_node(parameters);
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using namespace runtime;

extern "C" {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* parameters) {
  return apply(Kernel{parameters}, Add{node, graph, dependencies, count});
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters) {
  return call(kernel_parameters, node, parameters);
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
  return apply(Kernel{parameters}, Set{node});
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  return apply(Kernel{parameters}, SetInInstance{instance, node});
}
// The order of arguments follows the driver; CUDA 12's header names them in reverse.
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t destination, cudaGraphNode_t source) {
  return call(cuGraphKernelNodeCopyAttributes, destination, source);
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue* value) {
  return call(cuGraphKernelNodeGetAttribute, node, attribute, value);
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue* value) {
  return call(cuGraphKernelNodeSetAttribute, node, attribute, value);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemsetParams* parameters) {
  return apply(Memset{parameters}, Add{node, graph, dependencies, count});
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* parameters) {
  return call(memset_parameters, node, parameters);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters) {
  return apply(Memset{parameters}, Set{node});
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters) {
  return apply(Memset{parameters}, SetInInstance{instance, node});
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemcpy3DParms* parameters) {
  return apply(Copy3d{parameters}, Add{node, graph, dependencies, count});
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* parameters) {
  return call(copy_parameters, node, parameters);
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters) {
  return apply(Copy3d{parameters}, Set{node});
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters) {
  return apply(Copy3d{parameters}, SetInInstance{instance, node});
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count, void* destination,
                                     const void* source, size_t size, cudaMemcpyKind kind) {
  return apply(Copy1d{destination, source, size, kind}, Add{node, graph, dependencies, count});
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* destination, const void* source,
                                           size_t size, cudaMemcpyKind kind) {
  return apply(Copy1d{destination, source, size, kind}, Set{node});
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t instance, cudaGraphNode_t node,
                                               void* destination, const void* source, size_t size,
                                               cudaMemcpyKind kind) {
  return apply(Copy1d{destination, source, size, kind}, SetInInstance{instance, node});
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count,
                                           const void* symbol, const void* source, size_t size, size_t offset,
                                           cudaMemcpyKind kind) {
  return apply(CopyToSymbol{symbol, source, size, offset, kind}, Add{node, graph, dependencies, count});
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* source,
                                                 size_t size, size_t offset, cudaMemcpyKind kind) {
  return apply(CopyToSymbol{symbol, source, size, offset, kind}, Set{node});
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t instance, cudaGraphNode_t node,
                                                     const void* symbol, const void* source, size_t size,
                                                     size_t offset, cudaMemcpyKind kind) {
  return apply(CopyToSymbol{symbol, source, size, offset, kind}, SetInInstance{instance, node});
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             void* destination, const void* symbol, size_t size,
                                             size_t offset, cudaMemcpyKind kind) {
  return apply(CopyFromSymbol{destination, symbol, size, offset, kind},
               Add{node, graph, dependencies, count});
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* destination,
                                                   const void* symbol, size_t size, size_t offset,
                                                   cudaMemcpyKind kind) {
  return apply(CopyFromSymbol{destination, symbol, size, offset, kind}, Set{node});
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t instance, cudaGraphNode_t node,
                                                       void* destination, const void* symbol, size_t size,
                                                       size_t offset, cudaMemcpyKind kind) {
  return apply(CopyFromSymbol{destination, symbol, size, offset, kind}, SetInInstance{instance, node});
}

}  // extern "C"
