#include "capture.hpp"
#include "modules.hpp"

// Contexts: primary and other ones, and each thread's stack of contexts.

using namespace simt::driver;

namespace {

Context& primary(Device& device) {
  if (!device.primary) device.primary = std::make_unique<Context>(device, device.primary_flags);
  return *device.primary;
}

void push(Context& context) {
  Thread::get().stack.emplace_back(context);
}

/// The current context, whether or not a fault has broken it.
Context& any_current() {
  const auto& stack = Thread::get().stack;
  require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
  Context* const context = stack.back().get();
  require(context != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return *context;
}

/// Destroys the streams and events of a context: their handles are invalid from then on.
void destroy_streams(Context& context) {
  const auto of_it = [&](const auto& object) { return object.context == &context; };
  forget_lanes(context);
  for (Stream* stream : all<Stream>().those(of_it)) {
    leave_capture(*stream);
    all<Stream>().destroy(*stream);
  }
  for (Event* event : all<Event>().those(of_it)) {
    if (event->id != 0) context.device.connection.send(ForgetRequest{.event = event->id});
    all<Event>().destroy(*event);
  }
}

void free_everything(Device& device) {
  if (device.fault == CUDA_SUCCESS) synchronize(device);
  device.pending = false;
  device.connection.call(ResetRequest{});
  forget_mappings(device);
  forget_pools(device);
  forget_textures(device);
  forget_arrays(device);
  forget_graph_memory(device);
  device.allocations.clear();
  device.used = 0;
  for (const int peer : device.peers)
    device.connection.send(ReachRequest{.number = static_cast<uint64_t>(peer), .all = false});
  device.peers.clear();
  device.fault = CUDA_SUCCESS;
  // simt has dropped all modules of the device: other contexts have lost theirs as well.
  for (Module* module : all<Module>().those([&](const Module& m) { return &m.context.device == &device; }))
    destroy_module(*module);
  destroy_streams(*device.primary);
}

constexpr struct {
  CUlimit limit;
  size_t value;
} default_limits[] = {
    {CU_LIMIT_STACK_SIZE, 1024},
    {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
    {CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20},
    {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
    {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
    {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
    {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0},
};

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return guarded([&] {
    require(context != nullptr);
    Device& d = Process::get().device(device);
    *context = handle_of<CUcontext>(&primary(d));
    ++d.primary_uses;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return guarded([&] {
    Device& d = Process::get().device(device);
    require(d.primary_uses > 0, CUDA_ERROR_INVALID_CONTEXT);
    --d.primary_uses;  // kept: the program's handles into it remain valid
  });
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return guarded([&] {
    Device& d = Process::get().device(device);
    if (d.primary) free_everything(d);
  });
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return guarded([&] {
    require((flags & ~CU_CTX_FLAGS_MASK) == 0);
    Device& d = Process::get().device(device);
    d.primary_flags = flags;
    if (d.primary) d.primary->flags = flags;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return guarded([&] {
    const Device& d = Process::get().device(device);
    if (flags) *flags = d.primary_flags;
    if (active) *active = d.primary && d.primary_uses > 0;
  });
}

CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return guarded([&] {
    require(context != nullptr && (flags & ~CU_CTX_FLAGS_MASK) == 0);
    Context& made = all<Context>().make(Process::get().device(device), flags);
    push(made);
    *context = handle_of<CUcontext>(&made);
  });
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int count, unsigned flags,
                        CUdevice device) {
  if (count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return cuCtxCreate(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
  if (parameters && (parameters->numExecAffinityParams != 0 || parameters->cigParams))
    return CUDA_ERROR_NOT_SUPPORTED;
  return cuCtxCreate(context, flags, device);
}

CUresult cuCtxDestroy(CUcontext context) {
  return guarded([&] {
    Context& c = object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT);
    require(&c != c.device.primary.get(), CUDA_ERROR_INVALID_CONTEXT);
    synchronize(c.device);
    auto& stack = Thread::get().stack;
    if (!stack.empty() && stack.back().get() == &c) stack.pop_back();
    for (Module* module : all<Module>().those([&](const Module& m) { return &m.context == &c; }))
      unload_module(*module);
    destroy_streams(c);
    all<Context>().destroy(c);
  });
}

CUresult cuCtxPushCurrent(CUcontext context) {
  return guarded([&] { push(object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT)); });
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  return guarded([&] {
    Context& top = any_current();
    Thread::get().stack.pop_back();
    if (context) *context = handle_of<CUcontext>(&top);
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return guarded([&] {
    auto& stack = Thread::get().stack;
    Context* next = context ? &object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT) : nullptr;
    if (!stack.empty()) stack.pop_back();
    if (next) stack.emplace_back(*next);
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!Process::get().initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  const auto& stack = Thread::get().stack;
  *context = stack.empty() ? nullptr : handle_of<CUcontext>(stack.back().get());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return guarded([&] {
    require(device != nullptr);
    *device = any_current().device.ordinal;
  });
}

CUresult cuCtxGetFlags(unsigned* flags) {
  return guarded([&] {
    require(flags != nullptr);
    *flags = any_current().flags;
  });
}

CUresult cuCtxSetFlags(unsigned flags) {
  return guarded([&] {
    require((flags & ~CU_CTX_FLAGS_MASK) == 0);
    any_current().flags = flags;
  });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return guarded([&] {
    require(id != nullptr);
    *id = (context ? object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT) : any_current()).serial();
  });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return guarded([&] {
    require(version != nullptr);
    if (context) object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT);
    *version = 3020;
  });
}

CUresult cuCtxSynchronize() {
  return guarded([&] {
    require_not_captured(current_context());
    require_no_capture();
    synchronize(current_context().device);
  });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return guarded([&] {
    require(limit >= 0 && limit < CU_LIMIT_MAX, CUDA_ERROR_UNSUPPORTED_LIMIT);
    Context& context = current_context();
    if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE) {
      // A limit above the largest is that (CUDA runtime API, cudaDeviceSetLimit: "ignored or clamped").
      const int most = context.device.attribute(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
      require(most > 0, CUDA_ERROR_UNSUPPORTED_LIMIT);
      value = std::min(value, static_cast<size_t>(most));
      context.device.connection.send(SetAsideRequest{.size = value});
    }
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY)
      note_without_effect(context.device, "the fetch granularity of the L2 (cudaLimitMaxL2FetchGranularity)");
    context.limits[limit] = value;
    if (limit == CU_LIMIT_STACK_SIZE) context.device.connection.send(StackRequest{.size = value});
  });
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return guarded([&] {
    require(value != nullptr);
    const Context& context = current_context();
    if (const auto set = context.limits.find(limit); set != context.limits.end()) {
      *value = set->second;
      return;
    }
    for (const auto& entry : default_limits) {
      if (entry.limit != limit) continue;
      *value = entry.value;
      return;
    }
    fail(CUDA_ERROR_UNSUPPORTED_LIMIT);
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return guarded([&] {
    require(config != nullptr);
    *config = current_context().cache_config;
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return guarded([&] {
    note_without_effect(current_context().device,
                        "the preferred cache configuration (cudaDeviceSetCacheConfig)");
    current_context().cache_config = config;
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return guarded([&] {
    require(config != nullptr);
    current_context();
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig) {
  return guarded([] { current_context(); });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return guarded([&] {
    current_context();
    if (least) *least = 0;
    if (greatest) *greatest = -5;
  });
}

CUresult cuCtxResetPersistingL2Cache() {
  return guarded([] { current_context().device.connection.send(ResetPersistingRequest{}); });
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam*, CUexecAffinityType) {
  return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult cuCtxAttach(CUcontext* context, unsigned) {
  return cuCtxGetCurrent(context);
}

CUresult cuCtxDetach(CUcontext context) {
  return guarded([&] { object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT); });
}

// Versions introduced with CUDA 13.

extern "C" {
__attribute__((visibility("default"))) CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  if (!context) return cuCtxGetDevice(device);
  return guarded([&] {
    require(device != nullptr);
    *device = object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT).device.ordinal;
  });
}

__attribute__((visibility("default"))) CUresult cuCtxSynchronize_v2(CUcontext context) {
  if (!context) return cuCtxSynchronize();
  return guarded([&] {
    Context& c = object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT);
    require_not_captured(c);
    require_no_capture();
    synchronize(c.device);
  });
}
}
