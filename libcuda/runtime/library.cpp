// Libraries of kernels loaded by the program, and version queries.
#include <cstdio>

#include "registration.hpp"
#include "versions.hpp"

namespace runtime {
namespace {

cudaError_t get_kernel(CUkernel* kernel, CUlibrary library, const char* name) {
  RUNTIME_TRY(cuLibraryGetKernel(kernel, library, name));
  know_kernel(*kernel);
  return cudaSuccess;
}

cudaError_t enumerate(CUkernel* kernels, unsigned int count, CUlibrary library) {
  unsigned int present = 0;
  RUNTIME_TRY(cuLibraryGetKernelCount(&present, library));
  RUNTIME_TRY(cuLibraryEnumerateKernels(kernels, count, library));
  for (unsigned int i = 0; i < count && i < present; ++i) know_kernel(kernels[i]);
  return cudaSuccess;
}

cudaError_t runtime_version(int* result) {
  if (!result) return cudaErrorInvalidValue;
  *result = version;
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using runtime::call;
using runtime::query;

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* options,
                                void** values, unsigned int count, cudaLibraryOption* library_options,
                                void** library_values, unsigned int library_count) {
  return call(cuLibraryLoadData, library, code, options, values, count, library_options, library_values,
              library_count);
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file, cudaJitOption* options,
                                    void** values, unsigned int count, cudaLibraryOption* library_options,
                                    void** library_values, unsigned int library_count) {
  return call(cuLibraryLoadFromFile, library, file, options, values, count, library_options, library_values,
              library_count);
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return call(cuLibraryUnload, library);
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return call(runtime::get_kernel, kernel, library, name);
}
cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t library) {
  return call(cuLibraryGetKernelCount, count, library);
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int count, cudaLibrary_t library) {
  return call(runtime::enumerate, kernels, count, library);
}
cudaError_t cudaLibraryGetGlobal(void** address, size_t* size, cudaLibrary_t library, const char* name) {
  return call(cuLibraryGetGlobal, address, size, library, name);
}
cudaError_t cudaLibraryGetManaged(void** address, size_t* size, cudaLibrary_t library, const char* name) {
  return call(cuLibraryGetManaged, address, size, library, name);
}
cudaError_t cudaLibraryGetUnifiedFunction(void** function, cudaLibrary_t library, const char* name) {
  return call(cuLibraryGetUnifiedFunction, function, library, name);
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                            int device) {
  return call(cuKernelSetAttribute, attribute, value, kernel, device);
}

cudaError_t cudaRuntimeGetVersion(int* result) {
  return runtime::remember(runtime::runtime_version(result));
}
cudaError_t cudaDriverGetVersion(int* result) {
  return runtime::remember(runtime::forward(cuDriverGetVersion, result));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  return query(cuGetProcAddress, symbol, function, static_cast<int>(version), flags, status);
}
cudaError_t v11_cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags) {
  return cudaGetDriverEntryPointByVersion(symbol, function, runtime::version, flags, nullptr);
}
cudaError_t v12_cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                        cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, runtime::version, flags, status);
}

cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t* which) {
  return runtime::remember(static_cast<cudaError_t>(cuGetExportTable(table, which)));
}

}  // extern "C"
