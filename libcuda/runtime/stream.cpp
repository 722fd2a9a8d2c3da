// Streams and capture. A stream has the same handle as in the driver API, including the default streams 0, 1
// and 2.
#include "runtime.hpp"
#include "versions.hpp"

namespace runtime {
namespace {

cudaError_t device_of(cudaStream_t stream, int* device) {
  CUcontext context = nullptr;
  RUNTIME_TRY(cuStreamGetCtx(stream, &context));
  RUNTIME_TRY(cuCtxPushCurrent(context));
  const CUresult result = cuCtxGetDevice(device);
  RUNTIME_TRY(cuCtxPopCurrent(&context));
  return to_error(result);
}

// The callback expects a cudaError_t but gets a CUresult; both have the same values.
cudaError_t add_callback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned int flags) {
  return to_error(cuStreamAddCallback(stream, reinterpret_cast<CUstreamCallback>(callback), data, flags));
}

cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count) {
  cuuint64_t driver_id = 0;
  RUNTIME_TRY(forward(cuStreamGetCaptureInfo, stream, status, &driver_id, graph, dependencies, count));
  if (id) *id = driver_id;
  return cudaSuccess;
}

cudaError_t capture_info_with_edges(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                    unsigned long long* id, cudaGraph_t* graph,
                                    const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                    size_t* count) {
  cuuint64_t driver_id = 0;
  const auto driver_edges = reinterpret_cast<const CUgraphEdgeData**>(edges);
  RUNTIME_TRY(forward(cuStreamGetCaptureInfo_v3, stream, status, &driver_id, graph, dependencies,
                      driver_edges, count));
  if (id) *id = driver_id;
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using runtime::call;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return call(cuStreamCreate, stream, static_cast<unsigned int>(CU_STREAM_DEFAULT));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return call(cuStreamCreate, stream, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return call(cuStreamCreateWithPriority, stream, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call(cuStreamDestroy, stream);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call(cuStreamQuery, stream);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call(cuStreamSynchronize, stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return call(cuStreamWaitEvent, stream, event, flags);
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int flags) {
  return call(runtime::add_callback, stream, callback, data, flags);
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* address, size_t size, unsigned int flags) {
  return call(cuStreamAttachMemAsync, stream, address, size, flags);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call(cuStreamGetPriority, stream, priority);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return call(cuStreamGetFlags, stream, flags);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return call(cuStreamGetId, stream, id);
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call(runtime::device_of, stream, device);
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t destination, cudaStream_t source) {
  return call(cuStreamCopyAttributes, destination, source);
}
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
  return call(cuStreamGetAttribute, stream, attribute, value);
}
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
  return call(cuStreamSetAttribute, stream, attribute, value);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call(cuStreamBeginCapture, stream, mode);
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                                          size_t count, cudaStreamCaptureMode mode) {
  return call(cuStreamBeginCaptureToGraph, stream, graph, dependencies, edges, count, mode);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call(cuStreamEndCapture, stream, graph);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call(cuStreamIsCapturing, stream, status);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call(cuThreadExchangeStreamCaptureMode, mode);
}
cudaError_t v11_cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                         unsigned long long* id) {
  return call(runtime::capture_info, stream, status, id, nullptr, nullptr, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies, size_t* count) {
  return call(runtime::capture_info, stream, status, id, graph, dependencies, count);
}
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                        size_t* count) {
  return call(runtime::capture_info_with_edges, stream, status, id, graph, dependencies, edges, count);
}
cudaError_t v11_cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                    size_t count, unsigned int flags) {
  return call(cuStreamUpdateCaptureDependencies, stream, dependencies, count, flags);
}
cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                   const cudaGraphEdgeData* edges, size_t count,
                                                   unsigned int flags) {
  return call(cuStreamUpdateCaptureDependencies_v2, stream, dependencies, edges, count, flags);
}

}  // extern "C"
