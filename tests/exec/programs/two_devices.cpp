#include <cstdint>
#include <cstring>
#include <vector>

#include "check.hpp"

// Two devices: each with memory and kernels of its own; copies between them go through the host.

namespace {

const char* const ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry number(.param .u64 out, .param .u32 first) {
  .reg .b64 %o, %i; .reg .b32 %n, %f;
  ld.param.u64 %o, [out]; ld.param.u32 %f, [first];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 4; add.u64 %o, %o, %i;
  add.u32 %n, %n, %f; st.global.u32 [%o], %n;
  ret; }
)";

constexpr unsigned count = 64;

struct OnDevice {
  CUcontext context;
  CUfunction number;
  CUdeviceptr memory;

  explicit OnDevice(int ordinal) {
    CUdevice device;
    OK(cuDeviceGet(&device, ordinal));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    CUmodule module;
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&number, module, "number"));
    OK(cuMemAlloc(&memory, count * 4));
  }
  void launch(unsigned first) {
    OK(cuCtxSetCurrent(context));
    void* arguments[] = {&memory, &first};
    OK(cuLaunchKernel(number, 1, 1, 1, count, 1, 1, 0, nullptr, arguments, nullptr));
  }
};

}  // namespace

int main() {
  OK(cuInit(0));
  int devices = 0, can = 1;
  OK(cuDeviceGetCount(&devices));
  CHECK(devices == 2);
  OK(cuDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 0);
  CUuuid first, second;
  OK(cuDeviceGetUuid(&first, 0));
  OK(cuDeviceGetUuid(&second, 1));
  CHECK(std::memcmp(&first, &second, sizeof first) != 0);
  OnDevice a(0), b(1);
  CHECK(a.memory != b.memory);
  a.launch(100);
  b.launch(200);
  std::vector<unsigned> host(count);
  OK(cuMemcpyDtoH(host.data(), b.memory, count * 4));
  for (unsigned k = 0; k < count; ++k) CHECK(host[k] == 200 + k);
  a.launch(300);
  OK(cuMemcpyPeer(b.memory, b.context, a.memory, a.context, count * 4));
  OK(cuMemcpyDtoH(host.data(), b.memory, count * 4));
  for (unsigned k = 0; k < count; ++k) CHECK(host[k] == 300 + k);
  a.launch(400);
  OK(cuMemcpyPeerAsync(b.memory, b.context, a.memory, a.context, count * 4, nullptr));
  OK(cuCtxSynchronize());
  OK(cuCtxSetCurrent(b.context));
  OK(cuMemcpyDtoH(host.data(), b.memory, count * 4));
  for (unsigned k = 0; k < count; ++k) CHECK(host[k] == 400 + k);
  CUdevice of_pointer = -1;
  OK(cuPointerGetAttribute(&of_pointer, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b.memory));
  CHECK(of_pointer == 1);
  std::puts("passed");
}
