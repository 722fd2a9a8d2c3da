"""Fourier transforms and filters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from simt.gpu import Module

SOURCE = r"""
__device__ float2 operator*(float2 a, float2 b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ float2 turn(float turns) {
  float2 w;
  sincospif(2 * turns, &w.y, &w.x);
  return w;
}

// The transform by its definition, for any length.
extern "C" __global__ void dft(const float2 *x, float2 *y, int n) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  float2 sum = {};
  for (int i = 0; i < n; ++i) sum = sum + x[i] * turn(-(float)(i * k % n) / n);
  y[k] = sum;
}

// One pass of Stockham's radix-2 transform in global memory.
extern "C" __global__ void fft_pass(const float2 *x, float2 *y, int n, int done) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 2) return;
  const int k = i % done, j = (i - k) * 2 + k;
  const float2 a = x[i], b = x[i + n / 2] * turn(-0.5f * k / done);
  y[j] = a + b;
  y[j + done] = a - b;
}

// A whole transform a block in shared memory: bit-reversed order, then butterflies in place.
extern "C" __global__ void fft_shared(const float2 *x, float2 *y, int bits, float sign) {
  extern __shared__ float2 a[];
  const int n = 1 << bits;
  for (int i = threadIdx.x; i < n; i += blockDim.x) a[__brev(i) >> (32 - bits)] = x[blockIdx.x * n + i];
  for (int half = 1; half < n; half *= 2) {
    __syncthreads();
    for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
      const int k = i & (half - 1), at = 2 * i - k;
      const float2 u = a[at], v = a[at + half] * turn(sign * 0.5f * k / half);
      a[at] = u + v;
      a[at + half] = u - v;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = a[i];
}

// Finite impulse response, double precision.
extern "C" __global__ void fir(const double *x, const double *tap, double *y, int n, int taps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double sum = 0;
  for (int k = 0; k < min(taps, i + 1); ++k) sum += tap[k] * x[i - k];
  y[i] = sum;
}

// Haar's wavelets: one level halves the signal.
extern "C" __global__ void haar(const float *x, float *mean, float *detail, int half) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= half) return;
  const float2 v = ((const float2 *)x)[i];
  mean[i] = (v.x + v.y) * 0.5f;
  detail[i] = (v.x - v.y) * 0.5f;
}
"""


def noise(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def assert_spectrum(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.linalg.norm(found - expected) <= 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize("n", [1, 12, 100])
def test_transform_by_definition(module: Module, rng: np.random.Generator, n: int) -> None:
    x, y = noise(rng, n), np.zeros(n, np.complex64)
    module.dft[-(-n // 32), 32](x, y, n)
    assert_spectrum(y, np.fft.fft(x.astype(np.complex128)))


@pytest.mark.parametrize(("n", "block"), [(2, 32), (256, 64), (2048, 256)])
def test_fast_transform_over_launches(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    x, y = noise(rng, n), np.zeros(n, np.complex64)
    expected = np.fft.fft(x.astype(np.complex128))
    done = 1
    while done < n:
        module.fft_pass[-(-n // 2 // block), block](x, y, n, done)
        x, y = y, x
        done *= 2
    assert_spectrum(x, expected)


@pytest.mark.parametrize(("bits", "block"), [(1, 1), (6, 32), (10, 128)])
def test_fast_transform_in_shared_memory(
    module: Module, rng: np.random.Generator, bits: int, block: int
) -> None:
    n = 1 << bits
    x = noise(rng, 3, n)
    y, z = np.zeros_like(x), np.zeros_like(x)
    module.fft_shared[3, block, 8 * n](x, y, bits, -1)
    assert_spectrum(y, np.fft.fft(x.astype(np.complex128)))
    module.fft_shared[3, block, 8 * n](y, z, bits, 1)
    assert_spectrum(z / n, x)


def test_filter(module: Module, rng: np.random.Generator) -> None:
    x, tap = rng.standard_normal(300), rng.standard_normal(21)
    y = np.zeros(300)
    module.fir[5, 64](x, tap, y, 300, 21)
    np.testing.assert_allclose(y, signal.lfilter(tap, 1, x), rtol=0, atol=1e-13)


def test_haar_wavelets(module: Module, rng: np.random.Generator) -> None:
    x = rng.integers(-100, 100, 200).astype(np.float32)
    mean, detail = np.zeros((2, 100), np.float32)
    module.haar[4, 32](x, mean, detail, 100)
    assert (mean == (x[::2] + x[1::2]) / 2).all()
    assert (detail == (x[::2] - x[1::2]) / 2).all()
