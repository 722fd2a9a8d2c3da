"""The kernels of systematic_study.py, with a launch of each, and the half that each belongs to.

Their sources are in tests/kernels, in systematic_fresh.cu and in systematic_unseen.cu; those of the second
unseen set are in systematic_unseen_2.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from systematic_inputs import (
    Launch,
    Maker,
    blocks,
    floats,
    image,
    lists,
    sparse,
    texts,
    words,
    zeros,
)
from systematic_unseen_2 import UNSEEN_2

import simt

SPLIT_SEED = 20
HALVES = ("development", "held-out")
SETS = (*HALVES, "fresh", "unseen", "unseen-2")


def heat(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1280
    return "heat_2d", blocks(n, n, (32, 8)), (32, 8), 0, (floats(gpu, rng, n, n), zeros(gpu, n, n), n, n, 0.1)


def stencil(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 21
    return "stencil_1d", n // 256, 256, 4 * 262, (floats(gpu, rng, n), zeros(gpu, n), n)


def laplace(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    x, y, z = 1024, 512, 2
    u = gpu.array(rng.random((z, y, x)))
    return "laplace_3d", blocks(x, y, (32, 4)), (32, 4), 0, (u, zeros(gpu, z, y, x, of=np.float64), x, y, z)


def life(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1200
    now = gpu.array(rng.integers(0, 2, (n, n)).astype(np.uint8))
    return "life", blocks(n, n, (16, 8)), (16, 8), 0, (now, zeros(gpu, n, n, of=np.uint8), n)


def transpose(kernel: str) -> Maker:
    def of(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
        n = 2048
        return kernel, blocks(n, n, (32, 32)), (32, 8), 0, (floats(gpu, rng, n, n), zeros(gpu, n, n), n, n)

    return of


def gravity(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 18
    body = floats(gpu, rng, n, 4)
    return "gravity", n // 128, 128, 16 * 128, (body, zeros(gpu, n, 4), 4, 0.01)


def mandelbrot(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w, h = 1024, 512
    out = zeros(gpu, h, w, of=np.uint16)
    return "mandelbrot", blocks(w, h, (16, 8)), (16, 8), 0, (out, w, h, -2.2, -1.0, 3.0 / w, 10)


def nearest(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, k = 1 << 16, 2
    arguments = (floats(gpu, rng, n, 2), floats(gpu, rng, k, 2), zeros(gpu, n, of=np.int32))
    return "nearest_center", n // 128, 128, 0, (*arguments, zeros(gpu, k, 3), n, k)


def black_scholes(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 18
    given = [gpu.array(rng.random(n, np.float32) + 0.5) for _ in range(3)]
    return "black_scholes", n // 128, 128, 0, (*given, zeros(gpu, n), zeros(gpu, n), 0.02, 0.3, n)


def lorenz(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 19
    return "lorenz", n // 64, 64, 0, (gpu.array(rng.random((n, 3))), 1, 0.01)


def gemm_naive(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    m, n, k = 1024, 512, 16
    arguments = (floats(gpu, rng, m, k), floats(gpu, rng, k, n), zeros(gpu, m, n))
    return "gemm_naive", blocks(n, m, (32, 8)), (32, 8), 0, (*arguments, m, n, k)


def gemm_registers(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    m, n, k = 2048, 2048, 16
    arguments = (floats(gpu, rng, m, k), floats(gpu, rng, k, n), zeros(gpu, m, n))
    return "gemm_registers", (n // 64, m // 64), 64, 0, (*arguments, n, k)


def gemv(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    batch, m, n = 6000, 4, 96
    arguments = (floats(gpu, rng, batch, m, n), floats(gpu, rng, batch, n), zeros(gpu, batch, m))
    return "gemv_batched", batch, 128, 0, (*arguments, m, n)


def softmax(kernel: str) -> Maker:
    def of(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
        rows, columns = 24_000, 64
        given = (floats(gpu, rng, rows, columns), zeros(gpu, rows, columns))
        return kernel, rows // 4, (32, 4), 0, (*given, rows, columns)

    return of


def layer_norm(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, columns = 3000, 256
    given = (floats(gpu, rng, rows, columns), floats(gpu, rng, columns), floats(gpu, rng, columns))
    return "layer_norm", rows, 128, 0, (*given, zeros(gpu, rows, columns), columns, 1e-5)


def attention(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    length, depth = 1024, 8
    given = [floats(gpu, rng, length, depth) for _ in range(3)]
    return "attention", length, 64, 4 * length, (*given, zeros(gpu, length, depth), length, depth, 0.25)


def convolve(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, size = 768, 3
    given = (floats(gpu, rng, n, n), floats(gpu, rng, size, size), zeros(gpu, n, n))
    return "convolve", blocks(n, n, (16, 8)), (16, 8), 0, (*given, n, n, size)


def pool(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, columns = 3000, 2048
    out = [zeros(gpu, rows // 2, columns // 2) for _ in range(2)]
    where = zeros(gpu, rows // 2, columns // 2, of=np.uint8)
    return (
        "pool",
        (columns // 64, rows // 2),
        32,
        0,
        (floats(gpu, rng, rows, columns), *out, where, rows, columns),
    )


def cross_entropy(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, classes = 20_000, 128
    given = (floats(gpu, rng, rows, classes), words(gpu, rng, classes, rows))
    return "cross_entropy", rows, 32, 0, (*given, zeros(gpu, rows), zeros(gpu, rows, classes), classes)


def gelu(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 21
    return "gelu", n // 256, 256, 0, (floats(gpu, rng, n), zeros(gpu, n), n)


def xorshift(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 17
    state = gpu.array(rng.integers(1, 1 << 31, n).astype(np.uint32))
    return "xorshift", n // 64, 64, 0, (state, zeros(gpu, 20 * n, of=np.uint32), 20)


def sha256(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 14
    given = gpu.array(rng.integers(0, 1 << 31, (n, 16)).astype(np.uint32))
    return "sha256", n // 32, 32, 0, (given, zeros(gpu, n, 8, of=np.uint32), n)


def aes_round(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 6000
    given = [gpu.array(rng.integers(0, 256, size).astype(np.uint8)) for size in (n * 64 * 16, 16)]
    return "aes_round", n, 64, 0, (*given, zeros(gpu, n * 64 * 16, of=np.uint8))


def hashes(kernel: str, seeded: bool, width: Any, count: int) -> Maker:
    def of(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
        text, begin = texts(gpu, rng, count)
        seed = (0x9747B28C,) if seeded else ()
        return kernel, count // 64, 64, 0, (text, begin, zeros(gpu, count, of=width), *seed, count)

    return of


def match_naive(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, m = 1 << 20, 4
    text = gpu.array(rng.integers(97, 100, n).astype(np.uint8))
    wanted = gpu.array(np.array([97, 98, 97, 99], np.uint8))
    return "match_naive", n // 128, 128, 0, (text, n, wanted, m, zeros(gpu, n, of=np.uint8))


def sum_tree(kernel: str) -> Maker:
    def of(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
        n, ctas = 1 << 22, 5000
        return kernel, ctas, 256, 1024, (floats(gpu, rng, n), zeros(gpu, ctas), n)

    return of


def range_groups(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 20
    out = [zeros(gpu, n // 32, of=np.int32) for _ in range(2)]
    return "range_groups", n // 128, 128, 0, (words(gpu, rng, 1000, n), *out, n)


def dot(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, quads = 12_000, 32
    given = [floats(gpu, rng, rows, quads, 4) for _ in range(2)]
    return "dot", rows, 32, 0, (*given, zeros(gpu, rows), quads)


def scan_segments(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 20
    head = gpu.array((rng.random(n) < 0.1).astype(np.uint8))
    return "scan_segments", n // 32, 32, 0, (floats(gpu, rng, n), head, zeros(gpu, n))


def sort_bitonic(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    ctas, n = 1500, 256
    return "sort_bitonic", ctas, 128, 4 * n, (floats(gpu, rng, ctas, n), n)


def bitonic_step(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 21
    given = (gpu.array(rng.permutation(n).astype(np.uint32)), gpu.array(np.arange(n, dtype=np.uint32)))
    return "bitonic_step", n // 128, 128, 0, (*given, 1 << 12, 1 << 9)


def merge_runs(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, width = 1 << 18, 4096
    keys = np.sort(rng.integers(0, 1 << 30, n).astype(np.int32).reshape(-1, width), axis=1).ravel()
    return "merge_runs", n // 128, 128, 0, (gpu.array(keys), zeros(gpu, n, of=np.int32), width, n)


def histogram(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, ctas = 1 << 20, 2048
    quads = gpu.array((rng.random((n, 4)) ** 2 * 256).astype(np.uint8))
    return "histogram_shared", ctas, 128, 0, (quads, zeros(gpu, 256, of=np.uint32), n)


def spmv(kernel: str, rows: int, threads_of_row: int) -> Maker:
    def of(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
        matrix = sparse(gpu, rng, rows, 12)
        grid = -(-rows * threads_of_row // 128)
        return kernel, grid, 128, 0, (*matrix, floats(gpu, rng, rows), zeros(gpu, rows), rows)

    return of


def spmv_ell(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, width = 1 << 17, 12
    given = (words(gpu, rng, rows, width, rows), floats(gpu, rng, width, rows), floats(gpu, rng, rows))
    return "spmv_ell", rows // 128, 128, 0, (*given, zeros(gpu, rows), rows, width)


def pagerank(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 15
    begin, source, _ = sparse(gpu, rng, n, 8)
    degree = gpu.array(rng.integers(1, 20, n).astype(np.int32))
    return "pagerank", n // 64, 64, 0, (begin, source, degree, floats(gpu, rng, n), zeros(gpu, n), n, 0.85)


def look_up(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, slots = 1 << 17, 1 << 20
    table = gpu.array(rng.integers(0, 1 << 62, slots).astype(np.uint64))
    table = gpu.array(np.where(rng.random(slots) < 0.6, table.numpy(), np.uint64(2**64 - 1)))
    key = gpu.array(rng.integers(0, 1 << 31, n).astype(np.uint32))
    return "look_up", n // 128, 128, 0, (table, slots, key, zeros(gpu, n, of=np.int32), n)


def dft(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 16
    return (
        "fft_pass",
        n * 16 // 128,
        128,
        0,
        (floats(gpu, rng, 32 * n, 2), zeros(gpu, 32 * n, 2), 32 * n, 1 << 6),
    )


def fft_shared(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    ctas, bits = 6000, 6
    given = (floats(gpu, rng, ctas << bits, 2), zeros(gpu, ctas << bits, 2))
    return "fft_shared", ctas, 64, 8 << bits, (*given, bits, np.float32(-1))


def haar(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 21
    return "haar", n // 128, 128, 0, (floats(gpu, rng, n, 2), zeros(gpu, n), zeros(gpu, n), n)


def padded_copy(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 20
    return "padded_copy", n // 64, 64, 0, (words(gpu, rng, 1000, n), zeros(gpu, n, of=np.int32), n)


def division(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1 << 17
    given = [gpu.array(rng.integers(1, 1 << 60, n)) for _ in range(2)]
    out = [zeros(gpu, 2 * n, of=np.int64), zeros(gpu, 2 * n, of=np.uint64)]
    return "division", n // 64, 64, 0, (*given, *out, n)


# Kernels of systematic_fresh.cu.


def triangular(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 26_000
    return "triangular_sums", -(-n // 4), 128, 0, (floats(gpu, rng, 8 * n), zeros(gpu, n), n, 80)


def collatz(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 230_000
    return "collatz", -(-n // 192), 192, 0, (zeros(gpu, n, of=np.int32), 1, n)


def chase(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, words_of = 300_000, 1 << 20
    following = gpu.array(rng.permutation(words_of).astype(np.int32))
    return "chase", -(-n // 96), 96, 0, (following, zeros(gpu, n, of=np.int32), n, 6)


def scatter(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, bins = 700_000, 50_000
    given = (words(gpu, rng, bins, n), floats(gpu, rng, n))
    return "scatter_add", -(-n // 256), 256, 0, (*given, zeros(gpu, bins), n)


def matmul_double(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    m, n, k = 720, 650, 40
    given = [gpu.array(rng.random(shape)) for shape in ((m, k), (k, n))]
    return (
        "matmul_double",
        blocks(n, m, (16, 16)),
        (16, 16),
        0,
        (*given, zeros(gpu, m, n, of=np.float64), m, n, k),
    )


def jacobi(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    x, y, z = 200, 150, 40
    given = (floats(gpu, rng, z, y, x), zeros(gpu, z, y, x))
    return "jacobi_3d", (-(-x // 32), -(-y // 4), z), (32, 4), 0, (*given, x, y, z)


def monte_carlo(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    ctas, tries = 3400, 24
    return "monte_carlo_pi", ctas, 128, 0, (zeros(gpu, 128 * ctas), tries)


def julia(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w, h = 1100, 700
    return "julia", blocks(w, h, (32, 4)), (32, 4), 0, (zeros(gpu, h, w, of=np.uint8), w, h, 48)


def split_records(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 600_000
    return "split_records", -(-n // 160), 160, 0, (floats(gpu, rng, n, 7), zeros(gpu, 7, n), n)


def argmax_rows(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, columns = 17_000, 77
    given = floats(gpu, rng, rows, columns)
    return "argmax_rows", -(-rows // 8), 256, 0, (given, zeros(gpu, rows, of=np.int32), rows, columns)


def search_sorted(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, size = 340_000, 20_000
    table = gpu.array(np.sort(rng.integers(0, 1 << 30, size)).astype(np.int32))
    given = (table, size, words(gpu, rng, 1 << 30, n))
    return "search_sorted", -(-n // 128), 128, 0, (*given, zeros(gpu, n, of=np.int32), n)


def depthwise(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w, h, channels = 130, 66, 60
    given = (floats(gpu, rng, channels, h, w), floats(gpu, rng, channels, 5, 5))
    return "depthwise", (-(-w // 64), h, channels), 64, 0, (*given, zeros(gpu, channels, h, w), w, h)


def cholesky(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 260_000
    return "cholesky", -(-n // 64), 64, 0, (floats(gpu, rng, 21, n), zeros(gpu, 21, n), n)


def bit_reversal(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    bits = 20
    n = 1 << bits
    return "bit_reversal", n // 256, 256, 0, (floats(gpu, rng, n, 2), zeros(gpu, n, 2), bits)


def compact(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 900_000
    ctas = -(-n // 256)
    out = (zeros(gpu, 256 * ctas), zeros(gpu, ctas, of=np.int32))
    return "compact", ctas, 256, 0, (floats(gpu, rng, n), *out, n)


def scan_block(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 720_000
    return "scan_block", -(-n // 192), 192, 0, (words(gpu, rng, 100, n), zeros(gpu, n, of=np.int32), n)


# Kernels of systematic_unseen.cu.


def radix_count(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    ctas, threads = 5400, 128
    n = 8 * ctas * threads
    given = gpu.array(rng.integers(0, 1 << 32, n, np.uint32))
    return "radix_count", ctas, threads, 0, (given, zeros(gpu, 64, ctas, of=np.uint32), n, 12)


def level_solve(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, n = 800_000, 600_000
    begin, column = lists(gpu, rng, rows, 7, rows)
    row = gpu.array(np.sort(rng.permutation(rows)[:n]).astype(np.int32))
    value = floats(gpu, rng, column.shape[0])
    given = (row, begin, column, value, floats(gpu, rng, rows), floats(gpu, rng, rows))
    return "level_solve", -(-n // 128), 128, 0, (*given, zeros(gpu, rows), n)


def invert_small(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 650_000
    matrix = rng.random((n, 4, 4), np.float32) + 4 * np.eye(4, dtype=np.float32)
    return "invert_small", -(-n // 128), 128, 0, (gpu.array(matrix), zeros(gpu, n, 4, 4), n)


def ray_march(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w, h = 1200, 640
    return "ray_march", blocks(w, h, (16, 8)), (16, 8), 0, (zeros(gpu, h, w), w, h, 0.4)


def search_text(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    piece, ctas, length = 32, 1250, 6
    n = piece * ctas * 128
    shift = np.full(256, length, np.uint8)
    wanted = np.array([97, 98, 97, 99, 98, 100], np.uint8)
    shift[wanted[:-1]] = [length - 1 - i for i in range(length - 1)]
    given = [gpu.array(x) for x in (rng.integers(97, 105, n).astype(np.uint8), wanted, shift)]
    return "search_text", ctas, 128, 0, (*given, zeros(gpu, 128 * ctas, of=np.int32), n, length, piece)


def join_probe(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, rows, buckets = 560_000, 200_000, 60_000
    build = rng.integers(0, 50_000, rows).astype(np.uint32)
    bucket = (build * np.uint32(2654435761)) % np.uint32(buckets)
    begin = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=buckets))]).astype(np.int32)
    key = gpu.array(rng.integers(0, 60_000, n).astype(np.uint32))
    sorted_rows = gpu.array(build[np.argsort(bucket, kind="stable")])
    given = (key, gpu.array(begin), sorted_rows, words(gpu, rng, 1000, rows))
    return "join_probe", -(-n // 128), 128, 0, (*given, zeros(gpu, n, of=np.int64), n, buckets)


def barrier_option(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 560_000
    return "barrier_option", -(-n // 128), 128, 0, (zeros(gpu, n), n, 24, 0.85)


def blur_tiled(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w, h = 900, 560
    given = (floats(gpu, rng, h, w), floats(gpu, rng, 7, 7))
    return "blur_tiled", blocks(w, h, (32, 8)), (32, 8), 0, (*given, zeros(gpu, h, w), w, h)


def color_round(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 600_000
    graph = lists(gpu, rng, n, 8, n)
    priority = gpu.array(rng.integers(0, 1 << 32, n, np.uint32))
    before = gpu.array(np.where(rng.random(n) < 0.3, 0, -1).astype(np.int32))
    return "color_round", -(-n // 192), 192, 0, (*graph, priority, before, zeros(gpu, n, of=np.int32), n, 1)


def partition_block(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    ctas = 3300
    n = 256 * ctas
    out = (zeros(gpu, n), zeros(gpu, ctas, of=np.int32))
    return "partition_block", ctas, 256, 0, (floats(gpu, rng, n), *out, n, 0.4)


def edit_distance(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    pairs, length = 1200, 40
    given = [gpu.array(rng.integers(97, 101, (pairs, length)).astype(np.uint8)) for _ in range(2)]
    return "edit_distance", pairs, 64, 0, (*given, zeros(gpu, pairs, of=np.int32), length)


def ising(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w, h = 1536, 800
    spin = gpu.array(rng.choice(np.array([-1, 1], np.int8), (h, w)))
    chance = gpu.array(np.array([1, 1, 0.5, 0.2, 0.05], np.float32))
    return "ising", (w // 256, h), 128, 0, (spin, chance, w, h, 0, 12345)


def spmv_blocked(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows = 3600
    begin, column = lists(gpu, rng, rows, 5, rows)
    block = floats(gpu, rng, column.shape[0], 8, 8)
    given = (begin, column, block, floats(gpu, rng, 8 * rows))
    return "spmv_blocked", -(-rows // 4), 128, 0, (*given, zeros(gpu, 8 * rows), rows)


# Name: file of tests/kernels that has its source, and its launch; or a workload and its size.
KERNELS: dict[str, tuple[str, Maker] | int] = {
    "heat": ("test_stencils", heat),
    "stencil": ("test_stencils", stencil),
    "laplace": ("test_stencils", laplace),
    "life": ("test_stencils", life),
    "transpose_naive": ("test_stencils", transpose("transpose_naive")),
    "transpose_padded": ("test_stencils", transpose("transpose_padded")),
    "gravity": ("test_simulations", gravity),
    "mandelbrot": ("test_simulations", mandelbrot),
    "nearest_center": ("test_simulations", nearest),
    "black_scholes": ("test_simulations", black_scholes),
    "lorenz": ("test_simulations", lorenz),
    "gemm_naive": ("test_linear_algebra", gemm_naive),
    "gemm_registers": ("test_linear_algebra", gemm_registers),
    "gemv": ("test_linear_algebra", gemv),
    "softmax": ("test_neural", softmax("softmax")),
    "softmax_online": ("test_neural", softmax("softmax_online")),
    "layer_norm": ("test_neural", layer_norm),
    "attention": ("test_neural", attention),
    "convolve": ("test_neural", convolve),
    "pool": ("test_neural", pool),
    "cross_entropy": ("test_neural", cross_entropy),
    "gelu": ("test_neural", gelu),
    "xorshift": ("test_random_and_hashes", xorshift),
    "sha256": ("test_random_and_hashes", sha256),
    "aes_round": ("test_random_and_hashes", aes_round),
    "fnv1a": ("test_random_and_hashes", hashes("fnv1a", False, np.uint64, 1 << 17)),
    "murmur3": ("test_random_and_hashes", hashes("murmur3", True, np.uint32, 1 << 18)),
    "crc32": ("test_random_and_hashes", hashes("crc32", False, np.uint32, 1 << 16)),
    "match_naive": ("test_random_and_hashes", match_naive),
    "sum_tree": ("test_reductions", sum_tree("sum_tree")),
    "sum_shuffle": ("test_reductions", sum_tree("sum_shuffle")),
    "range_groups": ("test_reductions", range_groups),
    "dot": ("test_reductions", dot),
    "scan_segments": ("test_scans", scan_segments),
    "sort_bitonic": ("test_sorts", sort_bitonic),
    "bitonic_step": ("test_sorts", bitonic_step),
    "merge_runs": ("test_sorts", merge_runs),
    "histogram": ("test_sorts", histogram),
    "spmv_scalar": ("test_sparse_and_graphs", spmv("spmv_scalar", 1 << 16, 1)),
    "spmv_vector": ("test_sparse_and_graphs", spmv("spmv_vector", 1 << 15, 32)),
    "spmv_ell": ("test_sparse_and_graphs", spmv_ell),
    "pagerank": ("test_sparse_and_graphs", pagerank),
    "look_up": ("test_sparse_and_graphs", look_up),
    "fft_pass": ("test_signals", dft),
    "fft_shared": ("test_signals", fft_shared),
    "haar": ("test_signals", haar),
    "padded_copy": ("test_asynchronous", padded_copy),
    "division": ("test_language", division),
    "workload-fir": 1 << 19,
    "workload-aes": 1 << 20,
    "workload-relu": 1 << 21,
    "workload-matmul": 1 << 14,
    "workload-convolution": 4096,
    "workload-spmv": 8192,
}

FRESH: dict[str, Maker] = {
    "sobel": image("sobel", 1100, 700, (32, 8), np.uint8),
    "bilateral": image("bilateral", 820, 660, (16, 16), np.float32, 3.0),
    "triangular_sums": triangular,
    "collatz": collatz,
    "chase": chase,
    "scatter_add": scatter,
    "matmul_double": matmul_double,
    "jacobi_3d": jacobi,
    "monte_carlo_pi": monte_carlo,
    "julia": julia,
    "split_records": split_records,
    "argmax_rows": argmax_rows,
    "search_sorted": search_sorted,
    "depthwise": depthwise,
    "cholesky": cholesky,
    "bit_reversal": bit_reversal,
    "compact": compact,
    "scan_block": scan_block,
}
UNSEEN: dict[str, Maker] = {
    "radix_count": radix_count,
    "level_solve": level_solve,
    "invert_small": invert_small,
    "despeckle": image("despeckle", 1040, 720, (32, 8), np.uint8, 30),
    "ray_march": ray_march,
    "search_text": search_text,
    "join_probe": join_probe,
    "barrier_option": barrier_option,
    "blur_tiled": blur_tiled,
    "color_round": color_round,
    "partition_block": partition_block,
    "edit_distance": edit_distance,
    "ising": ising,
    "spmv_blocked": spmv_blocked,
}
KERNELS |= {name: ("systematic_fresh.cu", maker) for name, maker in FRESH.items()}
KERNELS |= {name: ("systematic_unseen.cu", maker) for name, maker in UNSEEN.items()}
KERNELS |= {name: ("systematic_unseen_2.cu", maker) for name, maker in UNSEEN_2.items()}
LATER = {
    **dict.fromkeys(FRESH, "fresh"),
    **dict.fromkeys(UNSEEN, "unseen"),
    **dict.fromkeys(UNSEEN_2, "unseen-2"),
}


def half_of() -> dict[str, str]:
    """Half of each kernel, by a split that does not change, or the later set that it belongs to."""
    names = sorted(KERNELS.keys() - LATER.keys())
    random.Random(SPLIT_SEED).shuffle(names)
    halves = {name: HALVES[i % 2] for i, name in enumerate(names)}
    return halves | LATER
