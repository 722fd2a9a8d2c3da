#include <dlfcn.h>

#include <cstdint>
#include <thread>

#include "driver.hpp"

// Ranges of NVTX, version 3, in a client written after its public interface: a program's first call loads the
// library that NVTX_INJECTION64_PATH names, and lets it set the functions of each module. Launches are
// numbered from 1, and on a second device, if there is one, likewise.

namespace {

using Function = void (*)();
Function core[16], domains[16];
Function *core_places[16], *domain_places[16];

int table_of(int module, Function*** table, unsigned* count) {
  if (module != 1 && module != 5) return 0;
  *table = module == 1 ? core_places : domain_places;
  *count = 16;
  return 1;
}
const struct {
  size_t size;
  int (*table)(int, Function***, unsigned*);
} callbacks = {sizeof callbacks, table_of};
const void* exported(uint32_t number) {
  return number == 1 ? &callbacks : nullptr;
}

template <class Result, class... Arguments>
Result call(Function function, Arguments... arguments) {
  CHECK(function != nullptr);
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

struct Event {
  uint16_t version = 3, size = 48;
  uint32_t category = 0;
  int32_t color_type = 0;
  uint32_t color = 0;
  int32_t payload_type = 0, reserved = 0;
  uint64_t payload = 0;
  int32_t message_type;
  const void* message;
  Event(int32_t type, const void* text) : message_type(type), message(text) {}
};

}  // namespace

int main() {
  for (int i = 0; i < 16; ++i) {
    core_places[i] = &core[i];
    domain_places[i] = &domains[i];
  }
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  CHECK(path != nullptr);
  void* library = dlopen(path, RTLD_LAZY);
  CHECK(library != nullptr);
  const auto start_nvtx =
      reinterpret_cast<int (*)(const void* (*)(uint32_t))>(dlsym(library, "InitializeInjectionNvtx2"));
  CHECK(start_nvtx && start_nvtx(exported) == 1);

  // Before the first call of CUDA.
  const auto warm = call<uint64_t>(core[5], "warm-up");
  const Gpu gpu;
  const CUdeviceptr memory = allocate(64);
  Affine step(memory, 64, 1, 1);
  const auto launch = [&] { OK(step.launch(gpu, nullptr)); };
  launch();  // 1
  call<void>(core[7], warm);
  launch();  // 2

  CHECK(call<int>(core[9], "decode") == 0);
  CHECK(call<int>(core[10], L"att\u00e9ntion") == 1);
  launch();                                                      // 3
  std::thread([] { CHECK(call<int>(core[11]) == -1); }).join();  // its own stack is empty
  CHECK(call<int>(core[11]) == 1);
  launch();  // 4

  const auto domain = call<const void*>(domains[12], "library");
  const auto name = call<const void*>(domains[10], domain, "gemm 128");
  const Event registered(3, name), plain(1, "step");
  CHECK(call<int>(domains[4], domain, &registered) == 0);  // a stack of its own
  launch();                                                // 5
  CHECK(call<int>(core[11]) == 0);                         // "decode"
  launch();                                                // 6
  CHECK(call<int>(domains[5], domain) == 0);
  CHECK(call<int>(domains[5], domain) == -1);
  const auto first = call<uint64_t>(domains[2], domain, &plain), second = call<uint64_t>(core[4], &plain);
  CHECK(first != second);
  call<void>(domains[3], domain, first);
  launch();  // 7
  call<void>(core[7], second);
  call<void>(core[7], second);
  CHECK(call<int>(core[8], &plain) == 0);
  CHECK(call<int>(core[11]) == 0);
  launch();  // 8

  int devices = 0;
  OK(cuDeviceGetCount(&devices));
  if (devices > 1) {
    CHECK(call<int>(core[9], "decode") == 0);
    CUdevice other;
    CUcontext context;
    OK(cuDeviceGet(&other, 1));
    OK(cuDevicePrimaryCtxRetain(&context, other));
    OK(cuCtxSetCurrent(context));
    const CUfunction affine = function(load(kernels), "affine");
    Affine there(allocate(64), 64, 1, 1);
    OK(cuLaunchKernel(affine, 1, 1, 1, 64, 1, 1, 0, nullptr, there.pointers, nullptr));  // 1 of that device
    CHECK(call<int>(core[11]) == 0);
    OK(cuLaunchKernel(affine, 1, 1, 1, 64, 1, 1, 0, nullptr, there.pointers, nullptr));
    OK(cuCtxSynchronize());
    OK(cuCtxSetCurrent(gpu.context));
  }
  OK(cuCtxSynchronize());
  std::vector<unsigned> found(64);
  OK(cuMemcpyDtoH(found.data(), memory, 256));
  for (const unsigned value : found) CHECK(value == 8);
  std::puts("passed");
}
