#include <cstring>
#include <string>

#include "driver.hpp"

// Handles of destroyed objects: the memory and the numbers behind them go to new objects, which nothing that
// referred to the old ones may reach.

namespace {

std::string writes(int value) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p) { .reg .b64 a; "
         "ld.param.u64 a, [p]; st.global.u32 [a], " +
         std::to_string(value) + "; ret; }\n";
}

CUfunction kernel_of(int value, CUmodule* module) {
  *module = load(writes(value).c_str());
  return function(*module, "k");
}

unsigned written(CUfunction kernel, CUdeviceptr out) {
  launch(kernel, 1, out);
  return word(out);
}

/// A module is unloaded while others are loaded; the next one must not replace any of them.
void modules(CUdeviceptr out) {
  CUmodule loaded[8];
  CUfunction kernels[8];
  for (int k = 0; k < 8; ++k) kernels[k] = kernel_of(k, &loaded[k]);
  for (const int gone : {0, 3, 6, 7}) {
    OK(cuModuleUnload(loaded[gone]));
    kernels[gone] = kernel_of(100 + gone, &loaded[gone]);
    for (int k = 0; k < 8; ++k) {
      const unsigned value = written(kernels[k], out);
      CHECK(value == static_cast<unsigned>(k) || (value == 100u + static_cast<unsigned>(k)));
      CHECK(k != gone || value >= 100);
    }
  }
  for (const CUmodule module : loaded) OK(cuModuleUnload(module));
}

/// A graph's kernel node whose module is gone fails, also when another kernel has the function's memory.
void graph_kernels(CUdeviceptr out) {
  CUmodule module, other;
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = kernel_of(1, &module);
  p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
  void* arguments[] = {&out};
  p.kernelParams = arguments;
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &p));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, nullptr));
  OK(cuCtxSynchronize());
  CHECK(word(out) == 1);
  OK(cuModuleUnload(module));
  const CUfunction second = kernel_of(2, &other);
  OK(cuMemsetD32(out, 77, 1));
  FAILS(INVALID_HANDLE, cuGraphLaunch(exec, nullptr));
  FAILS(INVALID_HANDLE, cuGraphKernelNodeGetParams(node, &p));
  OK(cuCtxSynchronize());
  CHECK(word(out) == 77 && written(second, out) == 2);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuModuleUnload(other));
}

/// Likewise for event nodes.
void graph_events() {
  CUevent event, other;
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  OK(cuEventCreate(&event, 0));
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddEventRecordNode(&node, graph, nullptr, 0, event));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuEventDestroy(event));
  OK(cuEventCreate(&other, 0));
  FAILS(INVALID_HANDLE, cuGraphLaunch(exec, nullptr));
  float ms = 0;
  FAILS(INVALID_HANDLE, cuEventElapsedTime(&ms, other, other));  // never recorded
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuEventDestroy(other));
}

/// What a context holds ends with it; a library's kernels are loaded anew in the next one, on its device.
void contexts(int devices) {
  CUlibrary library;
  CUkernel kernel;
  OK(cuLibraryLoadData(&library, writes(5).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&kernel, library, "k"));
  for (int round = 0; round < 4; ++round) {
    CUcontext context;
    CUmodule module;
    CUstream stream;
    CUevent event;
    CUdeviceptr out;
    OK(cuCtxCreate(&context, 0, round % devices));
    OK(cuMemAlloc(&out, 4));
    // Another module takes a number in this device first, so that equal numbers are different kernels.
    const CUfunction own = kernel_of(round + 10, &module);
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, stream));
    void* arguments[] = {&out};
    OK(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
    OK(cuStreamSynchronize(stream));
    CHECK(word(out) == 5);
    CHECK(written(own, out) == static_cast<unsigned>(round) + 10);
    OK(cuMemFree(out));
    OK(cuCtxDestroy(context));
    FAILS(INVALID_HANDLE, cuStreamSynchronize(stream));
    FAILS(INVALID_HANDLE, cuEventSynchronize(event));
    FAILS(INVALID_HANDLE, cuModuleUnload(module));
  }
  OK(cuLibraryUnload(library));
}

/// Texture references of a new module do not begin with what an unloaded one was told.
void texture_references() {
  const char* const ptx =
      ".version 7.0\n.target sm_70\n.address_size 64\n.global .texref t;\n.visible .entry k() { ret; }\n";
  CUmodule module = load(ptx);
  CUtexref first, again;
  OK(cuModuleGetTexRef(&first, module, "t"));
  OK(cuModuleGetTexRef(&again, module, "t"));
  CHECK(first == again);
  OK(cuTexRefSetFlags(first, CU_TRSF_NORMALIZED_COORDINATES));
  OK(cuModuleUnload(module));
  unsigned flags = 99;
  FAILS(INVALID_HANDLE, cuTexRefGetFlags(&flags, first));
  module = load(ptx);
  OK(cuModuleGetTexRef(&again, module, "t"));
  OK(cuTexRefGetFlags(&flags, again));
  CHECK(flags == 0);
  OK(cuModuleUnload(module));
}

/// Objects with memory of their own (arrays, graph memory, pools, physical memory, textures) do not free what
/// is at their addresses after the device was reset.
void reset(CUdevice device) {
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR row{64, 0, CU_AD_FORMAT_FLOAT, 1};
  OK(cuArrayCreate(&array, &row));
  CUmipmappedArray mipmap;
  CUDA_ARRAY3D_DESCRIPTOR plane{};
  plane.Width = plane.Height = 16;
  plane.Format = CU_AD_FORMAT_FLOAT;
  plane.NumChannels = 1;
  OK(cuMipmappedArrayCreate(&mipmap, &plane, 2));
  CUtexObject texture;
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC sampling{};
  OK(cuTexObjectCreate(&texture, &resource, &sampling, nullptr));
  CUgraph graph;
  CUgraphNode node;
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  allocation.bytesize = 256;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &allocation));
  CUmemGenericAllocationHandle physical;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  OK(cuMemCreate(&physical, 2 << 20, &properties, 0));
  CUmodule module;
  const CUfunction kernel = kernel_of(3, &module);
  CUstream stream;
  OK(cuStreamCreate(&stream, 0));

  OK(cuDevicePrimaryCtxReset(device));
  FAILS(INVALID_HANDLE, cuStreamSynchronize(stream));
  FAILS(INVALID_HANDLE, cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  // New memory takes all their places.
  std::vector<CUdeviceptr> memory;
  for (int k = 0; k < 64; ++k) memory.push_back(allocate(64));
  FAILS(INVALID_HANDLE, cuArrayDestroy(array));
  FAILS(INVALID_HANDLE, cuMipmappedArrayDestroy(mipmap));
  FAILS(INVALID_VALUE, cuTexObjectDestroy(texture));
  FAILS(INVALID_VALUE, cuMemRelease(physical));
  OK(cuGraphDestroy(graph));
  size_t bytes = 0;
  for (const CUdeviceptr address : memory) {
    OK(cuMemGetAddressRange(nullptr, &bytes, address));
    CHECK(bytes == 256);
    OK(cuMemsetD32(address, 9, 64));
    OK(cuMemFree(address));
  }
}

}  // namespace

int main() {
  const CUdevice device = start();
  int devices = 0;
  OK(cuDeviceGetCount(&devices));
  const CUdeviceptr out = allocate(1);
  modules(out);
  graph_kernels(out);
  graph_events();
  contexts(devices);
  texture_references();
  reset(device);
  std::puts("passed");
}
