"""Traces with warps of 32 lanes on GPUs whose warps have 64, and the pairing itself."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from simt import _engine
from simt.trace import open_trace
from simt.trace.writer import Warp
from support.tiny import GLOBAL, run, write_kernel


def random_warp(rng: random.Random) -> Warp:
    """A walk through a program of 12 instructions, with jumps back and forth and accesses by some lanes."""
    w = Warp()
    pc = 0
    for _ in range(rng.randrange(60)):
        w.pc = 16 * pc
        mask = rng.choice([0xFFFFFFFF, rng.getrandbits(32), 0])
        if pc % 3 == 0:
            addresses = [GLOBAL + 4 * rng.randrange(1 << 20) if mask >> i & 1 else None for i in range(32)]
            w.memory("LDG.E" if pc % 2 else "STG.E", addresses, 4, 8 if pc % 2 else None, (4,))
        elif pc == 11:
            w.bulk("UBLKCP.S.G", [GLOBAL + 64 * k for k in range(3)])
        else:
            w.op("FFMA", 8, (4, 5), mask=mask)
        pc = rng.choice([pc + 1, pc + 1, pc + 1, pc - 2, pc + 2]) % 12
    w.pc = 16 * 12
    return w


@pytest.mark.parametrize("seed", range(8))
def test_pairing_loses_nothing(seed: int, tmp_path: Path) -> None:
    """Each half's records come in order, with their addresses; halves at the same instruction go together."""
    rng = random.Random(seed)
    ctas = [[random_warp(rng) for _ in range(rng.randrange(1, 6))] for _ in range(3)]
    (kernel,) = open_trace(write_kernel(tmp_path, ctas, threads=160)).kernels
    source = kernel.source()
    bulk = {i for i, s in enumerate(source.instructions()) if s["opcode"].startswith("UBLKCP")}
    paired = _engine.PairedWarps(source)
    assert paired.launch.warp_size == 64
    for cta in range(3):
        halves, warps = source.read_cta(cta), paired.read_cta(cta)
        assert len(warps) == (len(halves) + 1) // 2
        for number, warp in enumerate(warps):
            found: list[list[tuple[int, int, list[int]]]] = [[], []]
            for index, mask, addresses in warp:
                masks = (mask & 0xFFFFFFFF, mask >> 32)
                split = masks[0].bit_count()
                if index in bulk:
                    found[1 if masks[1] else 0].append((index, masks[0] | masks[1], addresses))
                    continue
                for h, part in enumerate((addresses[:split], addresses[split:])):
                    if masks[h]:
                        found[h].append((index, masks[h], part))
            for h in range(2):
                alone = halves[2 * number + h] if 2 * number + h < len(halves) else []
                assert found[h] == [r for r in alone if r[1]]


def test_equal_halves_are_one_warp(tmp_path: Path) -> None:
    def build() -> Warp:
        w = Warp()
        for i in range(10):
            w.memory("LDG.E", [GLOBAL + 4 * k + 4096 * i for k in range(32)], 4, 8, (4,))
            w.op("BAR.SYNC.DEFER_BLOCKING")
        return w

    folder = write_kernel(tmp_path, [[build() for _ in range(5)]])
    (wide,) = run(folder, "r9nano")
    (narrow,) = run(folder, "qv100")
    counters, narrow_counters = wide["counters"], narrow["counters"]
    assert counters["warps"] == 3
    assert counters["warp_instructions"] == 3 * 21
    assert counters["thread_instructions"] == narrow_counters["thread_instructions"] == 5 * 32 * 21
    assert counters["global_load_requests"] == 3 * 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_paired_traces_are_deterministic(seed: int, tmp_path: Path) -> None:
    rng = random.Random(100 + seed)
    folder = write_kernel(tmp_path, [[random_warp(rng) for _ in range(4)] for _ in range(6)], threads=128)
    first = run(folder, "mi100", {"sm.count": 2})
    for threads, window in ((1, 1), (2, 7), (3, 0)):
        assert run(folder, "mi100", {"sm.count": 2}, threads=threads, window=window) == first


def test_block_counts_are_of_whole_warps(tmp_path: Path) -> None:
    """A loop of 3 and 5 iterations in the two halves: the warp executes it 5 times."""

    def looping(iterations: int) -> Warp:
        w = Warp()
        w.op("FFMA", 8, (4, 5))
        for _ in range(iterations):
            w.pc = 16
            w.op("FFMA", 8, (4, 5))
            w.op("BRA")
        return w

    ctas = [[looping(3), looping(5), looping(2)] for _ in range(2)]
    (kernel,) = open_trace(write_kernel(tmp_path, ctas)).kernels
    paired = _engine.PairedWarps(kernel.source())
    blocks = paired.basic_blocks()
    counts, complete = paired.preview([0, 1], blocks)
    assert complete
    assert counts.shape == (4, len(blocks))
    instructions = (counts * blocks.length).sum(axis=1)
    assert list(instructions) == [1 + 2 * 5 + 1, 1 + 2 * 2 + 1] * 2
    walked = [len(w) for cta in range(2) for w in paired.read_cta(cta)]
    assert list(instructions) == walked
