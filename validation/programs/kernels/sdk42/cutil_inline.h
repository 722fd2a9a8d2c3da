// What the programs of NVIDIA's SDK 4.2 need of its helper library: calls are checked, nothing is timed, the first GPU
// is used, and no option is given.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

inline void checkCudaErrors(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s\n", cudaGetErrorString(error));
  exit(1);
}

inline void getLastCudaError(const char*) { checkCudaErrors(cudaGetLastError()); }

#define cutilSafeCall checkCudaErrors
#define cutilCheckMsg getLastCudaError
#define cutilCheckError(call) (call)
#define cutilSafeMalloc(call) (call)
#define cutilDeviceSynchronize cudaDeviceSynchronize
#define cutilDeviceReset cudaDeviceReset

inline bool cutCheckCmdLineFlag(int, const char**, const char*) { return false; }
inline int cutilDeviceInit(int, char**) { return 0; }
inline int cutGetMaxGflopsDeviceId() { return 0; }
inline bool cutCreateTimer(unsigned*) { return true; }
inline bool cutDeleteTimer(unsigned) { return true; }
inline bool cutResetTimer(unsigned) { return true; }
inline bool cutStartTimer(unsigned) { return true; }
inline bool cutStopTimer(unsigned) { return true; }
inline float cutGetTimerValue(unsigned) { return 1; }
