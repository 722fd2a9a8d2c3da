"""Attention: scores written to memory and read back, against flash attention, which keeps them on the SM."""

import numpy as np

import simt
from simt.result import difference

SOURCE = """
#define D 64
// One thread a query; all scores of the query go through global memory.
extern "C" __global__ void plain(const float* q, const float* k, const float* v, float* scores, float* out,
                                 int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float row[D], best = -1e30f, sum = 0;
  for (int d = 0; d < D; d++) row[d] = q[i * D + d] * 0.125f;
  for (int j = 0; j < n; j++) {
    float s = 0;
    for (int d = 0; d < D; d++) s += row[d] * k[j * D + d];
    scores[j * n + i] = s;
    best = fmaxf(best, s);
  }
  for (int d = 0; d < D; d++) row[d] = 0;
  for (int j = 0; j < n; j++) {
    float p = __expf(scores[j * n + i] - best);
    sum += p;
    for (int d = 0; d < D; d++) row[d] += p * v[j * D + d];
  }
  for (int d = 0; d < D; d++) out[i * D + d] = row[d] / sum;
}
// Keys and values come in tiles through shared memory; the softmax is corrected as better maxima turn up.
extern "C" __global__ void flash(const float* q, const float* k, const float* v, float* out, int n) {
  __shared__ float ks[32][D], vs[32][D];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float row[D], sums[D], best = -1e30f, sum = 0;
  for (int d = 0; d < D; d++) row[d] = q[i * D + d] * 0.125f, sums[d] = 0;
  for (int t = 0; t < n; t += 32) {
    for (int e = threadIdx.x; e < 32 * D; e += blockDim.x) {
      ks[e / D][e % D] = k[t * D + e];
      vs[e / D][e % D] = v[t * D + e];
    }
    __syncthreads();
    for (int j = 0; j < 32; j++) {
      float s = 0;
      for (int d = 0; d < D; d++) s += row[d] * ks[j][d];
      float now = fmaxf(best, s), scale = __expf(best - now), p = __expf(s - now);
      sum = sum * scale + p;
      for (int d = 0; d < D; d++) sums[d] = sums[d] * scale + p * vs[j][d];
      best = now;
    }
    __syncthreads();
  }
  for (int d = 0; d < D; d++) out[i * D + d] = sums[d] / sum;
}
"""


def main(gpu: simt.GPU) -> None:
    n, d = 256, 64
    host = np.random.default_rng(0).standard_normal((3, n, d)).astype(np.float32)
    scores = host[0] @ host[1].T / 8
    power = np.exp(scores - scores.max(1, keepdims=True))
    expected = power / power.sum(1, keepdims=True) @ host[2]
    q, k, v = (gpu.array(part) for part in host)
    out, again, temporary = gpu.zeros((n, d)), gpu.zeros((n, d)), gpu.empty((n, n))
    module = gpu.compile(SOURCE)
    plain = module.plain[n // 64, 64](q, k, v, temporary, out, n)
    print(f"plain: largest error {abs(out.numpy() - expected).max():.1e}")
    flash = module.flash[n // 64, 64](q, k, v, again, n)
    print(f"flash: largest error {abs(again.numpy() - expected).max():.1e}")
    if plain and flash:
        print(difference(plain, flash))
