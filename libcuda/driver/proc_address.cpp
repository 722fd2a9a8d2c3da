#include <dlfcn.h>

#include <array>
#include <cstring>
#include <string>

#include "process.hpp"

// The functions of this library, by name and by the version of CUDA a program was compiled for.

using namespace simt::driver;

namespace {

/// Functions whose second, third, ... version was introduced with these CUDA versions, if later than 3.2.
/// They are named name, name_v2, name_v3, ...
struct Forms {
  const char* name;
  std::array<int, 3> since;
};

constexpr Forms forms[] = {
    {"cuCtxCreate", {3020, 11040, 12050}},
    {"cuCtxDestroy", {4000}},
    {"cuCtxGetDevice", {13000}},
    {"cuCtxPopCurrent", {4000}},
    {"cuCtxPushCurrent", {4000}},
    {"cuCtxSynchronize", {13000}},
    {"cuDeviceGetUuid", {11040}},
    {"cuDevicePrimaryCtxRelease", {11000}},
    {"cuDevicePrimaryCtxReset", {11000}},
    {"cuDevicePrimaryCtxSetFlags", {11000}},
    {"cuEventDestroy", {4000}},
    {"cuEventElapsedTime", {12080}},
    {"cuGetProcAddress", {12000}},
    {"cuGraphAddDependencies", {12030}},
    {"cuGraphAddKernelNode", {12000}},
    {"cuGraphAddNode", {12030, 13040}},
    {"cuGraphExecKernelNodeSetParams", {12000}},
    {"cuGraphExecUpdate", {12000}},
    {"cuGraphGetEdges", {12030}},
    {"cuGraphKernelNodeGetParams", {12000}},
    {"cuGraphKernelNodeSetParams", {12000}},
    {"cuGraphNodeGetDependencies", {12030}},
    {"cuGraphNodeGetDependentNodes", {12030}},
    {"cuGraphNodeSetParams", {13040}},
    {"cuGraphRemoveDependencies", {12030}},
    {"cuGraphicsResourceSetMapFlags", {6050}},
    {"cuIpcOpenMemHandle", {11000}},
    {"cuLaunchHostFunc", {13010}},
    {"cuLinkAddData", {6050}},
    {"cuLinkAddFile", {6050}},
    {"cuLinkCreate", {6050}},
    {"cuMemAdvise", {12020}},
    {"cuMemHostRegister", {6050}},
    {"cuMemPrefetchAsync", {12020}},
    {"cuMemcpy3DBatchAsync", {13000}},
    {"cuMemcpyBatchAsync", {13000}},
    {"cuMulticastBindAddr", {13010}},
    {"cuMulticastBindMem", {13010}},
    {"cuStreamBatchMemOp", {11070}},
    {"cuStreamBeginCapture", {10010}},
    {"cuStreamDestroy", {4000}},
    {"cuStreamGetCaptureInfo", {11030, 12030}},
    {"cuStreamGetCtx", {12050}},
    {"cuStreamUpdateCaptureDependencies", {12030}},
    {"cuStreamWaitValue32", {11070}},
    {"cuStreamWaitValue64", {11070}},
    {"cuStreamWriteValue32", {11070}},
    {"cuStreamWriteValue64", {11070}},
};

void* symbol(const std::string& name) {
  static void* const self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&cuInit), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return dlsym(self, name.c_str());
}

void* find(const std::string& name, int version, bool per_thread) {
  if (name == "cuGraphInstantiate" && version >= 11000)
    return find("cuGraphInstantiateWithFlags", version, per_thread);
  const auto own = [&](const std::string& form) -> void* {
    for (const char* suffix : {"_ptsz", "_ptds"})
      if (per_thread)
        if (void* found = symbol(form + suffix)) return found;
    return symbol(form);
  };
  for (const Forms& f : forms) {
    if (name != f.name) continue;
    int form = 1;
    for (const int since : f.since)
      if (since != 0 && version >= since) ++form;
    return own(form == 1 ? name : name + "_v" + std::to_string(form));
  }
  if (version >= 3020)
    if (void* found = own(name + "_v2")) return found;
  return own(name);
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  *function = find(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (status) *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress(const char* name, void** function,
                                                                            int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

CUresult cuGetExportTable(const void** table, const CUuuid*) {
  if (table) *table = nullptr;
  if (const CUresult code = cuInit(0); code != CUDA_SUCCESS)
    return code;  // the static runtime calls this first
  Dl_info caller{};
  dladdr(__builtin_return_address(0), &caller);
  return guarded([&] {
    // Some programs continue without the table; simt reports it for those that do not.
    Process::get().device(0).connection.send(
        RefuseTablesRequest{.file = caller.dli_fname ? caller.dli_fname : ""});
    fail(CUDA_ERROR_NOT_SUPPORTED);
  });
}
