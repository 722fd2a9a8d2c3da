#include "process.hpp"

// Several copies in one call, equivalent to separate calls.

using namespace simt::driver;

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                            CUmemcpyAttributes*, size_t*, size_t, size_t* failed, CUstream stream) {
  if (!to || !from || !bytes || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t k = 0; k < count; ++k) {
    const CUresult code = cuMemcpyAsync(to[k], from[k], bytes[k], stream);
    if (code == CUDA_SUCCESS) continue;
    if (failed) *failed = k;
    return code;
  }
  return CUDA_SUCCESS;
}

#define EXPORTED extern "C" __attribute__((visibility("default")))

// CUDA 13 does not report which copy failed.

EXPORTED CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                        CUmemcpyAttributes* attributes, size_t* places, size_t kinds,
                                        CUstream stream) {
  return cuMemcpyBatchAsync(to, from, bytes, count, attributes, places, kinds, nullptr, stream);
}

EXPORTED CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                             CUmemcpyAttributes* attributes, size_t* places, size_t kinds,
                                             CUstream stream) {
  return cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, places, kinds,
                               stream ? stream : CU_STREAM_PER_THREAD);
}
