#include <cstdint>
#include <cstring>
#include <vector>

#include "driver.hpp"

// Two devices in one address space: copies, memory that kernels of both access, and permissions.

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
  void launch(unsigned first) { launch(first, memory); }
  void launch(unsigned first, CUdeviceptr to, CUstream stream = nullptr) {
    OK(cuCtxSetCurrent(context));
    void* arguments[] = {&to, &first};
    OK(cuLaunchKernel(number, 1, 1, 1, count, 1, 1, 0, stream, arguments, nullptr));
  }
};

void check(const unsigned* values, unsigned first) {
  for (unsigned k = 0; k < count; ++k) CHECK(values[k] == first + k);
}

/// Memory of the host and managed memory, made in a context of `a`, is written by a kernel of `b`.
void memory_of_both(OnDevice& a, OnDevice& b) {
  OK(cuCtxSetCurrent(a.context));
  CUdeviceptr managed, device_address;
  OK(cuMemAllocManaged(&managed, count * 4, CU_MEM_ATTACH_GLOBAL));
  void* pinned;
  OK(cuMemHostAlloc(&pinned, count * 4, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  std::vector<unsigned> own(2 * count);
  OK(cuMemHostRegister(own.data(), own.size() * 4, CU_MEMHOSTREGISTER_PORTABLE));
  b.launch(500, managed);
  OK(cuCtxSynchronize());
  check(reinterpret_cast<const unsigned*>(managed), 500);
  OK(cuMemHostGetDevicePointer(&device_address, pinned, 0));
  b.launch(600, device_address);
  OK(cuMemHostGetDevicePointer(&device_address, own.data() + count, 0));
  b.launch(700, device_address);
  OK(cuCtxSynchronize());
  check(static_cast<const unsigned*>(pinned), 600);
  check(own.data() + count, 700);
  OK(cuMemHostUnregister(own.data()));
  OK(cuMemFreeHost(pinned));
  OK(cuMemFree(managed));
}

/// A memset and a kernel's stores in the other device's memory, in the order that events give.
void in_order(OnDevice& a, OnDevice& b) {
  CUevent done;
  CUstream stream;
  OK(cuCtxSetCurrent(a.context));
  OK(cuEventCreate(&done, 0));
  a.launch(10, b.memory);
  OK(cuEventRecord(done, nullptr));
  OK(cuCtxSetCurrent(b.context));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamWaitEvent(stream, done, 0));
  std::vector<unsigned> host(count);
  OK(cuMemcpyDtoHAsync(host.data(), b.memory, count * 4, stream));
  OK(cuStreamSynchronize(stream));
  check(host.data(), 10);
  OK(cuCtxSetCurrent(a.context));
  OK(cuMemsetD32(b.memory, 3, count));
  OK(cuMemcpyDtoH(host.data(), b.memory, count * 4));
  for (const unsigned value : host) CHECK(value == 3);
  OK(cuStreamDestroy(stream));
  OK(cuEventDestroy(done));
}

/// A pool that is open to the other device.
void pool_of_both(OnDevice& a, OnDevice& b) {
  OK(cuCtxSetCurrent(a.context));
  CUmemoryPool pool;
  CUdeviceptr before, after;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  OK(cuMemAllocAsync(&before, count * 4, nullptr));
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuMemPoolSetAccess(pool, &access, 1));
  CUmemAccess_flags flags;
  OK(cuMemPoolGetAccess(&flags, pool, &access.location));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemAllocAsync(&after, count * 4, nullptr));
  OK(cuCtxSynchronize());
  std::vector<unsigned> host(count);
  for (const CUdeviceptr memory : {before, after}) {
    b.launch(800, memory);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(host.data(), memory, count * 4));
    check(host.data(), 800);
    OK(cuMemFree(memory));
  }
}

}  // namespace

int main() {
  OK(cuInit(0));
  int devices = 0, can = 1;
  OK(cuDeviceGetCount(&devices));
  CHECK(devices == 2);
  OK(cuDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  OK(cuDeviceCanAccessPeer(&can, 1, 1));
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
  memory_of_both(a, b);
  FAILS(PEER_ACCESS_NOT_ENABLED, (cuCtxSetCurrent(a.context), cuCtxDisablePeerAccess(b.context)));
  FAILS(PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(a.context, 0));
  OK(cuCtxEnablePeerAccess(b.context, 0));
  FAILS(PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(b.context, 0));
  in_order(a, b);
  pool_of_both(a, b);
  // Permission is given in one direction, and taken back: then it is an illegal address.
  OK(cuCtxSetCurrent(a.context));
  OK(cuCtxDisablePeerAccess(b.context));
  a.launch(900, b.memory);
  FAILS(ILLEGAL_ADDRESS, cuCtxSynchronize());
  std::puts("passed");
}
