"""The kernels of few_waves_second.cu: their inputs, for any number of CTAs, and the values that they give."""

from __future__ import annotations

from typing import Any

import numpy as np
from few_waves_kernels import Kernel, Made, Values, counted
from systematic_inputs import floats, words, zeros

import simt


def placements(n: int, rows: int) -> list[tuple[int, int, int]]:
    """Columns and diagonals, as bit masks, that queens in the first rows of a board attack."""
    found = [(0, 0, 0)]
    for _ in range(rows):
        found = [
            (c | q, (d | q) << 1, (e | q) >> 1)
            for c, d, e in found
            for q in (1 << k for k in range(n))
            if not (c | d | e) & q
        ]
    return found


def completions(n: int, c: int, d: int, e: int) -> int:
    if c == (1 << n) - 1:
        return 1
    free = (1 << k for k in range(n))
    return sum(completions(n, c | q, (d | q) << 1, (e | q) >> 1) for q in free if not (c | d | e) & q)


def queens_count(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n = 8
    known = placements(n, 4)
    chosen = rng.integers(0, len(known), 64 * ctas)
    begin, ways = gpu.array(np.array(known, np.uint32)[chosen]), zeros(gpu, 64 * ctas, of=np.int32)
    return (begin, ways, n), lambda: [(ways, np.array([completions(n, *x) for x in known])[chosen], 0)]


def ell_product(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    rows, width = 128 * ctas, 24
    length = (1 + 2 * rng.pareto(1.5, rows)).clip(0, width).astype(int)
    column = rng.integers(0, rows, (width, rows)).astype(np.int32)
    column[np.arange(width)[:, None] >= length] = -1
    value, x, y = floats(gpu, rng, width, rows), floats(gpu, rng, rows), zeros(gpu, rows)

    def values() -> Values:
        terms = np.where(column >= 0, value.numpy() * x.numpy()[column], 0)
        return [(y, terms.sum(axis=0, dtype=np.float64), 1e-5)]

    return (gpu.array(column), value, x, y, width), values


def hash_insert(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n = 192 * ctas
    bits = int(np.ceil(np.log2(1.4 * n)))
    keys = rng.integers(1, 1 << 31, n).astype(np.uint32)
    table, place = zeros(gpu, 1 << bits, of=np.uint32), zeros(gpu, n, of=np.int32)

    def values() -> Values:
        found = table.numpy()
        np.testing.assert_array_equal(np.sort(found[found != 0]), np.unique(keys))
        return [(place, np.where(found[place.numpy()] == keys, place.numpy(), -1), 0)]

    return (gpu.array(keys), table, place, np.uint32((1 << bits) - 1), 32 - bits), values


def thomas_solve(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    unknowns, systems = 12, 96 * ctas
    lower, upper, right = (rng.random((unknowns, systems), np.float32) for _ in range(3))
    middle = 2.5 + rng.random((unknowns, systems), np.float32)
    ratio, x = zeros(gpu, unknowns, systems), zeros(gpu, unknowns, systems)

    def values() -> Values:
        dense = np.zeros((systems, unknowns, unknowns))
        for k in range(unknowns):
            dense[:, k, k] = middle[k]
            if k:
                dense[:, k, k - 1], dense[:, k - 1, k] = lower[k], upper[k - 1]
        return [(x, np.linalg.solve(dense, right.T[:, :, None])[:, :, 0].T, 1e-4)]

    return (*map(gpu.array, (lower, middle, upper, right)), ratio, x, unknowns), values


def cluster_points(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n, centres = 256 * ctas, 11
    point, centre = words(gpu, rng, 1024, n, 4), words(gpu, rng, 1024, centres, 4)
    cluster, size, total = (zeros(gpu, k, of=np.int32) for k in (n, centres, centres))

    def values() -> Values:
        p = point.numpy().astype(np.int64)
        nearest = ((p[:, None] - centre.numpy()) ** 2).sum(axis=2).argmin(axis=1)
        sums = np.bincount(nearest, p[:, 0], centres)
        return [(cluster, nearest, 0), (size, counted(cluster, centres), 0), (total, sums, 0)]

    return (point, centre, cluster, size, total, centres), values


def first_box(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    rays, boxes = 64 * ctas, 12
    start, inverse = rng.random((3, rays), np.float32), 1 / rng.normal(size=(3, rays)).astype(np.float32)
    low = rng.random((boxes, 3), np.float32)
    box = np.concatenate([low, low + np.float32(0.12)], axis=1)
    met = zeros(gpu, rays, of=np.int32)

    def values() -> Values:
        found = np.full(rays, -1)
        for k in reversed(range(boxes)):
            a, b = (box[k, :3, None] - start) * inverse, (box[k, 3:, None] - start) * inverse
            into, out = np.minimum(a, b).max(axis=0), np.maximum(a, b).min(axis=0)
            found = np.where(np.maximum(into, 0) <= out, k, found)
        return [(met, found, 0)]

    return (gpu.array(start), gpu.array(inverse), gpu.array(box), met, boxes), values


def small_products(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    matrix, x = floats(gpu, rng, 4 * ctas, 32, 32), floats(gpu, rng, 4 * ctas, 32)
    y = zeros(gpu, 4 * ctas, 32)
    return (matrix, x, y), lambda: [(y, np.einsum("akr,ak->ar", matrix.numpy(), x.numpy()), 1e-5)]


def label_tiles(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    given = (rng.random((ctas, 8, 16)) < 0.55).astype(np.uint8)
    label = zeros(gpu, ctas, 8, 16, of=np.uint8)

    def values() -> Values:
        own = np.where(given, np.arange(128).reshape(8, 16), 255)
        for _ in range(128):
            wide = np.pad(own, ((0, 0), (1, 1), (1, 1)), constant_values=255)
            sides = wide[:, :-2, 1:-1], wide[:, 2:, 1:-1], wide[:, 1:-1, :-2], wide[:, 1:-1, 2:]
            own = np.where(given, np.minimum(own, np.minimum.reduce(sides)), 255)
        return [(label, own, 0)]

    return (gpu.array(given), label), values


def play_craps(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n, games = 96 * ctas, 1
    seed = rng.integers(1, 1 << 31, n).astype(np.uint32)
    won, throws = zeros(gpu, n, of=np.int32), zeros(gpu, n, of=np.int32)

    def play(state: int) -> tuple[int, int]:
        count = 0

        def two_dice() -> int:
            nonlocal state, count
            faces: list[int] = []
            while len(faces) < 2:
                state = (state ^ state << 13) & 0xFFFFFFFF
                state ^= state >> 17
                state = (state ^ state << 5) & 0xFFFFFFFF
                count += 1
                if state >> 29 < 6:
                    faces.append((state >> 29) + 1)
            return sum(faces)

        wins = 0
        for _ in range(games):
            point = total = two_dice()
            if point in (7, 11):
                wins += 1
            elif point not in (2, 3, 12):
                while (total := two_dice()) not in (7, point):
                    pass
                wins += total == point
        return wins, count

    def values() -> Values:
        wins, counts = zip(*(play(one) for one in seed.tolist()), strict=True)
        return [(won, wins, 0), (throws, counts, 0)]

    return (gpu.array(seed), won, throws, games), values


def run_automaton(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n, length = 192 * ctas, 5
    following = rng.integers(0, 24, (24, 8)).astype(np.uint8)
    text = gpu.array(rng.integers(0, 1 << 32, (n, length), np.uint32))
    matches = zeros(gpu, n, of=np.int32)

    def values() -> Values:
        state, count = np.zeros(n, int), np.zeros(n, int)
        for letters in text.numpy().view(np.uint8).reshape(n, -1).T:
            state = following[state, letters & 7]
            count += state >= 21
        return [(matches, count, 0)]

    return (text, gpu.array(following), matches, length), values


def shortest_tiles(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    length, out = words(gpu, rng, 1000, ctas, 16, 16), zeros(gpu, ctas, 16, 16, of=np.int32)

    def values() -> Values:
        d = length.numpy().copy()
        for k in range(16):
            d = np.minimum(d, d[:, :, k, None] + d[:, None, k])
        return [(out, d, 0)]

    return (length, out), values


def gradient_noise(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n, width, step, octaves = 512 * ctas, 512, 0.0371, 2
    mixed = rng.permutation(256).astype(np.uint8)
    out = zeros(gpu, n)

    def slope(hashed: Any, x: Any, y: Any) -> Any:
        u, v = np.where(hashed & 1, x, -x), np.where(hashed & 2, y, -y)
        return np.where(hashed & 4, u + v, u - v)

    def values() -> Values:
        i = np.arange(n)
        x, y = ((i % width) * np.float32(step)).astype(float), ((i // width) * np.float32(step)).astype(float)
        total = np.zeros(n)
        for k in range(octaves):
            left, top = np.floor(x * 2**k).astype(int), np.floor(y * 2**k).astype(int)
            u, v = x * 2**k - left, y * 2**k - top
            p, q = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
            a, b = mixed[left & 255].astype(int) + top, mixed[left + 1 & 255].astype(int) + top
            rows = [
                slope(mixed[a + d & 255], u, v - d) * (1 - p) + slope(mixed[b + d & 255], u - 1, v - d) * p
                for d in (0, 1)
            ]
            total += 0.5**k * (rows[0] * (1 - q) + rows[1] * q)
        return [(out, total, 1e-4)]

    return (gpu.array(mixed), out, width, np.float32(step), octaves), values


def merge_lists(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    given = np.sort(rng.integers(0, 1 << 30, (ctas, 2, 256)), axis=2).astype(np.int32)
    out = zeros(gpu, ctas, 512, of=np.int32)
    return (gpu.array(given), out), lambda: [(out, np.sort(given.reshape(ctas, 512), axis=1), 0)]


def relax_edges(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    each, vertices = 3, 64 * ctas
    n = 192 * ctas * each
    edge, length = words(gpu, rng, vertices, n, 2), words(gpu, rng, 100, n)
    before = words(gpu, rng, 1000, vertices)
    after = gpu.array(before.numpy())

    def values() -> Values:
        wanted, e = before.numpy().copy(), edge.numpy()
        np.minimum.at(wanted, e[:, 1], before.numpy()[e[:, 0]] + length.numpy())
        return [(after, wanted, 0)]

    return (edge, length, before, after, each), values


def skin_vertices(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n, bones = 128 * ctas, 80
    vertex, weight, row = floats(gpu, rng, n, 4), floats(gpu, rng, n, 4), floats(gpu, rng, bones, 3, 4)
    bone = gpu.array(rng.integers(0, bones, (n, 4)).astype(np.uint8))
    out = zeros(gpu, n, 4)

    def values() -> Values:
        p = vertex.numpy().copy()
        p[:, 3] = 1
        moved = np.einsum("nk,nkrc,nc->nr", weight.numpy(), row.numpy()[bone.numpy()], p)
        return [(out, np.concatenate([moved, np.ones((n, 1))], axis=1), 1e-4)]

    return (vertex, bone, weight, row, out), values


def life_words(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    across, each = 64, 3
    given = gpu.array(rng.integers(0, 1 << 32, (ctas * each, across), np.uint32))
    out = zeros(gpu, ctas * each, across, of=np.uint32)

    def values() -> Values:
        cells = np.unpackbits(given.numpy().view(np.uint8), axis=1, bitorder="little").astype(int)
        nine = sum(np.roll(cells, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
        alive = ((nine == 3) | ((nine == 4) & (cells == 1))).astype(np.uint8)
        return [(out, np.packbits(alive, axis=1, bitorder="little").view(np.uint32), 0)]

    return (given, out, across, each), values


def powers_modulo(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n, prime = 128 * ctas, (1 << 31) - 1
    base = rng.integers(1, prime, n).astype(np.uint32)
    most = 4 + 12 * (np.arange(n) // 128) // ctas  # bits
    exponent = (rng.random(n) * 2**most).astype(np.uint32)
    out = zeros(gpu, n, of=np.uint32)
    return (gpu.array(base), gpu.array(exponent), out), lambda: [
        (out, [pow(b, e, prime) for b, e in zip(base.tolist(), exponent.tolist(), strict=True)], 0)
    ]


KERNELS = {
    made.__name__: Kernel(made, threads, "second")
    for made, threads in (
        (queens_count, 64),
        (ell_product, 128),
        (hash_insert, 192),
        (thomas_solve, 96),
        (cluster_points, 256),
        (first_box, 64),
        (small_products, 128),
        (label_tiles, 128),
        (play_craps, 96),
        (run_automaton, 192),
        (shortest_tiles, 256),
        (gradient_noise, 512),
        (merge_lists, 128),
        (relax_edges, 192),
        (skin_vertices, 128),
        (life_words, 64),
        (powers_modulo, 128),
    )
}
