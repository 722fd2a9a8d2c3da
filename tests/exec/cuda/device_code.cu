// The other file of separate.cu.
#include "device_code.h"

__device__ int offset = 5;

__device__ int shifted(int x) { return x + offset; }
