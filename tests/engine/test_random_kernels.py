"""Random kernels with every kind of access: they end, and threads and windows have no effect."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simt.trace.writer import LOCAL_BASE, SHARED_BASE, Warp
from support.tiny import GLOBAL, run, write_kernel

PLAIN = [
    "FFMA",
    "MUFU.RCP",
    "DFMA",
    "HMMA.16816.F32",
    "S2R",
    "LDC",
    "TEX",
    "UIADD3",
    "BRA",
    "FENCE",
    "MEMBAR.SC.GPU",
]
LOADS = ["LDG.E.SYS", "LDG.E.STRONG.GPU", "LDS", "LDL", "LD.E", "ATOMG.E.ADD", "ATOMS.ADD", "LDSM.16.M88.4"]
STORES = ["STG.E.SYS", "STS", "STL", "ST.E", "RED.E.ADD"]


def append(w: Warp, rng: random.Random) -> None:
    """One random instruction."""
    register = rng.randrange(8, 24)
    kind = rng.randrange(4)
    if kind == 0:
        w.op(rng.choice(PLAIN), register, (rng.randrange(8, 24), 4))
        return
    if kind == 1 and rng.random() < 0.3:
        w.op("LDGDEPBAR")
        w.op("DEPBAR.LE", immediate=rng.randrange(3))
        return
    opcode = rng.choice(["LDGSTS.E.128", *LOADS] if kind < 3 else STORES)
    shared = "LDS" in opcode or "STS" in opcode or "ATOMS" in opcode
    base = 0 if shared or opcode in ("LDL", "STL") else GLOBAL
    if opcode in ("LD.E", "ST.E"):
        base = rng.choice([GLOBAL, SHARED_BASE, LOCAL_BASE])
    place: Callable[[int], int] = rng.choice(
        [
            lambda i: 4 * i,
            lambda i: 64 * i,
            lambda i: 0,
            lambda i: 4 * rng.randrange(1 << (10 if shared else 18)),
        ]
    )
    mask = rng.choice([0xFFFFFFFF, 0xFFFFFFFF, rng.getrandbits(32), 0])
    addresses = [base + place(i) if mask >> i & 1 else None for i in range(32)]
    w.memory(
        opcode, addresses, 4, None if opcode in STORES or "LDGSTS" in opcode else register, (4, register)
    )


SETTINGS: list[dict[str, Any]] = [
    {},
    {"sm.count": 1, "sm.scheduler.policy": "cggty", "launch.dispatch_latency": 1, "l2.reply_queue": 4},
    {
        "sm.count": 3,
        "interconnect.input_buffer": 4,
        "interconnect.output_buffer": 2,
        "l1.cache.miss_queue": 2,
    },
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_kernels_end_and_are_deterministic(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    gpu = ["qv100-accelsim", "a100", "titanx-accelsim", "h100"][seed % 4]
    settings = SETTINGS[seed // 4]
    ctas = [[Warp() for _ in range(3)] for _ in range(6)]
    for warp in (warp for cta in ctas for warp in cta):
        for _ in range(25):
            append(warp, rng)
    trace = write_kernel(tmp_path / "t", ctas, shared_bytes=4096)
    reference = run(trace, gpu, settings, timeline=100)
    assert reference[0]["counters"]["ctas"] == 6
    for how in ({"threads": 2}, {"window": 1}, {"window": 3}):
        assert run(trace, gpu, settings, timeline=100, **how) == reference, how
