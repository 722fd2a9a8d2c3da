"""Launches of the kernels in systematic_unseen_2.cu."""

from __future__ import annotations

import numpy as np
from systematic_inputs import Launch, Maker, blocks, floats, lists, words, zeros

import simt


def rank_letters(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, blocks_of_64 = 500_000, 60_000
    bits = rng.integers(0, 1 << 63, (blocks_of_64 + 1, 2), np.uint64)
    # Counts only have to lead to places that exist.
    counts = gpu.array(rng.integers(0, 64 * blocks_of_64 - 64, (blocks_of_64 + 1, 4)).astype(np.uint32))
    given = (counts, gpu.array(bits), words(gpu, rng, 64 * blocks_of_64, n))
    return "rank_letters", -(-n // 128), 128, 0, (*given, zeros(gpu, n, of=np.int32), n, 6)


def cell_forces(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, cells = 320_000, 220
    place = rng.random((n, 2))
    cell = (place[:, 1] * cells).astype(np.int64) * cells + (place[:, 0] * cells).astype(np.int64)
    order = np.argsort(cell, kind="stable")
    particle = np.ones((n, 4), np.float32)
    particle[:, :2] = place[order]
    begin = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=cells * cells))]).astype(np.int32)
    return (
        "cell_forces",
        -(-n // 128),
        128,
        0,
        (gpu.array(particle), gpu.array(begin), zeros(gpu, n, 4), n, cells),
    )


def running_median(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, threads = 900_000, 160
    return (
        "running_median",
        -(-n // threads),
        threads,
        4 * (threads + 8),
        (floats(gpu, rng, n), zeros(gpu, n), n),
    )


def run_lengths(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n = 1_500_000
    given = gpu.array(
        np.repeat(rng.integers(0, 200, n // 3), rng.integers(1, 6, n // 3))[:n].astype(np.uint8)
    )
    n = given.shape[0]
    out = (zeros(gpu, n, of=np.uint8), zeros(gpu, n, of=np.uint8), zeros(gpu, -(-n // 32), of=np.int32))
    return "run_lengths", -(-n // 256), 256, 0, (given, *out, n)


def resize_cubic(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w, h, wide, high = 640, 420, 1000, 656
    given = (floats(gpu, rng, h, w), zeros(gpu, high, wide), w, h, wide, high)
    return "resize_cubic", blocks(wide, high, (16, 16)), (16, 16), 0, given


def lu_batch(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    count = 11_000
    matrix = rng.random((count, 16, 16), np.float32) + 16 * np.eye(16, dtype=np.float32)
    return "lu_batch", count // 2, (64, 2), 0, (gpu.array(matrix), zeros(gpu, count, 16, 16), count)


def top_four(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, columns = 16_000, 300
    return (
        "top_four",
        rows // 4,
        128,
        0,
        (floats(gpu, rng, rows, columns), zeros(gpu, rows, 4), rows, columns),
    )


def lattice_step(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w, h = 768, 512
    given = gpu.array(0.1 + rng.random((9, h, w), np.float32) / 50)
    return "lattice_step", (w // 128, h), 128, 0, (given, zeros(gpu, 9, h, w), w, h, 1.2)


def stab_tree(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    n, leaves = 240_000, 4096
    low = np.sort(rng.random(leaves)).astype(np.float32)
    high = (low + rng.exponential(4.0 / leaves, leaves)).astype(np.float32)
    node = np.zeros(
        2 * leaves - 1, np.dtype([("low", "f4"), ("high", "f4"), ("left", "i4"), ("right", "i4")])
    )
    node["low"][leaves - 1 :], node["high"][leaves - 1 :], node["left"][leaves - 1 :] = low, high, -1
    for i in range(leaves - 2, -1, -1):  # a heap: the children of i are 2 i + 1 and 2 i + 2
        a, b = 2 * i + 1, 2 * i + 2
        node[i] = min(node["low"][a], node["low"][b]), max(node["high"][a], node["high"][b]), a, b
    tree = gpu.array(node.view(np.int32).reshape(-1, 4))
    return "stab_tree", -(-n // 96), 96, 0, (tree, floats(gpu, rng, n), zeros(gpu, n, of=np.int32), n)


def decode_prefix(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    blocks_of_text, letters = 400_000, 12
    # Codes of 2 to 8 bits: the low bits of the index are the code.
    length = np.array([2 + (i & 3) + (i >> 2 & 3) for i in range(256)])
    table = gpu.array((rng.integers(0, 256, 256) << 8 | length).astype(np.uint16))
    begin = (np.arange(blocks_of_text) * 60).astype(np.int32)
    bits = gpu.array(rng.integers(0, 1 << 32, blocks_of_text * 60 // 32 + 8, np.uint32))
    text = zeros(gpu, letters, blocks_of_text, of=np.uint8)
    return (
        "decode_prefix",
        -(-blocks_of_text // 128),
        128,
        0,
        (bits, gpu.array(begin), table, text, blocks_of_text, letters),
    )


def winograd_input(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    w = h = 58
    channels, across = 384, 28
    tiles = across * across
    out = zeros(gpu, 16, channels, tiles)
    return (
        "winograd_input",
        (-(-tiles // 128), channels),
        128,
        0,
        (floats(gpu, rng, channels, h, w), out, w, h, across, tiles),
    )


def sampled_product(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, width = 9000, 96
    begin, column = lists(gpu, rng, rows, 3, rows)
    row = np.repeat(np.arange(rows), np.diff(begin.numpy())).astype(np.int32)
    n = len(row)
    given = (gpu.array(row), column, floats(gpu, rng, rows, width), floats(gpu, rng, rows, width))
    return "sampled_product", -(-n // 6), 192, 0, (*given, zeros(gpu, n), n, width)


def bag_sums(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    bags, rows = 12_000, 20_000
    begin, index = lists(gpu, rng, bags, 6, rows)
    return (
        "bag_sums",
        bags // 4,
        (32, 4),
        0,
        (floats(gpu, rng, rows, 128), begin, index, zeros(gpu, bags, 128), bags),
    )


def quantize_rows(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
    rows, columns = 3600, 512
    out = (zeros(gpu, rows, columns, of=np.int8), zeros(gpu, rows))
    return "quantize_rows", rows, 128, 0, (floats(gpu, rng, rows, columns), *out, columns)


UNSEEN_2: dict[str, Maker] = {
    "rank_letters": rank_letters,
    "cell_forces": cell_forces,
    "running_median": running_median,
    "run_lengths": run_lengths,
    "resize_cubic": resize_cubic,
    "lu_batch": lu_batch,
    "top_four": top_four,
    "lattice_step": lattice_step,
    "stab_tree": stab_tree,
    "decode_prefix": decode_prefix,
    "winograd_input": winograd_input,
    "sampled_product": sampled_product,
    "bag_sums": bag_sums,
    "quantize_rows": quantize_rows,
}
