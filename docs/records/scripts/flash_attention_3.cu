// One head size of FlashAttention-3 forward: ./fa seqlen_q seqlen_k heads heads_kv [check]
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "flash_fwd_launch_template.h"
void prepare_varlen_num_blocks(Flash_fwd_params&, cudaStream_t, bool, int, int, bool) {}
#ifndef HD
#define HD 128
#endif
int main(int argc, char** argv) {
  int b = 1, sq = atoi(argv[1]), sk = atoi(argv[2]), h = atoi(argv[3]), hk = atoi(argv[4]), causal = CAUSAL;
  bool check = argc > 5;
  size_t nq = size_t(b) * sq * h * HD, nk = size_t(b) * sk * hk * HD;
  __half *q, *k, *v, *o;
  float* lse;
  int* sem;
  cudaMalloc(&q, nq * 2);
  cudaMalloc(&k, nk * 2);
  cudaMalloc(&v, nk * 2);
  cudaMalloc(&o, nq * 2);
  cudaMalloc(&lse, size_t(b) * h * sq * 4);
  cudaMalloc(&sem, 64);
  cudaMemset(sem, 0, 64);
  std::vector<__half> x(std::max(nq, nk));
  unsigned s = 1;
  auto fill = [&](__half* d, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      s = s * 1664525u + 1013904223u;
      x[i] = __float2half(((s >> 8) & 0xffff) / 32768.0f - 1.0f);
    }
    cudaMemcpy(d, x.data(), n * 2, cudaMemcpyHostToDevice);
  };
  fill(q, nq);
  fill(k, nk);
  fill(v, nk);
  Flash_fwd_params p{};
  p.q_ptr = q;
  p.k_ptr = k;
  p.v_ptr = v;
  p.o_ptr = o;
  p.softmax_lse_ptr = lse;
  p.q_row_stride = p.o_row_stride = h * HD;
  p.k_row_stride = p.v_row_stride = hk * HD;
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = HD;
  p.q_batch_stride = p.o_batch_stride = int64_t(sq) * h * HD;
  p.k_batch_stride = p.v_batch_stride = int64_t(sk) * hk * HD;
  p.v_dim_stride = 1;
  p.b = b;
  p.b_k = b;
  p.h = h;
  p.h_k = hk;
  p.seqlen_q = sq;
  p.seqlen_k = sk;
  p.d = p.dv = p.d_rounded = p.dv_rounded = HD;
  p.seqlen_q_rounded = (sq + 127) / 128 * 128;
  p.seqlen_k_rounded = (sk + 127) / 128 * 128;
  p.total_q = b * sq;
  p.total_k = b * sk;
  p.scale_softmax = 1.0f / std::sqrt(float(HD));
  p.p_dropout = 1;
  p.rp_dropout = 1;
  p.is_causal = causal;
  p.window_size_left = -1;
  p.window_size_right = causal ? 0 : -1;
  p.num_splits = 1;
  p.tile_count_semaphore = sem;
  p.arch = 90;
  p.num_sm = 132;
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, 0);
  p.num_sm = prop.multiProcessorCount;
  constexpr bool C = CAUSAL;
  constexpr int M = std::get<0>(tile_size_fwd_sm90(HD, HD, C, false, 2, false, false, false));
  constexpr int N = std::get<1>(tile_size_fwd_sm90(HD, HD, C, false, 2, false, false, false));
  constexpr int cluster = HD >= 128 && !C ? 2 : 1;
  printf("tile %d x %d, cluster %d, SMs %d\n", M, N, cluster, p.num_sm);
  if (cluster == 2 && (sq + M - 1) / M % 2) {
    puts("odd number of tiles: no cluster");
    return 1;
  }
  run_flash_fwd<90, HD, HD, cluster, cutlass::half_t, cutlass::half_t, C, false, false, false, false, false,
                false, false, false, false>(p, 0);
  cudaError_t e = cudaDeviceSynchronize();
  puts(cudaGetErrorString(e));
  if (check) {
    std::vector<__half> hq(nq), hK(nk), hv(nk), ho(nq);
    cudaMemcpy(hq.data(), q, nq * 2, cudaMemcpyDeviceToHost);
    cudaMemcpy(hK.data(), k, nk * 2, cudaMemcpyDeviceToHost);
    cudaMemcpy(hv.data(), v, nk * 2, cudaMemcpyDeviceToHost);
    cudaMemcpy(ho.data(), o, nq * 2, cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int i = 0; i < sq; i += 37) {
      int head = i % h;
      std::vector<double> w(sk);
      double sum = 0;
      int limit = C ? i + sk - sq + 1 : sk;
      for (int j = 0; j < limit; ++j) {
        double d = 0;
        for (int c = 0; c < HD; ++c)
          d += double(__half2float(hq[(size_t(i) * h + head) * HD + c])) *
               __half2float(hK[(size_t(j) * hk + head / (h / hk)) * HD + c]);
        sum += w[j] = std::exp(d * p.scale_softmax);
      }
      for (int c = 0; c < HD; ++c) {
        double d = 0;
        for (int j = 0; j < limit; ++j)
          d += w[j] * __half2float(hv[(size_t(j) * hk + head / (h / hk)) * HD + c]);
        worst = std::max(worst, std::fabs(d / sum - __half2float(ho[(size_t(i) * h + head) * HD + c])));
      }
    }
    printf("worst difference %g\n", worst);
  }
}
