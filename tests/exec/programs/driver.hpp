#pragma once
#include "check.hpp"

// Kernels, and what programs about streams and graphs share.

#define FAILS(code, call) RETURNS(call, CUDA_ERROR_##code)

/// p[i] = p[i] * a + b for i < n; and a kernel that counts to n in one CTA and writes it to p[0].
inline const char* const kernels = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry affine(.param .u64 p, .param .u32 n, .param .u32 a, .param .u32 b) {
  .reg .pred %q; .reg .b32 %r<8>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [a]; ld.param.u32 %r3, [b];
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x; mad.lo.u32 %r4, %r4, %r5, %r6;
  setp.ge.u32 %q, %r4, %r1; @%q bra DONE;
  mul.wide.u32 %d2, %r4, 4; add.u64 %d1, %d1, %d2;
  ld.global.u32 %r7, [%d1]; mad.lo.u32 %r7, %r7, %r2, %r3; st.global.u32 [%d1], %r7;
DONE: ret; }
.visible .entry count(.param .u64 p, .param .u32 n) {
  .reg .pred %q; .reg .b32 %r<3>; .reg .b64 %d<2>;
  ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;
LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %q, %r2, %r1; @%q bra LOOP;
  st.global.u32 [%d1], %r2; ret; }
)";

/// A context with the kernels in it.
struct Gpu {
  CUdevice device = start();
  CUmodule module = load(kernels);
  CUfunction affine = function(module, "affine"), count = function(module, "count");
  CUcontext context = nullptr;
  Gpu() { OK(cuCtxGetCurrent(&context)); }
};

/// `affine` over an array, with its arguments.
struct Affine {
  CUdeviceptr p;
  unsigned n, a, b;
  void* pointers[4] = {&p, &n, &a, &b};
  Affine(CUdeviceptr array, unsigned count, unsigned factor, unsigned term)
      : p(array), n(count), a(factor), b(term) {}
  CUresult launch(const Gpu& gpu, CUstream stream) {
    return cuLaunchKernel(gpu.affine, (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream, pointers, nullptr);
  }
  CUDA_KERNEL_NODE_PARAMS node(const Gpu& gpu) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = gpu.affine;
    node.gridDimX = (n + 63) / 64;
    node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 64;
    node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = pointers;
    return node;
  }
};

/// Zeroed memory.
inline CUdeviceptr allocate(size_t words) {
  CUdeviceptr address = 0;
  OK(cuMemAlloc(&address, words * 4));
  OK(cuMemsetD32(address, 0, words));
  OK(cuCtxSynchronize());  // streams that do not block do not wait for the fill
  return address;
}

inline unsigned word(CUdeviceptr address) {
  unsigned value = 0;
  OK(cuMemcpyDtoH(&value, address, 4));
  return value;
}

inline CUDA_MEMCPY3D copy_node(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}
