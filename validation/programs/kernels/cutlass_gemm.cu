// Launches a GEMM of CUTLASS 1.3 as cutlass_perf_test does with --dist=0 --iterations=5 --providers=cutlass, built
// without cuBLAS: once, once to warm up, and five times; nothing fills the matrices. (cutlass_perf_test itself needs the
// headers of cuBLAS, cuRAND and GoogleTest.)
//
//     cutlass_gemm sgemm_nn|wmma_gemm_nn M N K

#include <cstdlib>
#include <cstring>

#include "cutlass/gemm/gemm.h"
#include "cutlass/gemm/sgemm_traits.h"
#include "cutlass/gemm/wmma_gemm_traits.h"

constexpr auto kColumns = cutlass::MatrixLayout::kColumnMajor;

template <typename Traits>
cudaError_t launches(int m, int n, int k) {
  using Gemm = cutlass::gemm::Gemm<Traits>;
  typename Traits::ScalarA* a;
  typename Traits::ScalarB* b;
  typename Traits::ScalarC* c;
  typename Traits::ScalarD* d;
  cudaMalloc(&a, sizeof *a * m * k);
  cudaMalloc(&b, sizeof *b * k * n);
  cudaMalloc(&c, sizeof *c * m * n);
  cudaMalloc(&d, sizeof *d * m * n);
  typename Gemm::Params parameters;
  parameters.initialize(m, n, k, 1, a, m, b, k, 0, c, m, d, m);
  for (int i = 0; i < 7; ++i) Gemm::launch(parameters);
  return cudaDeviceSynchronize();
}

int main(int count, char** arguments) {
  if (count < 5) return 2;
  const int m = atoi(arguments[2]), n = atoi(arguments[3]), k = atoi(arguments[4]);
  using Sgemm = cutlass::gemm::SgemmTraits<kColumns, kColumns, cutlass::Shape<8, 128, 128>>;
  using Wmma = cutlass::gemm::WmmaGemmTraits<kColumns, kColumns>;
  if (!strcmp(arguments[1], "sgemm_nn")) return launches<Sgemm>(m, n, k) != cudaSuccess;
  if (!strcmp(arguments[1], "wmma_gemm_nn")) return launches<Wmma>(m, n, k) != cudaSuccess;
  return 2;
}
