#include <cstdint>
#include <vector>

#include "driver.hpp"

// The times of kernels of device 0 in its own memory, in device 1's, and in the host's memory that device 1
// holds: of each load of a chain, and of 8 MiB that all SMs read, write, or add to; in nanoseconds.

namespace {

const char* const ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry chase(.param .u64 at, .param .u32 n) {
  .reg .pred %q; .reg .b32 %n; .reg .b64 %a;
  ld.param.u64 %a, [at]; ld.param.u32 %n, [n];
LOOP: ld.global.u64 %a, [%a]; sub.u32 %n, %n, 1; setp.ne.u32 %q, %n, 0; @%q bra LOOP;
  setp.ne.u64 %q, %a, 0; @%q bra DONE; trap;
DONE: ret; }
.visible .entry load(.param .u64 at, .param .u32 n) {
  .reg .pred %q; .reg .b32 %n, %i, %c, %t, %v<4>; .reg .b64 %a, %o;
  ld.param.u64 %a, [at]; ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %c, %t;
  mul.wide.u32 %o, %i, 16; add.u64 %a, %a, %o;
  ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a];
  or.b32 %v0, %v0, %v1; or.b32 %v0, %v0, %v2; setp.ne.u32 %q, %v0, 12345; @%q bra DONE;
  st.global.u32 [%a], %v3;
DONE: ret; }
.visible .entry store(.param .u64 at, .param .u32 n) {
  .reg .b32 %i, %c, %t; .reg .b64 %a, %o;
  ld.param.u64 %a, [at];
  mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %c, %t;
  mul.wide.u32 %o, %i, 16; add.u64 %a, %a, %o;
  st.global.v4.u32 [%a], {%i, %i, %i, %i};
  ret; }
.visible .entry add(.param .u64 at, .param .u32 n) {
  .reg .b32 %i, %c, %t; .reg .b64 %a, %o;
  ld.param.u64 %a, [at];
  mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %c, %t;
  mul.wide.u32 %o, %i, 16; add.u64 %a, %a, %o;
  red.global.add.u32 [%a], 1;
  ret; }
)";

constexpr size_t step = 256, steps = 2000, bytes = 16 << 20, block = 256;
CUevent begin, end;

double time_of(CUfunction kernel, CUdeviceptr at, unsigned ctas, unsigned threads, unsigned n) {
  void* arguments[] = {&at, &n};
  float milliseconds = 0;
  OK(cuEventRecord(begin, nullptr));
  OK(cuLaunchKernel(kernel, ctas, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr));
  OK(cuEventRecord(end, nullptr));
  OK(cuEventSynchronize(end));
  OK(cuEventElapsedTime(&milliseconds, begin, end));
  return 1e6 * milliseconds;
}

}  // namespace

int main() {
  OK(cuInit(0));
  CUcontext contexts[2];
  for (int i = 0; i < 2; ++i) {
    CUdevice device;
    OK(cuDeviceGet(&device, i));
    OK(cuDevicePrimaryCtxRetain(&contexts[i], device));
  }
  CUdeviceptr own, other, managed;
  OK(cuCtxSetCurrent(contexts[1]));
  OK(cuMemAlloc(&other, bytes));
  OK(cuMemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL));
  OK(cuCtxSetCurrent(contexts[0]));
  OK(cuMemAlloc(&own, bytes));
  OK(cuCtxEnablePeerAccess(contexts[1], 0));
  CUmodule module;
  OK(cuModuleLoadData(&module, ptx));
  OK(cuEventCreate(&begin, 0));
  OK(cuEventCreate(&end, 0));
  const auto kernel = [&](const char* name) {
    CUfunction found;
    OK(cuModuleGetFunction(&found, module, name));
    return found;
  };
  struct Place {
    const char* name;
    CUdeviceptr at;
  };
  for (const auto& [name, at] : {Place{"own", own}, {"other", other}, {"managed", managed}}) {
    std::vector<uint64_t> chain(steps * step / 8);
    for (size_t i = 0; i < steps; ++i) chain[i * step / 8] = at + (i + 1) % steps * step;
    OK(cuMemcpyHtoD(at, chain.data(), chain.size() * 8));
    const double few = time_of(kernel("chase"), at, 1, 1, steps / 2);
    std::printf("chase_%s %.3f\n", name, (time_of(kernel("chase"), at, 1, 1, steps) - few) / (steps / 2));
    if (at == managed) continue;
    for (const char* const what : {"load", "store", "add"}) {
      const unsigned ctas = bytes / 16 / block;
      const double half = time_of(kernel(what), at, ctas / 2, block, 0);
      std::printf("%s_%s %.3f\n", what, name, time_of(kernel(what), at, ctas, block, 0) - half);
    }
    unsigned last = 0;  // each thread's own number, and two additions in the first half
    OK(cuMemcpyDtoH(&last, at + bytes - 16, 4));
    CHECK(last == bytes / 16 - 1 + 1);
    OK(cuMemcpyDtoH(&last, at + 16, 4));
    CHECK(last == 1 + 2);
  }
  OK(cuMemcpyDtoD(other, own, bytes));
  OK(cuMemcpyDtoD(own, other, bytes));
  OK(cuCtxSynchronize());
  std::puts("passed");
}
