// Variants for programs compiled with --default-stream per-thread: the default stream is the calling thread's
// own.
#include "versions.hpp"

namespace {

cudaStream_t per_thread(cudaStream_t stream) {
  return stream ? stream : cudaStreamPerThread;
}

unsigned long long per_thread(unsigned long long flags) {
  return flags == cudaEnableDefault ? static_cast<unsigned long long>(cudaEnablePerThreadDefaultStream)
                                    : flags;
}

}  // namespace

// Asynchronous functions, and stream queries.
#define STREAM_VARIANT(function, parameters, ...) \
  cudaError_t function##_ptsz parameters {        \
    return function(__VA_ARGS__);                 \
  }

// Synchronous copies: the copy runs in the thread's stream, and the call waits for it.
#define COPY_VARIANT(function, parameters, ...)                                       \
  cudaError_t function##_ptds parameters {                                            \
    const cudaError_t error = function##Async(__VA_ARGS__, cudaStreamPerThread);      \
    return error == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : error; \
  }

extern "C" {

STREAM_VARIANT(__cudaLaunchKernel,
               (cudaKernel_t handle, dim3 grid, dim3 block, void** arguments, size_t shared,
                cudaStream_t stream),
               handle, grid, block, arguments, shared, per_thread(stream))
STREAM_VARIANT(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags), event,
               per_thread(stream), flags)
STREAM_VARIANT(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event, per_thread(stream))
STREAM_VARIANT(cudaFreeAsync, (void* address, cudaStream_t stream), address, per_thread(stream))
STREAM_VARIANT(cudaGraphLaunch, (cudaGraphExec_t instance, cudaStream_t stream), instance, per_thread(stream))
STREAM_VARIANT(cudaGraphUpload, (cudaGraphExec_t instance, cudaStream_t stream), instance, per_thread(stream))
STREAM_VARIANT(cudaLaunchCooperativeKernel,
               (const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                cudaStream_t stream),
               host, grid, block, arguments, shared, per_thread(stream))
STREAM_VARIANT(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data),
               per_thread(stream), function, data)
STREAM_VARIANT(cudaLaunchHostFunc_v2,
               (cudaStream_t stream, cudaHostFn_t function, void* data, unsigned int mode),
               per_thread(stream), function, data, mode)
STREAM_VARIANT(cudaLaunchKernel,
               (const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                cudaStream_t stream),
               host, grid, block, arguments, shared, per_thread(stream))
STREAM_VARIANT(cudaMallocAsync, (void** address, size_t size, cudaStream_t stream), address, size,
               per_thread(stream))
STREAM_VARIANT(cudaMallocFromPoolAsync,
               (void** address, size_t size, cudaMemPool_t pool, cudaStream_t stream), address, size, pool,
               per_thread(stream))
STREAM_VARIANT(cudaMemDiscardAndPrefetchBatchAsync,
               (void** addresses, size_t* sizes, size_t count, cudaMemLocation* locations, size_t* first_uses,
                size_t location_count, unsigned long long flags, cudaStream_t stream),
               addresses, sizes, count, locations, first_uses, location_count, flags, per_thread(stream))
STREAM_VARIANT(cudaMemDiscardBatchAsync,
               (void** addresses, size_t* sizes, size_t count, unsigned long long flags, cudaStream_t stream),
               addresses, sizes, count, flags, per_thread(stream))
STREAM_VARIANT(v11_cudaMemPrefetchAsync, (const void* address, size_t size, int device, cudaStream_t stream),
               address, size, device, per_thread(stream))
STREAM_VARIANT(cudaMemPrefetchAsync_v2,
               (const void* address, size_t size, cudaMemLocation location, unsigned int flags,
                cudaStream_t stream),
               address, size, location, flags, per_thread(stream))
STREAM_VARIANT(cudaMemPrefetchBatchAsync,
               (void** addresses, size_t* sizes, size_t count, cudaMemLocation* locations, size_t* first_uses,
                size_t location_count, unsigned long long flags, cudaStream_t stream),
               addresses, sizes, count, locations, first_uses, location_count, flags, per_thread(stream))
STREAM_VARIANT(cudaMemcpy2DAsync,
               (void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream),
               destination, destination_pitch, source, source_pitch, width, height, kind, per_thread(stream))
STREAM_VARIANT(cudaMemcpy2DFromArrayAsync,
               (void* destination, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width,
                size_t height, cudaMemcpyKind kind, cudaStream_t stream),
               destination, pitch, array, x, y, width, height, kind, per_thread(stream))
STREAM_VARIANT(cudaMemcpy2DToArrayAsync,
               (cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch, size_t width,
                size_t height, cudaMemcpyKind kind, cudaStream_t stream),
               array, x, y, source, pitch, width, height, kind, per_thread(stream))
STREAM_VARIANT(cudaMemcpy3DAsync, (const cudaMemcpy3DParms* parameters, cudaStream_t stream), parameters,
               per_thread(stream))
STREAM_VARIANT(v12_cudaMemcpy3DBatchAsync,
               (size_t count, cudaMemcpy3DBatchOp* operations, size_t* failed, unsigned long long flags,
                cudaStream_t stream),
               count, operations, failed, flags, per_thread(stream))
STREAM_VARIANT(v13_cudaMemcpy3DBatchAsync,
               (size_t count, cudaMemcpy3DBatchOp* operations, unsigned long long flags, cudaStream_t stream),
               count, operations, flags, per_thread(stream))
STREAM_VARIANT(cudaMemcpy3DPeerAsync, (const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream),
               parameters, per_thread(stream))
STREAM_VARIANT(cudaMemcpy3DWithAttributesAsync,
               (cudaMemcpy3DBatchOp * operation, unsigned long long flags, cudaStream_t stream), operation,
               flags, per_thread(stream))
STREAM_VARIANT(cudaMemcpyAsync,
               (void* destination, const void* source, size_t size, cudaMemcpyKind kind, cudaStream_t stream),
               destination, source, size, kind, per_thread(stream))
STREAM_VARIANT(v12_cudaMemcpyBatchAsync,
               (void** destinations, void** sources, size_t* sizes, size_t count,
                cudaMemcpyAttributes* attributes, size_t* starts, size_t attribute_count, size_t* failed,
                cudaStream_t stream),
               destinations, sources, sizes, count, attributes, starts, attribute_count, failed,
               per_thread(stream))
STREAM_VARIANT(v13_cudaMemcpyBatchAsync,
               (void* const* destinations, const void* const* sources, const size_t* sizes, size_t count,
                cudaMemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
                cudaStream_t stream),
               destinations, sources, sizes, count, attributes, starts, attribute_count, per_thread(stream))
STREAM_VARIANT(cudaMemcpyFromArrayAsync,
               (void* destination, cudaArray_const_t array, size_t x, size_t y, size_t size,
                cudaMemcpyKind kind, cudaStream_t stream),
               destination, array, x, y, size, kind, per_thread(stream))
STREAM_VARIANT(cudaMemcpyFromSymbolAsync,
               (void* destination, const void* symbol, size_t size, size_t offset, cudaMemcpyKind kind,
                cudaStream_t stream),
               destination, symbol, size, offset, kind, per_thread(stream))
STREAM_VARIANT(cudaMemcpyToArrayAsync,
               (cudaArray_t array, size_t x, size_t y, const void* source, size_t size, cudaMemcpyKind kind,
                cudaStream_t stream),
               array, x, y, source, size, kind, per_thread(stream))
STREAM_VARIANT(cudaMemcpyToSymbolAsync,
               (const void* symbol, const void* source, size_t size, size_t offset, cudaMemcpyKind kind,
                cudaStream_t stream),
               symbol, source, size, offset, kind, per_thread(stream))
STREAM_VARIANT(cudaMemcpyWithAttributesAsync,
               (void* destination, const void* source, size_t size, cudaMemcpyAttributes* attributes,
                cudaStream_t stream),
               destination, source, size, attributes, per_thread(stream))
STREAM_VARIANT(cudaMemset2DAsync,
               (void* address, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
               address, pitch, value, width, height, per_thread(stream))
STREAM_VARIANT(cudaMemset3DAsync, (cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream),
               pitched, value, extent, per_thread(stream))
STREAM_VARIANT(cudaMemsetAsync, (void* address, int value, size_t size, cudaStream_t stream), address, value,
               size, per_thread(stream))
STREAM_VARIANT(cudaStreamAddCallback,
               (cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned int flags),
               per_thread(stream), callback, data, flags)
STREAM_VARIANT(cudaStreamAttachMemAsync,
               (cudaStream_t stream, void* address, size_t size, unsigned int flags), per_thread(stream),
               address, size, flags)
STREAM_VARIANT(cudaStreamBeginCaptureToGraph,
               (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode),
               per_thread(stream), graph, dependencies, edges, count, mode)
STREAM_VARIANT(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), per_thread(stream),
               mode)
STREAM_VARIANT(cudaStreamCopyAttributes, (cudaStream_t destination, cudaStream_t source),
               per_thread(destination), per_thread(source))
STREAM_VARIANT(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph), per_thread(stream), graph)
STREAM_VARIANT(cudaStreamGetAttribute,
               (cudaStream_t stream, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue* value),
               per_thread(stream), attribute, value)
STREAM_VARIANT(v11_cudaStreamGetCaptureInfo,
               (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id),
               per_thread(stream), status, id)
STREAM_VARIANT(cudaStreamGetCaptureInfo_v2,
               (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count),
               per_thread(stream), status, id, graph, dependencies, count)
STREAM_VARIANT(cudaStreamGetCaptureInfo_v3,
               (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                size_t* count),
               per_thread(stream), status, id, graph, dependencies, edges, count)
STREAM_VARIANT(cudaStreamGetDevice, (cudaStream_t stream, int* device), per_thread(stream), device)
STREAM_VARIANT(cudaStreamGetFlags, (cudaStream_t stream, unsigned int* flags), per_thread(stream), flags)
STREAM_VARIANT(cudaStreamGetId, (cudaStream_t stream, unsigned long long* id), per_thread(stream), id)
STREAM_VARIANT(cudaStreamGetPriority, (cudaStream_t stream, int* priority), per_thread(stream), priority)
STREAM_VARIANT(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status),
               per_thread(stream), status)
STREAM_VARIANT(cudaStreamQuery, (cudaStream_t stream), per_thread(stream))
STREAM_VARIANT(cudaStreamSetAttribute,
               (cudaStream_t stream, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue* value),
               per_thread(stream), attribute, value)
STREAM_VARIANT(cudaStreamSynchronize, (cudaStream_t stream), per_thread(stream))
STREAM_VARIANT(v11_cudaStreamUpdateCaptureDependencies,
               (cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count, unsigned int flags),
               per_thread(stream), dependencies, count, flags)
STREAM_VARIANT(cudaStreamUpdateCaptureDependencies_v2,
               (cudaStream_t stream, cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                size_t count, unsigned int flags),
               per_thread(stream), dependencies, edges, count, flags)
STREAM_VARIANT(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
               per_thread(stream), event, flags)

COPY_VARIANT(cudaMemcpy2DFromArray,
             (void* destination, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width,
              size_t height, cudaMemcpyKind kind),
             destination, pitch, array, x, y, width, height, kind)
COPY_VARIANT(cudaMemcpy2DToArray,
             (cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch, size_t width,
              size_t height, cudaMemcpyKind kind),
             array, x, y, source, pitch, width, height, kind)
COPY_VARIANT(cudaMemcpy2D,
             (void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
              size_t width, size_t height, cudaMemcpyKind kind),
             destination, destination_pitch, source, source_pitch, width, height, kind)
COPY_VARIANT(cudaMemcpy3DPeer, (const cudaMemcpy3DPeerParms* parameters), parameters)
COPY_VARIANT(cudaMemcpy3D, (const cudaMemcpy3DParms* parameters), parameters)
COPY_VARIANT(cudaMemcpyFromArray,
             (void* destination, cudaArray_const_t array, size_t x, size_t y, size_t size,
              cudaMemcpyKind kind),
             destination, array, x, y, size, kind)
COPY_VARIANT(cudaMemcpyFromSymbol,
             (void* destination, const void* symbol, size_t size, size_t offset, cudaMemcpyKind kind),
             destination, symbol, size, offset, kind)
COPY_VARIANT(cudaMemcpyToArray,
             (cudaArray_t array, size_t x, size_t y, const void* source, size_t size, cudaMemcpyKind kind),
             array, x, y, source, size, kind)
COPY_VARIANT(cudaMemcpyToSymbol,
             (const void* symbol, const void* source, size_t size, size_t offset, cudaMemcpyKind kind),
             symbol, source, size, offset, kind)
COPY_VARIANT(cudaMemcpy, (void* destination, const void* source, size_t size, cudaMemcpyKind kind),
             destination, source, size, kind)

// The host need not wait for these.
cudaError_t cudaMemset2D_ptds(void* address, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(address, pitch, value, width, height, cudaStreamPerThread);
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr pitched, int value, cudaExtent extent) {
  return cudaMemset3DAsync(pitched, value, extent, cudaStreamPerThread);
}
cudaError_t cudaMemset_ptds(void* address, int value, size_t size) {
  return cudaMemsetAsync(address, value, size, cudaStreamPerThread);
}

// Copies between arrays have no asynchronous form: wait for the thread's queued work first.
cudaError_t cudaMemcpy2DArrayToArray_ptds(cudaArray_t destination, size_t to_x, size_t to_y,
                                          cudaArray_const_t source, size_t from_x, size_t from_y,
                                          size_t width, size_t height, cudaMemcpyKind kind) {
  const cudaError_t error = cudaStreamSynchronize(cudaStreamPerThread);
  return error == cudaSuccess
             ? cudaMemcpy2DArrayToArray(destination, to_x, to_y, source, from_x, from_y, width, height, kind)
             : error;
}
cudaError_t cudaMemcpyArrayToArray_ptds(cudaArray_t destination, size_t to_x, size_t to_y,
                                        cudaArray_const_t source, size_t from_x, size_t from_y, size_t size,
                                        cudaMemcpyKind kind) {
  const cudaError_t error = cudaStreamSynchronize(cudaStreamPerThread);
  return error == cudaSuccess
             ? cudaMemcpyArrayToArray(destination, to_x, to_y, source, from_x, from_y, size, kind)
             : error;
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* host, void** arguments) {
  if (!config) return cudaLaunchKernelExC(config, host, arguments);
  cudaLaunchConfig_t own = *config;
  own.stream = per_thread(own.stream);
  return cudaLaunchKernelExC(&own, host, arguments);
}

cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* instance, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* parameters) {
  if (parameters) parameters->uploadStream = per_thread(parameters->uploadStream);
  return cudaGraphInstantiateWithParams(instance, graph, parameters);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function, unsigned int version,
                                                  unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, version, per_thread(flags), status);
}
cudaError_t v11_cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long flags) {
  return v11_cudaGetDriverEntryPoint(symbol, function, per_thread(flags));
}
cudaError_t v12_cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  return v12_cudaGetDriverEntryPoint(symbol, function, per_thread(flags), status);
}

}  // extern "C"
