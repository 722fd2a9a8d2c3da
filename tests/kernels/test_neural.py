"""Layers of neural networks: softmax, normalisation, attention, convolution, pooling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal, special

from simt.gpu import Module

SOURCE = r"""
__device__ float warp_max(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

// A warp per row: maximum, sum of powers, quotient.
extern "C" __global__ void softmax(const float *x, float *y, int rows, int columns) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
  if (row >= rows) return;
  x += row * columns;
  y += row * columns;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < columns; i += 32) most = fmaxf(most, x[i]);
  most = warp_max(most);
  for (int i = lane; i < columns; i += 32) sum += expf(x[i] - most);
  sum = warp_sum(sum);
  for (int i = lane; i < columns; i += 32) y[i] = expf(x[i] - most) / sum;
}

// The same in one pass over the row, which keeps maximum and sum as it goes ("online"), with the fast power.
extern "C" __global__ void softmax_online(const float *x, float *y, int rows, int columns) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
  if (row >= rows) return;
  x += row * columns;
  y += row * columns;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < columns; i += 32) {
    const float next = fmaxf(most, x[i]);
    sum = sum * __expf(most - next) + __expf(x[i] - next);
    most = next;
  }
  const float all = warp_max(most);
  sum = warp_sum(most == -INFINITY ? 0 : sum * __expf(most - all));
  for (int i = lane; i < columns; i += 32) y[i] = __fdividef(__expf(x[i] - all), sum);
}

// A block per row; mean and variance by Welford's updates, merged in shared memory.
extern "C" __global__ void layer_norm(const float *x, const float *gain, const float *shift, float *y,
                                      int columns, float epsilon) {
  __shared__ float3 part[128];
  x += blockIdx.x * columns;
  y += blockIdx.x * columns;
  float n = 0, mean = 0, squares = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const float d = x[i] - mean;
    n += 1;
    mean += d / n;
    squares += d * (x[i] - mean);
  }
  part[threadIdx.x] = make_float3(n, mean, squares);
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const float3 a = part[threadIdx.x], b = part[threadIdx.x + half];
      const float all = a.x + b.x, d = b.y - a.y;
      if (b.x > 0)
        part[threadIdx.x] = make_float3(all, a.y + d * b.x / all, a.z + b.z + d * d * a.x * b.x / all);
    }
  }
  __syncthreads();
  const float center = part[0].y, scale = rsqrtf(part[0].z / columns + epsilon);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[i] = (x[i] - center) * scale * gain[i] + shift[i];
}

// Attention with all scores of a query in shared memory: a block per query.
extern "C" __global__ void attention(const float *q, const float *k, const float *v, float *out, int length,
                                     int depth, float scale) {
  extern __shared__ float score[];
  __shared__ float most, total;
  q += blockIdx.x * depth;
  for (int j = threadIdx.x; j < length; j += blockDim.x) {
    float sum = 0;
    for (int d = 0; d < depth; ++d) sum += q[d] * k[j * depth + d];
    score[j] = sum * scale;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    float m = -INFINITY, s = 0;
    for (int j = threadIdx.x; j < length; j += 32) m = fmaxf(m, score[j]);
    m = warp_max(m);
    for (int j = threadIdx.x; j < length; j += 32) s += expf(score[j] - m);
    s = warp_sum(s);
    if (threadIdx.x == 0) most = m, total = s;
  }
  __syncthreads();
  for (int d = threadIdx.x; d < depth; d += blockDim.x) {
    float sum = 0;
    for (int j = 0; j < length; ++j) sum += expf(score[j] - most) * v[j * depth + d];
    out[blockIdx.x * depth + d] = sum / total;
  }
}

// Flash attention: tiles of keys and values go by, a thread keeps its query's sums. Causal.
#define KEYS 16
template <int DEPTH>
__global__ void flash_attention(const float *q, const float *k, const float *v, float *out, int length,
                                float scale) {
  __shared__ float keys[KEYS][DEPTH], values[KEYS][DEPTH];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float query[DEPTH], sum[DEPTH] = {}, most = -INFINITY, total = 0;
#pragma unroll
  for (int d = 0; d < DEPTH; ++d) query[d] = row < length ? q[row * DEPTH + d] * scale : 0;
  const int end = min(length, (int)((blockIdx.x + 1) * blockDim.x));
  for (int first = 0; first < end; first += KEYS) {
    __syncthreads();
    for (int e = threadIdx.x; e < KEYS * DEPTH; e += blockDim.x) {
      const bool inside = first + e / DEPTH < length;
      keys[0][e] = inside ? k[first * DEPTH + e] : 0;
      values[0][e] = inside ? v[first * DEPTH + e] : 0;
    }
    __syncthreads();
    float score[KEYS], next = most;
#pragma unroll
    for (int j = 0; j < KEYS; ++j) {
      float s = 0;
#pragma unroll
      for (int d = 0; d < DEPTH; ++d) s += query[d] * keys[j][d];
      score[j] = first + j <= row ? s : -INFINITY;
      next = fmaxf(next, score[j]);
    }
    if (next == -INFINITY) continue;
    const float fade = __expf(most - next);
    most = next;
    total *= fade;
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) sum[d] *= fade;
    for (int j = 0; j < KEYS; ++j) {
      const float p = __expf(score[j] - next);
      total += p;
#pragma unroll
      for (int d = 0; d < DEPTH; ++d) sum[d] += p * values[j][d];
    }
  }
  if (row < length)
    for (int d = 0; d < DEPTH; ++d) out[row * DEPTH + d] = sum[d] / total;
}

// Convolution of a picture with a filter, both whole numbers in floats; zeros outside.
extern "C" __global__ void convolve(const float *x, const float *filter, float *y, int rows, int columns,
                                    int size) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= rows || c >= columns) return;
  float sum = 0;
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      const int y0 = r + size / 2 - i, x0 = c + size / 2 - j;
      if (y0 >= 0 && y0 < rows && x0 >= 0 && x0 < columns) sum += filter[i * size + j] * x[y0 * columns + x0];
    }
  }
  y[r * columns + c] = sum;
}

// One pass of a separable filter, along rows or along columns.
template <bool along_rows>
__global__ void convolve_pass(const float *x, const float *filter, float *y, int rows, int columns,
                              int radius) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= rows || c >= columns) return;
  float sum = 0;
  for (int k = -radius; k <= radius; ++k) {
    const int at = (along_rows ? c : r) - k;
    if (at >= 0 && at < (along_rows ? columns : rows))
      sum += filter[k + radius] * (along_rows ? x[r * columns + at] : x[at * columns + c]);
  }
  y[r * columns + c] = sum;
}

// A layer of convolution as a matrix product whose left side is gathered on the way: N C H W, no padding.
extern "C" __global__ void convolve_implicit(const float *x, const float *w, float *y, int channels,
                                             int height, int width, int filters, int size, int stride) {
  __shared__ float left[16][16], right[16][17];
  const int out_h = (height - size) / stride + 1, out_w = (width - size) / stride + 1;
  const int pixel = blockIdx.x * 16 + threadIdx.x, filter = blockIdx.y * 16 + threadIdx.y;
  const int depth = channels * size * size;
  x += blockIdx.z * channels * height * width;
  float sum = 0;
  for (int first = 0; first < depth; first += 16) {
    const int e = first + threadIdx.y, channel = e / (size * size), place = e % (size * size);
    const int row = pixel / out_w * stride + place / size, column = pixel % out_w * stride + place % size;
    left[threadIdx.y][threadIdx.x] =
        e < depth && pixel < out_h * out_w ? x[(channel * height + row) * width + column] : 0;
    const int f = first + threadIdx.x;
    right[threadIdx.y][threadIdx.x] = f < depth && filter < filters ? w[filter * depth + f] : 0;
    __syncthreads();
    for (int s = 0; s < 16; ++s) sum += left[s][threadIdx.x] * right[threadIdx.y][s];
    __syncthreads();
  }
  if (pixel < out_h * out_w && filter < filters)
    y[(blockIdx.z * filters + filter) * out_h * out_w + pixel] = sum;
}

// Maximum and mean over windows of 2 by 2, with where the maximum was.
extern "C" __global__ void pool(const float *x, float *most, float *mean, unsigned char *where, int rows,
                                int columns) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  if (c >= columns / 2) return;
  const float2 top = *(const float2 *)&x[2 * r * columns + 2 * c];
  const float2 low = *(const float2 *)&x[(2 * r + 1) * columns + 2 * c];
  const float v[4] = {top.x, top.y, low.x, low.y};
  int best = 0;
  for (int k = 1; k < 4; ++k)
    if (v[k] > v[best]) best = k;
  const int i = r * (columns / 2) + c;
  most[i] = v[best];
  where[i] = best;
  mean[i] = (v[0] + v[1] + v[2] + v[3]) / 4;
}

// Cross entropy of logits against labels, and its gradient.
extern "C" __global__ void cross_entropy(const float *logits, const int *label, float *loss, float *gradient,
                                         int classes) {
  const int row = blockIdx.x, lane = threadIdx.x;
  const float *x = logits + row * classes;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < classes; i += 32) most = fmaxf(most, x[i]);
  most = warp_max(most);
  for (int i = lane; i < classes; i += 32) sum += expf(x[i] - most);
  sum = warp_sum(sum);
  for (int i = lane; i < classes; i += 32)
    gradient[row * classes + i] = expf(x[i] - most) / sum - (i == label[row]);
  if (lane == 0) loss[row] = logf(sum) + most - x[label[row]];
}

// The tanh form of GELU.
extern "C" __global__ void gelu(const float *x, float *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] * (1 + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}
"""
TEMPLATES = ["flash_attention<16>", "convolve_pass<true>", "convolve_pass<false>"]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["softmax", "softmax_online"])
@pytest.mark.parametrize(("rows", "columns", "height"), [(1, 1, 1), (5, 33, 4), (9, 500, 2)])
def test_softmax(
    module: Module, rng: np.random.Generator, kernel: str, rows: int, columns: int, height: int
) -> None:
    x = (10 * rng.standard_normal((rows, columns))).astype(np.float32)
    y = np.zeros_like(x)
    module[kernel][-(-rows // height), (32, height)](x, y, rows, columns)
    np.testing.assert_allclose(y, special.softmax(x.astype(np.float64), axis=1), rtol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(1, 7), (4, 300)])
@pytest.mark.parametrize("block", [32, 128])
def test_layer_norm(module: Module, rng: np.random.Generator, rows: int, columns: int, block: int) -> None:
    x = (3 + 2 * rng.standard_normal((rows, columns))).astype(np.float32)
    gain, shift = rng.standard_normal((2, columns)).astype(np.float32)
    y = np.zeros_like(x)
    module.layer_norm[rows, block](x, gain, shift, y, columns, 1e-5)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, normal * gain + shift, rtol=0, atol=5e-6)


@pytest.mark.parametrize(("length", "depth"), [(1, 8), (50, 16), (70, 40)])
def test_attention(module: Module, rng: np.random.Generator, length: int, depth: int) -> None:
    q, k, v = rng.standard_normal((3, length, depth)).astype(np.float32)
    out = np.zeros_like(q)
    scale = depth**-0.5
    module.attention[length, 64, 4 * length](q, k, v, out, length, depth, scale)
    expected = special.softmax(q.astype(np.float64) @ k.T * scale, axis=1) @ v
    np.testing.assert_allclose(out, expected, rtol=0, atol=3e-6)


@pytest.mark.parametrize("length", [1, 45, 96])
@pytest.mark.parametrize("block", [32, 64])
def test_flash_attention(module: Module, rng: np.random.Generator, length: int, block: int) -> None:
    depth = 16
    q, k, v = rng.standard_normal((3, length, depth)).astype(np.float32)
    out = np.zeros_like(q)
    kernel = module["flash_attention<16>"]
    kernel[-(-length // block), block](q, k, v, out, length, depth**-0.5)
    scores = q.astype(np.float64) @ k.T * depth**-0.5
    scores[np.triu_indices(length, 1)] = -np.inf
    np.testing.assert_allclose(out, special.softmax(scores, axis=1) @ v, rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("shape", [(8, 8), (19, 33)])
def test_convolution(module: Module, rng: np.random.Generator, size: int, shape: tuple[int, int]) -> None:
    x = rng.integers(-50, 50, shape).astype(np.float32)
    weights = rng.integers(-9, 9, (size, size)).astype(np.float32)
    y = np.zeros_like(x)
    module.convolve[(-(-shape[1] // 16), -(-shape[0] // 8)), (16, 8)](x, weights, y, *shape, size)
    assert (y == signal.convolve2d(x, weights, mode="same")).all()


def test_separable_convolution(module: Module, rng: np.random.Generator) -> None:
    rows, columns, radius = 21, 40, 4
    x = rng.integers(-20, 20, (rows, columns)).astype(np.float32)
    weights = rng.integers(-5, 6, 2 * radius + 1).astype(np.float32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    launch = (3, 3), (16, 8)
    module["convolve_pass<true>"][launch](x, weights, y, rows, columns, radius)
    module["convolve_pass<false>"][launch](y, weights, z, rows, columns, radius)
    assert (z == signal.convolve2d(x, np.outer(weights, weights), mode="same")).all()


@pytest.mark.parametrize(("size", "stride"), [(1, 1), (3, 1), (3, 2)])
def test_convolution_as_a_product(module: Module, rng: np.random.Generator, size: int, stride: int) -> None:
    batch, channels, height, width, filters = 2, 3, 11, 13, 18
    x = rng.integers(-9, 9, (batch, channels, height, width)).astype(np.float32)
    w = rng.integers(-9, 9, (filters, channels, size, size)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]
    expected = np.einsum("nchwij,fcij->nfhw", windows, w)
    y = np.zeros(expected.shape, np.float32)
    grid = -(-expected[0, 0].size // 16), -(-filters // 16), batch
    module.convolve_implicit[grid, (16, 16)](x, w, y, channels, height, width, filters, size, stride)
    assert (y == expected).all()


def test_pooling(module: Module, rng: np.random.Generator) -> None:
    rows, columns = 10, 70
    x = rng.integers(-20, 20, (rows, columns)).astype(np.float32)
    most, mean = np.zeros((2, rows // 2, columns // 2), np.float32)
    where = np.zeros(most.shape, np.uint8)
    module.pool[(2, rows // 2), 32](x, most, mean, where, rows, columns)
    windows = x.reshape(rows // 2, 2, columns // 2, 2).transpose(0, 2, 1, 3).reshape(*most.shape, 4)
    assert (most == windows.max(-1)).all()
    assert (mean == windows.mean(-1)).all()
    assert (where == windows.argmax(-1)).all()


def test_cross_entropy(module: Module, rng: np.random.Generator) -> None:
    rows, classes = 6, 50
    logits = (4 * rng.standard_normal((rows, classes))).astype(np.float32)
    label = rng.integers(0, classes, rows).astype(np.int32)
    loss, gradient = np.zeros(rows, np.float32), np.zeros_like(logits)
    module.cross_entropy[rows, 32](logits, label, loss, gradient, classes)
    wide = logits.astype(np.float64)
    np.testing.assert_allclose(loss, -special.log_softmax(wide, axis=1)[range(rows), label], rtol=1e-5)
    expected = special.softmax(wide, axis=1)
    expected[range(rows), label] -= 1
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6)


def test_gelu(module: Module) -> None:
    x = np.linspace(-8, 8, 500, dtype=np.float32)
    y = np.zeros_like(x)
    module.gelu[4, 128](x, y, len(x))
    wide = x.astype(np.float64)
    expected = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-6)
