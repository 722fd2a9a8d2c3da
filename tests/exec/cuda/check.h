// What the programs of this folder check with: a program that fails says where, and exits with 1.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      std::printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);    \
      std::exit(1);                                                          \
    }                                                                        \
  } while (0)

#define CUDA(call)                                                                                       \
  do {                                                                                                   \
    const cudaError_t error = (call);                                                                    \
    if (error != cudaSuccess) {                                                                          \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error));              \
      std::exit(1);                                                                                      \
    }                                                                                                    \
  } while (0)
