// Functions that CUDA 12's headers do not declare: those of CUDA 13, those called by compiler-generated host
// code, and those whose interface differs between versions. The latter are named v11_, v12_ or v13_ after the
// first version with that interface; each library exports its own under the plain name (CMakeLists.txt).
#pragma once

#include <cuda_runtime_api.h>

extern "C" {

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream);
cudaError_t v11_cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags);
cudaError_t v12_cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                        cudaDriverEntryPointQueryResult* status);
cudaError_t cudaLaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t function, void* data, unsigned int mode);
cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** addresses, size_t* sizes, size_t count,
                                                cudaMemLocation* locations, size_t* first_uses,
                                                size_t location_count, unsigned long long flags,
                                                cudaStream_t stream);
cudaError_t cudaMemDiscardBatchAsync(void** addresses, size_t* sizes, size_t count, unsigned long long flags,
                                     cudaStream_t stream);
cudaError_t v11_cudaMemPrefetchAsync(const void* address, size_t size, int device, cudaStream_t stream);
cudaError_t cudaMemPrefetchBatchAsync(void** addresses, size_t* sizes, size_t count,
                                      cudaMemLocation* locations, size_t* first_uses, size_t location_count,
                                      unsigned long long flags, cudaStream_t stream);
cudaError_t v12_cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* operations, size_t* failed,
                                       unsigned long long flags, cudaStream_t stream);
cudaError_t v13_cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* operations,
                                       unsigned long long flags, cudaStream_t stream);
cudaError_t cudaMemcpy3DWithAttributesAsync(cudaMemcpy3DBatchOp* operation, unsigned long long flags,
                                            cudaStream_t stream);
cudaError_t v12_cudaMemcpyBatchAsync(void** destinations, void** sources, size_t* sizes, size_t count,
                                     cudaMemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
                                     size_t* failed, cudaStream_t stream);
cudaError_t v13_cudaMemcpyBatchAsync(void* const* destinations, const void* const* sources,
                                     const size_t* sizes, size_t count, cudaMemcpyAttributes* attributes,
                                     size_t* starts, size_t attribute_count, cudaStream_t stream);
cudaError_t cudaMemcpyWithAttributesAsync(void* destination, const void* source, size_t size,
                                          cudaMemcpyAttributes* attributes, cudaStream_t stream);
cudaError_t v11_cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                         unsigned long long* id);
cudaError_t v11_cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                    size_t count, unsigned int flags);

}  // extern "C"
