// Launches a matrix product of a public repository as its own benchmark does, without what it is compared
// with there.
//
//     products KERNEL N LAUNCHES
//
// for square matrices of N, which nothing fills. SGEMM_STEPS: siboehm/SGEMM_CUDA, kernels 1 to 11 with the
// tiles for an A6000 (BM, BN, BK, ...: its src/runner.cu). GEMM_VERSIONS: leimao/CUDA-GEMM-Optimization, in
// ELEMENT. Otherwise: waynehacking8/blackwell-tensorcore-kernels, whose functions stage what they need in
// their first call.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdlib>
#include <map>
#include <string>

#ifndef ELEMENT
#define ELEMENT float
#endif

using Element = ELEMENT;
using Launch = void (*)(int n, Element* a, Element* b, Element* c);

#if defined(SGEMM_STEPS)

#include "kernels.cuh"

#define TILES(columns, rows) dim3((n + (columns) - 1) / (columns), (n + (rows) - 1) / (rows))
#define STEP(name, grid, block, ...)                             \
  {name, [](int n, Element* a, Element* b, Element* c) {         \
     __VA_ARGS__<<<grid, block>>>(n, n, n, 0.5f, a, b, 3.0f, c); \
   }}

const std::map<std::string, Launch> kLaunches = {
    STEP("1", TILES(32, 32), dim3(32, 32), sgemm_naive),
    STEP("2", TILES(32, 32), 1024, sgemm_global_mem_coalesce<32>),
    {"3",
     [](int n, Element* a, Element* b, Element* c) {
       cudaFuncSetAttribute(sgemm_shared_mem_block<32>, cudaFuncAttributePreferredSharedMemoryCarveout,
                            cudaSharedmemCarveoutMaxShared);
       sgemm_shared_mem_block<32><<<TILES(32, 32), 1024>>>(n, n, n, 0.5f, a, b, 3.0f, c);
     }},
    STEP("4", TILES(64, 64), 512, sgemm1DBlocktiling<64, 64, 8, 8>),
    STEP("5", TILES(128, 128), 256, sgemm2DBlocktiling<128, 128, 8, 8, 8>),
    STEP("6", TILES(128, 128), 256, sgemmVectorize<128, 128, 8, 8, 8>),
    STEP("7", TILES(128, 128), 256, sgemmResolveBankConflicts<128, 128, 8, 8, 8>),
    STEP("8", TILES(128, 128), 256, sgemmResolveBankExtraCol<128, 128, 8, 8, 8>),
    STEP("9", TILES(128, 128), 256, sgemmAutotuned<128, 128, 16, 8, 8>),
    STEP("10", TILES(128, 128), 128, sgemmWarptiling<128, 128, 16, 64, 64, 4, 8, 4, 128>),
    STEP("11", TILES(256, 128), 256, sgemmDoubleBuffering<128, 256, 16, 128, 32, 1, 8, 8, 256>),
};

#elif defined(GEMM_VERSIONS)

#include "cuda_gemm.hpp"

#define VERSION(name, suffix)                                                               \
  {name, [](int n, Element* a, Element* b, Element* c) {                                    \
     const Element one(1.0f), zero(0.0f);                                                   \
     launch_gemm_kernel_##suffix<Element>(n, n, n, &one, a, n, b, n, &zero, c, n, nullptr); \
   }}

const std::map<std::string, Launch> kLaunches = {
    VERSION("v00", v00), VERSION("v01", v01),
    VERSION("v02", v02), VERSION("v02-vectorized", v02_vectorized),
    VERSION("v03", v03), VERSION("v03-vectorized", v03_vectorized),
    VERSION("v04", v04), VERSION("v04-vectorized", v04_vectorized),
    VERSION("v05", v05), VERSION("v05-vectorized", v05_vectorized),
    VERSION("v06", v06), VERSION("v06-vectorized", v06_vectorized),
#ifdef TENSOR_CORES
    VERSION("v07", v07), VERSION("v07-vectorized", v07_vectorized),
#endif
};

#else

void launch_naive(const float* a, const float* b, float* c, int m, int n, int k);
void launch_tiled(const float* a, const float* b, float* c, int m, int n, int k);
void launch_wmma(const float* a, const float* b, float* c, int m, int n, int k);

const std::map<std::string, Launch> kLaunches = {
    {"naive", [](int n, float* a, float* b, float* c) { launch_naive(a, b, c, n, n, n); }},
    {"tiled", [](int n, float* a, float* b, float* c) { launch_tiled(a, b, c, n, n, n); }},
    {"wmma", [](int n, float* a, float* b, float* c) { launch_wmma(a, b, c, n, n, n); }},
};

#endif

int main(int count, char** arguments) {
  if (count != 4 || !kLaunches.count(arguments[1])) return 2;
  const int n = atoi(arguments[2]), launches = atoi(arguments[3]);
  Element* matrices[3];
  for (Element*& matrix : matrices) cudaMalloc(&matrix, sizeof(Element) * n * n);
  for (int i = 0; i < launches; ++i) kLaunches.at(arguments[1])(n, matrices[0], matrices[1], matrices[2]);
  return cudaDeviceSynchronize() != cudaSuccess;
}
