#pragma once
// NVIDIA's header declares the API functions, which this library exports; everything else stays internal.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
