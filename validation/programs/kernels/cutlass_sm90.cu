// Launches a product of FP16 with FP32 sums by CUTLASS 3's collective builder for Hopper (TMA and wgmma):
// tiles of 128 x 256 x 64, clusters of 2 x 1, stages and schedule by CUTLASS, all matrices by rows, which
// nothing fills.
//
//     cutlass_sm90 N LAUNCHES

#include <cstdlib>

#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

using Half = cutlass::half_t;
using Rows = cutlass::layout::RowMajor;
using Tile = cute::Shape<cute::_128, cute::_256, cute::_64>;
using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, Rows, 4, float, Rows, 4,
    cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, Rows, 8, Half, Rows, 8, float, Tile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(Epilogue::SharedStorage))>,
    cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const int n = atoi(arguments[1]), launches = atoi(arguments[2]);
  Half *a, *b;
  float* c;
  void* workspace = nullptr;
  cudaMalloc(&a, sizeof *a * n * n);
  cudaMalloc(&b, sizeof *b * n * n);
  cudaMalloc(&c, sizeof *c * n * n);
  const auto rows_of_a = cutlass::make_cute_packed_stride(Kernel::StrideA{}, {n, n, 1});
  const auto rows_of_b = cutlass::make_cute_packed_stride(Kernel::StrideB{}, {n, n, 1});
  const auto rows_of_c = cutlass::make_cute_packed_stride(Kernel::StrideC{}, {n, n, 1});
  const auto rows_of_d = cutlass::make_cute_packed_stride(Kernel::StrideD{}, {n, n, 1});
  Gemm::Arguments product{cutlass::gemm::GemmUniversalMode::kGemm,
                          {n, n, n, 1},
                          {a, rows_of_a, b, rows_of_b},
                          {{1.0f, 0.0f}, c, rows_of_c, c, rows_of_d}};
  if (const size_t bytes = Gemm::get_workspace_size(product)) cudaMalloc(&workspace, bytes);
  Gemm gemm;
  if (gemm.initialize(product, workspace) != cutlass::Status::kSuccess) return 1;
  for (int i = 0; i < launches; ++i)
    if (gemm.run() != cutlass::Status::kSuccess) return 1;
  return cudaDeviceSynchronize() != cudaSuccess;
}
