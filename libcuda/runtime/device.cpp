// Device management.
#include "state.hpp"

using runtime::call;
using runtime::query;

namespace runtime {
namespace {

cudaError_t device_count(int* count) {
  if (!count) return cudaErrorInvalidValue;
  *count = 0;
  RUNTIME_TRY(start());
  RUNTIME_TRY(cuDeviceGetCount(count));
  return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t set_flags(unsigned int flags) {
  int device = 0;
  RUNTIME_TRY(current_device(&device));
  return to_error(cuDevicePrimaryCtxSetFlags(device, flags));
}

cudaError_t get_flags(unsigned int* flags) {
  int device = 0;
  int active = 0;
  RUNTIME_TRY(current_device(&device));
  return to_error(cuDevicePrimaryCtxGetState(device, flags, &active));
}

cudaError_t initialise(int device, unsigned int device_flags, unsigned int flags) {
  constexpr unsigned int set_device_flags = cudaInitDeviceFlagsAreValid;
  if (flags & ~set_device_flags) return cudaErrorInvalidValue;
  if (flags & set_device_flags) RUNTIME_TRY(cuDevicePrimaryCtxSetFlags(device, device_flags));
  CUcontext context = nullptr;
  return primary_context(device, &context);
}

cudaError_t prefer_first_of(const int* devices, int length) {
  int count = 0;
  RUNTIME_TRY(device_count(&count));
  if (length < 0 || length > count || (length && !devices)) return cudaErrorInvalidValue;
  for (int i = 0; i < length; ++i)
    if (devices[i] < 0 || devices[i] >= count) return cudaErrorInvalidDevice;
  return prefer_device(length ? devices[0] : 0);
}

cudaError_t enable_peer(int peer, unsigned int flags) {
  CUcontext context = nullptr;
  RUNTIME_TRY(primary_context(peer, &context));
  return to_error(cuCtxEnablePeerAccess(context, flags));
}

cudaError_t disable_peer(int peer) {
  CUcontext context = nullptr;
  RUNTIME_TRY(primary_context(peer, &context));
  return to_error(cuCtxDisablePeerAccess(context));
}

}  // namespace
}  // namespace runtime

// Declared in cudaProfiler.h, which is in a separate package.
extern "C" CUresult cuProfilerStart();
extern "C" CUresult cuProfilerStop();

// An ordinal is also the driver's device handle, so it is passed on unchanged.
extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return runtime::remember(runtime::device_count(count));
}
cudaError_t cudaSetDevice(int device) {
  return query(runtime::select_device, device);
}
cudaError_t cudaGetDevice(int* device) {
  return query(runtime::current_device, device);
}
cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  return query(runtime::set_flags, flags);
}
cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  return query(runtime::get_flags, flags);
}
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
  return query(runtime::initialise, device, device_flags, flags);
}
cudaError_t cudaSetValidDevices(int* devices, int length) {
  return query(runtime::prefer_first_of, devices, length);
}
// Its error belongs to the destroyed context, so it is not kept for cudaGetLastError.
cudaError_t cudaDeviceReset() {
  return runtime::reset_device();
}
cudaError_t cudaDeviceSynchronize() {
  return call(cuCtxSynchronize);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return query(cuDeviceGetAttribute, value, attribute, device);
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source, int destination) {
  return query(cuDeviceGetP2PAttribute, value, attribute, source, destination);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return query(cuDeviceCanAccessPeer, can, device, peer);
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return call(runtime::enable_peer, peer, flags);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call(runtime::disable_peer, peer);
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return query(cuDeviceGetByPCIBusId, device, id);
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return query(cuDeviceGetPCIBusId, id, length, device);
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return call(cuCtxSetLimit, limit, value);
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return call(cuCtxGetLimit, value, limit);
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return call(cuCtxSetCacheConfig, config);
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return call(cuCtxGetCacheConfig, config);
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return call(cuCtxSetSharedMemConfig, config);
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return call(cuCtxGetSharedMemConfig, config);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call(cuCtxGetStreamPriorityRange, least, greatest);
}
cudaError_t cudaCtxResetPersistingL2Cache() {
  return call(cuCtxResetPersistingL2Cache);
}
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                               cudaFlushGPUDirectRDMAWritesScope scope) {
  return call(cuFlushGPUDirectRDMAWrites, target, scope);
}

// Names of these functions in CUDA 2 and 3, still exported until CUDA 12.
cudaError_t cudaThreadExit() {
  return cudaDeviceReset();
}
cudaError_t cudaThreadSynchronize() {
  return cudaDeviceSynchronize();
}
cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) {
  return cudaDeviceSetLimit(limit, value);
}
cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) {
  return cudaDeviceGetLimit(value, limit);
}
cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) {
  return cudaDeviceSetCacheConfig(config);
}
cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config) {
  return cudaDeviceGetCacheConfig(config);
}

// Every simulated device has double precision, so numbers need no conversion.
cudaError_t cudaSetDoubleForDevice(double*) {
  return cudaSuccess;
}
cudaError_t cudaSetDoubleForHost(double*) {
  return cudaSuccess;
}

cudaError_t cudaProfilerStart() {
  return call(cuProfilerStart);
}
cudaError_t cudaProfilerStop() {
  return call(cuProfilerStop);
}

}  // extern "C"
