"""Particles, fractals, clusters and options."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import spatial, special

from simt.gpu import Module

SOURCE = r"""
// Gravity between all pairs, bodies in tiles of shared memory; w is the mass.
extern "C" __global__ void gravity(const float4 *body, float4 *force, int n, float softening) {
  extern __shared__ float4 tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 me = i < n ? body[i] : float4{};
  float3 sum = {};
  for (int first = 0; first < n; first += blockDim.x) {
    const int j = first + threadIdx.x;
    __syncthreads();
    tile[threadIdx.x] = j < n ? body[j] : float4{};
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < blockDim.x; ++k) {
      const float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float pull = tile[k].w * inverse * inverse * inverse;
      sum.x += dx * pull, sum.y += dy * pull, sum.z += dz * pull;
    }
  }
  if (i < n) force[i] = {sum.x, sum.y, sum.z, 0};
}

// Steps until z leaves the circle. Multiplications and additions are rounded one by one.
extern "C" __global__ void mandelbrot(unsigned short *steps, int width, int height, double left, double top,
                                      double size, int most) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const double cr = __dadd_rn(left, __dmul_rn(x, size)), ci = __dadd_rn(top, -__dmul_rn(y, size));
  double zr = 0, zi = 0;
  int n = 0;
  for (; n < most; ++n) {
    const double rr = __dmul_rn(zr, zr), ii = __dmul_rn(zi, zi);
    if (__dadd_rn(rr, ii) > 4) break;
    zi = __dadd_rn(__dmul_rn(__dmul_rn(2, zr), zi), ci);
    zr = __dadd_rn(__dadd_rn(rr, -ii), cr);
  }
  steps[y * width + x] = n;
}

// k-means: the nearest centre of each point, and sums for the new centres.
extern "C" __global__ void nearest_center(const float2 *point, const float2 *center, int *nearest,
                                          float3 *sums, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float least = INFINITY;
  int best = 0;
  for (int c = 0; c < k; ++c) {
    const float dx = point[i].x - center[c].x, dy = point[i].y - center[c].y, d = dx * dx + dy * dy;
    if (d < least) least = d, best = c;
  }
  nearest[i] = best;
  atomicAdd(&sums[best].x, point[i].x);
  atomicAdd(&sums[best].y, point[i].y);
  atomicAdd(&sums[best].z, 1.f);
}

// European options by Black and Scholes.
extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years,
                                         float *call, float *put, float rate, float volatility, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float root = sqrtf(years[i]);
    const float d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) /
                     (volatility * root);
    const float d2 = d1 - volatility * root, discount = strike[i] * expf(-rate * years[i]);
    call[i] = price[i] * normcdff(d1) - discount * normcdff(d2);
    put[i] = discount * normcdff(-d2) - price[i] * normcdff(-d1);
  }
}

// Lorenz's attractor by Runge and Kutta, a trajectory a thread.
extern "C" __global__ void lorenz(double3 *state, int steps, double h) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto slope = [](double3 s) {
    return double3{10 * (s.y - s.x), s.x * (28 - s.z) - s.y, s.x * s.y - 8.0 / 3 * s.z};
  };
  const auto at = [](double3 s, double3 d, double h) {
    return double3{s.x + h * d.x, s.y + h * d.y, s.z + h * d.z};
  };
  double3 s = state[i];
  for (int k = 0; k < steps; ++k) {
    const double3 a = slope(s), b = slope(at(s, a, h / 2)), c = slope(at(s, b, h / 2));
    const double3 d = slope(at(s, c, h));
    s = {s.x + h / 6 * (a.x + 2 * (b.x + c.x) + d.x), s.y + h / 6 * (a.y + 2 * (b.y + c.y) + d.y),
         s.z + h / 6 * (a.z + 2 * (b.z + c.z) + d.z)};
  }
  state[i] = s;
}

// The Ising model with a chessboard of updates; the random numbers are given.
extern "C" __global__ void ising(signed char *spin, const float *random, int size, int color, float beta) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= size || (x + y) % 2 != color) return;
  const int around = spin[y * size + (x + 1) % size] + spin[y * size + (x + size - 1) % size] +
                     spin[(y + 1) % size * size + x] + spin[(y + size - 1) % size * size + x];
  signed char &s = spin[y * size + x];
  if (random[y * size + x] < expf(-2 * beta * s * around)) s = -s;
}
"""


@pytest.mark.parametrize(("n", "block"), [(1, 32), (100, 32), (130, 128)])
def test_gravity(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    body = rng.random((n, 4), np.float32)
    force = np.zeros_like(body)
    module.gravity[-(-n // block), block, 16 * block](body, force, n, 0.01)
    place, mass = body[:, :3].astype(np.float64), body[:, 3]
    apart = place[None] - place[:, None]
    inverse = ((apart**2).sum(-1) + 0.01) ** -1.5
    expected = (apart * (mass * inverse)[..., None]).sum(1)
    np.testing.assert_allclose(force[:, :3], expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("block", [(32, 1), (8, 8)])
def test_mandelbrot(module: Module, block: tuple[int, int]) -> None:
    width, height, size, most = 50, 30, 0.06, 100
    steps = np.zeros((height, width), np.uint16)
    grid = -(-width // block[0]), -(-height // block[1])
    module.mandelbrot[grid, block](steps, width, height, -2.2, 0.9, size, most)
    real = -2.2 + np.arange(width) * size
    imaginary = (0.9 + -(np.arange(height) * size))[:, None]
    zr, zi, expected = np.zeros((3, height, width))
    for _ in range(most):
        rr, ii = zr * zr, zi * zi
        inside = rr + ii <= 4
        expected += inside
        zr, zi = np.where(inside, rr + -ii + real, zr), np.where(inside, 2 * zr * zi + imaginary, zi)
    assert (steps == expected).all()
    assert 0 < (steps == most).sum() < steps.size


def test_step_of_k_means(module: Module, rng: np.random.Generator) -> None:
    point = rng.integers(-100, 100, (500, 2)).astype(np.float32)  # sums are exact
    center = point[:7].copy()
    nearest, sums = np.zeros(500, np.int32), np.zeros((7, 3), np.float32)
    module.nearest_center[4, 128](point, center, nearest, sums, 500, 7)
    expected = ((point[:, None] - center) ** 2).sum(-1).argmin(1)
    assert (nearest == expected).all()
    for c in range(7):
        mine = point[expected == c]
        assert sums[c].tolist() == [*mine.sum(0), len(mine)]
    assert spatial.cKDTree(center).query(point)[0].max() <= 300


def test_black_scholes(module: Module, rng: np.random.Generator) -> None:
    n = 300
    price, strike = rng.uniform(5, 100, (2, n)).astype(np.float32)
    years = rng.uniform(0.25, 10, n).astype(np.float32)
    call, put = np.zeros((2, n), np.float32)
    module.black_scholes[2, 64](price, strike, years, call, put, 0.02, 0.3, n)
    s, x, t = (v.astype(np.float64) for v in (price, strike, years))
    rate, volatility = np.float64(np.float32(0.02)), np.float64(np.float32(0.3))
    d1 = (np.log(s / x) + (rate + volatility**2 / 2) * t) / (volatility * np.sqrt(t))
    d2 = d1 - volatility * np.sqrt(t)
    np.testing.assert_allclose(
        call, s * special.ndtr(d1) - x * np.exp(-rate * t) * special.ndtr(d2), rtol=0, atol=5e-5
    )
    np.testing.assert_allclose(
        put, x * np.exp(-rate * t) * special.ndtr(-d2) - s * special.ndtr(-d1), rtol=0, atol=5e-5
    )


def test_lorenz(module: Module, rng: np.random.Generator) -> None:
    state = rng.uniform(-10, 10, (40, 3))
    expected, h = state.copy(), 0.01

    def slope(s: np.ndarray) -> np.ndarray:
        x, y, z = s.T
        return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], 1)

    for _ in range(30):
        a = slope(expected)
        b = slope(expected + h / 2 * a)
        c = slope(expected + h / 2 * b)
        expected = expected + h / 6 * (a + 2 * (b + c) + slope(expected + h * c))
    module.lorenz[5, 8](state, 30, h)
    np.testing.assert_allclose(state, expected, rtol=1e-10)


def test_ising(module: Module, rng: np.random.Generator) -> None:
    size, beta = 34, 0.4
    spin = rng.choice([-1, 1], (size, size)).astype(np.int8)
    expected = spin.copy()
    chessboard = np.indices((size, size)).sum(0) % 2
    for step in range(6):
        random = rng.random((size, size), np.float32)
        around = sum(np.roll(expected, by, axis) for by in (-1, 1) for axis in (0, 1))
        chance = np.exp(-2 * beta * expected.astype(np.float64) * around)
        assert np.abs(chance - random).min() > 1e-7  # otherwise rounding would decide
        expected = np.where((chessboard == step % 2) & (random < chance), -expected, expected)
        module.ising[(2, size), 32](spin, random, size, step % 2, beta)
    assert (spin == expected).all()
