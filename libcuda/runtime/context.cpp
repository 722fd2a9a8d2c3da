// The thread's device and the primary contexts.
#include <atomic>
#include <mutex>
#include <vector>

#include "state.hpp"

namespace runtime {
namespace {

std::mutex contexts_lock;
std::vector<CUcontext> contexts;  // by device; null if the primary context is not retained
std::atomic<int> preferred_device{0};
thread_local int chosen_device = -1;

}  // namespace

cudaError_t start() {
  static std::atomic<bool> started{false};
  if (started.load(std::memory_order_acquire)) return cudaSuccess;
  RUNTIME_TRY(cuInit(0));
  started.store(true, std::memory_order_release);
  return cudaSuccess;
}

cudaError_t primary_context(int device, CUcontext* context) {
  RUNTIME_TRY(start());
  if (device < 0) return cudaErrorInvalidDevice;
  const std::lock_guard guard(contexts_lock);
  if (contexts.size() <= static_cast<size_t>(device)) contexts.resize(device + 1);
  if (!contexts[device]) RUNTIME_TRY(cuDevicePrimaryCtxRetain(&contexts[device], device));
  *context = contexts[device];
  return cudaSuccess;
}

cudaError_t select_device(int device) {
  CUcontext context = nullptr;
  RUNTIME_TRY(primary_context(device, &context));
  RUNTIME_TRY(cuCtxSetCurrent(context));
  chosen_device = device;
  return cudaSuccess;
}

cudaError_t prefer_device(int device) {
  preferred_device = device;
  return cudaSuccess;
}

static int thread_device() {
  return chosen_device < 0 ? preferred_device.load() : chosen_device;
}

cudaError_t enter() {
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context) return cudaSuccess;
  return select_device(thread_device());
}

cudaError_t current_device(int* device) {
  if (!device) return cudaErrorInvalidValue;
  CUcontext context = nullptr;
  RUNTIME_TRY(cuCtxGetCurrent(&context));
  if (context) return to_error(cuCtxGetDevice(device));
  *device = thread_device();
  return cudaSuccess;
}

cudaError_t reset_device() {
  int device = 0;
  RUNTIME_TRY(start());
  RUNTIME_TRY(current_device(&device));
  const CUresult result = cuDevicePrimaryCtxReset(device);  // also reports earlier errors
  const std::lock_guard guard(contexts_lock);
  if (static_cast<size_t>(device) < contexts.size()) contexts[device] = nullptr;
  forget_sticky_error();
  cuCtxSetCurrent(nullptr);
  return to_error(result);
}

}  // namespace runtime
