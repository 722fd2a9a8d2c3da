"""Stencils in one, two and three dimensions, matrix transposition, the game of life."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from simt.gpu import Module

SOURCE = r"""
// One dimension, weights in constant memory, a tile with its halo in shared memory.
#define RADIUS 3
__constant__ float weight[2 * RADIUS + 1];
extern "C" __global__ void stencil_1d(const float *x, float *y, int n) {
  extern __shared__ float tile[];
  const int first = blockIdx.x * blockDim.x - RADIUS;
  for (int k = threadIdx.x; k < blockDim.x + 2 * RADIUS; k += blockDim.x) {
    const int i = first + k;
    tile[k] = i >= 0 && i < n ? x[i] : 0;
  }
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
#pragma unroll
  for (int k = 0; k <= 2 * RADIUS; ++k) sum += weight[k] * tile[threadIdx.x + k];
  y[i] = sum;
}

// Jacobi's step of the heat equation; the border stays.
extern "C" __global__ void heat_2d(const float *u, float *v, int rows, int columns, float rate) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const int i = y * columns + x;
  const float c = u[i];
  const bool border = x == 0 || y == 0 || x == columns - 1 || y == rows - 1;
  v[i] = border ? c : c + rate * (u[i - 1] + u[i + 1] + u[i - columns] + u[i + columns] - 4 * c);
}

// Seven points in three dimensions: a column of blocks marches along z and keeps three planes in registers.
extern "C" __global__ void laplace_3d(const double *u, double *v, int nx, int ny, int nz) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= nx || y >= ny) return;
  const int plane = nx * ny;
  int i = y * nx + x;
  double below = 0, here = u[i];
  for (int z = 0; z < nz; ++z, i += plane) {
    const double above = z + 1 < nz ? u[i + plane] : 0;
    const double left = x > 0 ? u[i - 1] : 0, right = x + 1 < nx ? u[i + 1] : 0;
    const double front = y > 0 ? u[i - nx] : 0, back = y + 1 < ny ? u[i + nx] : 0;
    v[i] = left + right + front + back + below + above - 6 * here;
    below = here;
    here = above;
  }
}

// A torus of cells, eight neighbours.
extern "C" __global__ void life(const unsigned char *now, unsigned char *next, int size) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= size || y >= size) return;
  int neighbours = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (dx || dy) neighbours += now[(y + dy + size) % size * size + (x + dx + size) % size];
  next[y * size + x] = neighbours == 3 || (neighbours == 2 && now[y * size + x]);
}

extern "C" __global__ void transpose_naive(const float *a, float *b, int rows, int columns) {
  const int x = blockIdx.x * 32 + threadIdx.x;
  for (int y = blockIdx.y * 32 + threadIdx.y; y < min(rows, (int)(blockIdx.y + 1) * 32); y += blockDim.y)
    if (x < columns) b[x * rows + y] = a[y * columns + x];
}

template <int PAD>
__device__ void transpose_tile(const float *a, float *b, int rows, int columns) {
  __shared__ float tile[32][32 + PAD];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += blockDim.y)
    if (x < columns && y + k < rows) tile[k][threadIdx.x] = a[(y + k) * columns + x];
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += blockDim.y) {
    const int column = blockIdx.x * 32 + k, row = y + threadIdx.x;
    if (column < columns && row < rows) b[column * rows + row] = tile[threadIdx.x][k];
  }
}
extern "C" __global__ void transpose_tiled(const float *a, float *b, int rows, int columns) {
  transpose_tile<0>(a, b, rows, columns);
}
extern "C" __global__ void transpose_padded(const float *a, float *b, int rows, int columns) {
  transpose_tile<1>(a, b, rows, columns);
}
"""


def blocks(width: int, height: int, block: tuple[int, int]) -> tuple[int, int]:
    return -(-width // block[0]), -(-height // block[1])


@pytest.mark.parametrize(("n", "block"), [(1, 32), (100, 64), (1000, 96)])
def test_stencil_in_one_dimension(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    weight = rng.integers(-4, 5, 7).astype(np.float32)
    x, y = rng.integers(-100, 100, n).astype(np.float32), np.zeros(n, np.float32)
    module.variable("weight", np.float32).set(weight)
    module.stencil_1d[-(-n // block), block, 4 * (block + 6)](x, y, n)
    assert (y == ndimage.correlate1d(x, weight, mode="constant")).all()


@pytest.mark.parametrize("block", [(32, 4), (16, 16), (7, 9)])
def test_heat(module: Module, rng: np.random.Generator, block: tuple[int, int]) -> None:
    rows, columns = 37, 50
    u = rng.integers(0, 64, (rows, columns)).astype(np.float32)
    expected = u.copy()
    v = np.zeros_like(u)
    for _ in range(3):
        module.heat_2d[blocks(columns, rows, block), block](
            u, v, rows, columns, 0.25
        )  # exact for so few steps
        u, v = v, u
        old = expected.copy()
        sides = old[1:-1, :-2] + old[1:-1, 2:] + old[:-2, 1:-1] + old[2:, 1:-1]
        expected[1:-1, 1:-1] += np.float32(0.25) * (sides - 4 * old[1:-1, 1:-1])
    assert (u == expected).all()


@pytest.mark.parametrize(("shape", "block"), [((4, 5, 6), (8, 8)), ((9, 20, 33), (16, 4))])
def test_laplace_in_three_dimensions(
    module: Module, rng: np.random.Generator, shape: tuple[int, int, int], block: tuple[int, int]
) -> None:
    u, v = rng.integers(-1000, 1000, shape).astype(np.float64), np.zeros(shape)
    nz, ny, nx = shape
    module.laplace_3d[blocks(nx, ny, block), block](u, v, nx, ny, nz)
    assert (v == ndimage.laplace(u, mode="constant")).all()


def test_game_of_life(module: Module, rng: np.random.Generator) -> None:
    size = 45
    now = (rng.random((size, size)) < 0.4).astype(np.uint8)
    expected, following = now.copy(), np.zeros_like(now)
    for _ in range(4):
        module.life[blocks(size, size, (16, 8)), (16, 8)](now, following, size)
        now, following = following, now
        shifts = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
        neighbours = sum(np.roll(expected, shift, (0, 1)) for shift in shifts)
        expected = ((neighbours == 3) | (neighbours == 2) & (expected == 1)).astype(np.uint8)
    assert (now == expected).all()


@pytest.mark.parametrize("kernel", ["transpose_naive", "transpose_tiled", "transpose_padded"])
@pytest.mark.parametrize("shape", [(32, 32), (64, 96), (33, 70)])
@pytest.mark.parametrize("height", [8, 32])
def test_transpose(
    module: Module, rng: np.random.Generator, kernel: str, shape: tuple[int, int], height: int
) -> None:
    a = rng.standard_normal(shape).astype(np.float32)
    b = np.zeros(shape[::-1], np.float32)
    module[kernel][blocks(shape[1], shape[0], (32, 32)), (32, height)](a, b, *shape)
    assert (b == a.T).all()
