"""Triton kernels whose times are published: `run(gpu, name, sizes...)`.

add, gemm, attention: cycles on an RTX 5090, by FlashGPU-Sim. add, product: rates on an A100, in Triton's own
documentation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

import simt


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def gemm(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a b^T, of float16; a has m rows of k, b n rows of k."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [N, K])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row = tl.program_id(0) // tl.cdiv(n, N) * M
    column = tl.program_id(0) % tl.cdiv(n, N) * N
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        total = tl.dot(left.load([row, at]), right.load([column, at]).T, total)
    out.store([row, column], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, scale, length, DIM: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Causal attention of one head in each program_id(1); rows of DIM float16."""
    head = tl.program_id(1).to(tl.int64) * length * DIM
    first = tl.program_id(0) * M
    queries = tl.make_tensor_descriptor(q + head, [length, DIM], [DIM, 1], [M, DIM])
    keys = tl.make_tensor_descriptor(k + head, [length, DIM], [DIM, 1], [N, DIM])
    values = tl.make_tensor_descriptor(v + head, [length, DIM], [DIM, 1], [N, DIM])
    result = tl.make_tensor_descriptor(out + head, [length, DIM], [DIM, 1], [M, DIM])
    mine = queries.load([first, 0])
    rows, columns = first + tl.arange(0, M), tl.arange(0, N)
    largest = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    sums = tl.zeros((M, DIM), tl.float32)
    for at in range(0, first + M, N):
        score = tl.dot(mine, keys.load([at, 0]).T) * scale
        score = tl.where(rows[:, None] >= at + columns[None, :], score, float("-inf"))
        higher = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(largest - higher)
        total = total * shrink + tl.sum(weight, 1)
        sums = tl.dot(weight.to(tl.float16), values.load([at, 0]), sums * shrink[:, None])
        largest = higher
    result.store([first, 0], (sums / total[:, None]).to(tl.float16))


@triton.jit
def product(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a b, of n rows of n float16; CTAs take tiles of eight rows of tiles, column by column."""
    high, wide = tl.cdiv(n, M), tl.cdiv(n, N)
    band = tl.program_id(0) // (8 * wide) * 8
    within = tl.program_id(0) % (8 * wide)
    depth = min(high - band, 8)
    top, side = (band + within % depth) * M, within // depth * N
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = a + ((top + rows) % n)[:, None] * n + inner[None, :]
    right = b + inner[:, None] * n + ((side + columns) % n)[None, :]
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, tl.cdiv(n, K)):
        rest = n - at * K
        one = tl.load(left, mask=inner[None, :] < rest, other=0.0)
        other = tl.load(right, mask=inner[:, None] < rest, other=0.0)
        total = tl.dot(one, other, total)
        left += K
        right += K * n
    inside = (top + rows < n)[:, None] & (side + columns < n)[None, :]
    tl.store(c + (top + rows)[:, None] * n + (side + columns)[None, :], total.to(tl.float16), mask=inside)


# Tiles, warps and stages among which the product's autotuner chooses.
TILES = (
    (128, 256, 64, 8, 3),
    (64, 256, 32, 4, 4),
    (128, 128, 32, 4, 4),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (128, 32, 32, 4, 4),
    (64, 32, 32, 2, 5),
    (32, 64, 32, 2, 5),
)
MOST_CTAS = 8 * 108  # small tiles of large products are not tried


def _halves(gpu: simt.GPU, *shape: int) -> Any:
    return gpu.array(np.random.default_rng(0).standard_normal(shape, np.float32).astype(np.float16))


@triton.jit
def zero(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.zeros((BLOCK,), tl.float32))


def _flush(gpu: simt.GPU, megabytes: int = 0) -> None:
    """What Triton's do_bench does before each launch, of 256 MB: the L2 is then full of modified lines."""
    if megabytes:
        elements = megabytes << 18
        gpu.triton(zero)[elements // 4096](gpu.empty(elements, np.float32), BLOCK=4096)


def run(gpu: simt.GPU, name: str, *sizes: str) -> None:
    """add: n, block. gemm: m, n, k, and a block of each. attention: batch, heads, length, dimension.

    product: n; each of TILES that makes no more than MOST_CTAS, and then the fastest again.
    After n and block of `add`, and n of `product`: megabytes that are zeroed before each launch.
    """
    of = [int(size) for size in sizes]
    if name == "add":
        n, block, *zeroed = of
        x, y, z = (gpu.array(np.ones(n, np.float32)) for _ in range(3))
        _flush(gpu, *zeroed)
        gpu.triton(add)[triton.cdiv(n, block)](x, y, z, n, BLOCK=block)
    elif name == "gemm":
        m, n, k, block_m, block_n, block_k = of
        grid = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        gpu.triton(gemm)[grid](
            _halves(gpu, m, k), _halves(gpu, n, k), gpu.empty((m, n), np.float16), m, n, k,
            M=block_m, N=block_n, K=block_k, num_warps=4, num_stages=4,
        )  # fmt: skip
    elif name == "product":
        n, *zeroed = of
        a, b, c = _halves(gpu, n, n), _halves(gpu, n, n), gpu.empty((n, n), np.float16)

        def launch(tile: tuple[int, ...]) -> float:
            m, wide, k, warps, stages = tile
            _flush(gpu, *zeroed)
            grid = triton.cdiv(n, m) * triton.cdiv(n, wide)
            done = gpu.triton(product)[grid](a, b, c, n, M=m, N=wide, K=k, num_warps=warps, num_stages=stages)
            return float(done.cycles)

        tried = [tile for tile in TILES if triton.cdiv(n, tile[0]) * triton.cdiv(n, tile[1]) <= MOST_CTAS]
        launch(min(tried, key=launch))
    else:
        batch, heads, length, dim = of
        q, k, v, out = (_halves(gpu, batch * heads, length, dim) for _ in range(4))
        gpu.triton(attention)[length // 64, batch * heads](
            q, k, v, out, dim**-0.5, length, DIM=dim, M=64, N=64
        )
