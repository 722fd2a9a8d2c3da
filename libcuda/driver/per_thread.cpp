#include <type_traits>

#include "process.hpp"

// Variants of functions for programs compiled with per-thread default streams (nvcc --default-stream
// per-thread): the same functions, but stream 0 is the thread's own.

namespace simt::driver {
namespace {

/// Makes the thread's own default stream the default for functions without a stream argument.
struct OwnDefault {
  OwnDefault() { Thread::get().own_default = true; }
  ~OwnDefault() { Thread::get().own_default = false; }
  OwnDefault(const OwnDefault&) = delete;
  OwnDefault& operator=(const OwnDefault&) = delete;
};

template <class T>
T own(T argument) {
  if constexpr (std::is_same_v<T, CUstream>)
    return argument ? argument : CU_STREAM_PER_THREAD;
  else
    return argument;
}

template <class Function>
struct Form;

template <class... Arguments>
struct Form<CUresult(Arguments...)> {
  template <CUresult (*function)(Arguments...)>
  static CUresult call(Arguments... arguments) {
    if constexpr ((std::is_same_v<Arguments, CUstream> || ...)) {
      return function(own(arguments)...);
    } else {
      const OwnDefault here;
      return function(arguments...);
    }
  }
};

}  // namespace
}  // namespace simt::driver

// The linker defines aliases, so that parameter lists need not be repeated.
#define FORM(name, suffix)                                                                                 \
  extern "C" {                                                                                             \
  static auto* find_##name##_##suffix() {                                                                  \
    return &simt::driver::Form<decltype(name)>::call<&name>;                                               \
  }                                                                                                        \
  __attribute__((visibility("default"), ifunc("find_" #name "_" #suffix))) decltype(name) name##_##suffix; \
  }

// clang-format off
FORM(cuEventRecordWithFlags, ptsz)
FORM(cuEventRecord, ptsz)
FORM(cuGraphInstantiateWithParams, ptsz)
FORM(cuGraphLaunch, ptsz)
FORM(cuGraphUpload, ptsz)
FORM(cuLaunchCooperativeKernel, ptsz)
FORM(cuLaunchHostFunc, ptsz)
FORM(cuLaunchKernelEx, ptsz)
FORM(cuLaunchKernel, ptsz)
FORM(cuMemAllocAsync, ptsz)
FORM(cuMemAllocFromPoolAsync, ptsz)
FORM(cuMemFreeAsync, ptsz)
FORM(cuMemPrefetchAsync, ptsz)
FORM(cuMemPrefetchAsync_v2, ptsz)
FORM(cuMemcpy2DAsync_v2, ptsz)
FORM(cuMemcpy2DUnaligned_v2, ptds)
FORM(cuMemcpy2D_v2, ptds)
FORM(cuMemcpy3DAsync_v2, ptsz)
FORM(cuMemcpy3DPeerAsync, ptsz)
FORM(cuMemcpy3DPeer, ptds)
FORM(cuMemcpy3D_v2, ptds)
FORM(cuMemcpyAsync, ptsz)
FORM(cuMemcpyAtoA_v2, ptds)
FORM(cuMemcpyAtoD_v2, ptds)
FORM(cuMemcpyAtoHAsync_v2, ptsz)
FORM(cuMemcpyAtoH_v2, ptds)
FORM(cuMemcpyBatchAsync, ptsz)
FORM(cuMemcpyDtoA_v2, ptds)
FORM(cuMemcpyDtoDAsync_v2, ptsz)
FORM(cuMemcpyDtoD_v2, ptds)
FORM(cuMemcpyDtoHAsync_v2, ptsz)
FORM(cuMemcpyDtoH_v2, ptds)
FORM(cuMemcpyHtoAAsync_v2, ptsz)
FORM(cuMemcpyHtoA_v2, ptds)
FORM(cuMemcpyHtoDAsync_v2, ptsz)
FORM(cuMemcpyHtoD_v2, ptds)
FORM(cuMemcpyPeerAsync, ptsz)
FORM(cuMemcpyPeer, ptds)
FORM(cuMemcpy, ptds)
FORM(cuMemsetD16Async, ptsz)
FORM(cuMemsetD16_v2, ptds)
FORM(cuMemsetD2D16Async, ptsz)
FORM(cuMemsetD2D16_v2, ptds)
FORM(cuMemsetD2D32Async, ptsz)
FORM(cuMemsetD2D32_v2, ptds)
FORM(cuMemsetD2D8Async, ptsz)
FORM(cuMemsetD2D8_v2, ptds)
FORM(cuMemsetD32Async, ptsz)
FORM(cuMemsetD32_v2, ptds)
FORM(cuMemsetD8Async, ptsz)
FORM(cuMemsetD8_v2, ptds)
FORM(cuStreamAddCallback, ptsz)
FORM(cuStreamAttachMemAsync, ptsz)
FORM(cuStreamBatchMemOp_v2, ptsz)
FORM(cuStreamBeginCaptureToGraph, ptsz)
FORM(cuStreamBeginCapture_v2, ptsz)
FORM(cuStreamCopyAttributes, ptsz)
FORM(cuStreamEndCapture, ptsz)
FORM(cuStreamGetAttribute, ptsz)
FORM(cuStreamGetCaptureInfo_v2, ptsz)
FORM(cuStreamGetCaptureInfo_v3, ptsz)
FORM(cuStreamGetCtx, ptsz)
FORM(cuStreamGetCtx_v2, ptsz)
FORM(cuStreamGetDevice, ptsz)
FORM(cuStreamGetFlags, ptsz)
FORM(cuStreamGetId, ptsz)
FORM(cuStreamGetPriority, ptsz)
FORM(cuStreamIsCapturing, ptsz)
FORM(cuStreamQuery, ptsz)
FORM(cuStreamSetAttribute, ptsz)
FORM(cuStreamSynchronize, ptsz)
FORM(cuStreamUpdateCaptureDependencies, ptsz)
FORM(cuStreamUpdateCaptureDependencies_v2, ptsz)
FORM(cuStreamWaitEvent, ptsz)
FORM(cuStreamWaitValue32_v2, ptsz)
FORM(cuStreamWaitValue64_v2, ptsz)
FORM(cuStreamWriteValue32_v2, ptsz)
FORM(cuStreamWriteValue64_v2, ptsz)
// clang-format on
