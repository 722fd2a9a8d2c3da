"""Triton kernels whose cycles on an RTX 5090 FlashGPU-Sim published: `run(gpu, name, sizes...)`."""

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


def _halves(gpu: simt.GPU, *shape: int) -> Any:
    return gpu.array(np.random.default_rng(0).standard_normal(shape, np.float32).astype(np.float16))


def run(gpu: simt.GPU, name: str, *sizes: str) -> None:
    """add: n, block. gemm: m, n, k, and a block of each. attention: batch, heads, length, dimension."""
    of = [int(size) for size in sizes]
    if name == "add":
        n, block = of
        x, y, z = (gpu.array(np.ones(n, np.float32)) for _ in range(3))
        gpu.triton(add)[triton.cdiv(n, block)](x, y, z, n, BLOCK=block)
    elif name == "gemm":
        m, n, k, block_m, block_n, block_k = of
        grid = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        gpu.triton(gemm)[grid](
            _halves(gpu, m, k), _halves(gpu, n, k), gpu.empty((m, n), np.float16), m, n, k,
            M=block_m, N=block_n, K=block_k, num_warps=4, num_stages=4,
        )  # fmt: skip
    else:
        batch, heads, length, dim = of
        q, k, v, out = (_halves(gpu, batch * heads, length, dim) for _ in range(4))
        gpu.triton(attention)[length // 64, batch * heads](
            q, k, v, out, dim**-0.5, length, DIM=dim, M=64, N=64
        )
