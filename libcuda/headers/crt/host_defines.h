// The macros that NVIDIA's <cuda_runtime_api.h> expects in this file. NVIDIA packages it with the compiler rather than
// with the runtime's headers, and a host compiler needs little of it.
#pragma once

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDART_CB
#define __host__
#define __device__
#define __global__
#define __no_return__ __attribute__((noreturn))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
