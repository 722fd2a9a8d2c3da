"""Loads that miss the L1 and complete in the order of their misses, or as their data come."""

from pathlib import Path

import pytest

from simt.trace.writer import Warp
from support.tiny import CODE_AT_ONCE, GLOBAL, cycles, warp_of, write_kernel

LANES = range(32)
FAR = GLOBAL + (64 << 20)
CHAIN = 200  # of dependent FFMAs, longer than a load from memory takes


def two_loads(warming: str) -> Warp:
    """A load from memory, whose result nothing needs, and one of a line that `warming` has loaded before."""

    def build(w: Warp) -> None:
        near = [GLOBAL + 4 * lane for lane in LANES]
        w.memory(warming, near, 4, 6, (2,))
        w.op("FFMA", 7, (6, 6, 6))
        w.memory("LDG.E.SYS", [FAR + 4 * lane for lane in LANES], 4, 4, (7,))
        w.memory("LDG.E.SYS", near, 4, 8, (7,))
        for _ in range(CHAIN):
            w.op("FFMA", 8, (8, 8, 8))

    return warp_of(build)


def delay(tmp_path: Path, warming: str, gpu: str) -> int:
    """Cycles that the order costs."""
    write_kernel(tmp_path, [[two_loads(warming)]])
    free, ordered = (
        cycles(tmp_path, gpu, CODE_AT_ONCE | {"l1.misses_in_order": order}) for order in (False, True)
    )
    return ordered - free


def test_a_miss_waits_for_earlier_ones(tmp_path: Path) -> None:
    """The second load hits the L2, and is held until the first has come from memory: chains of loads take 431
    cycles from a V100's memory and 212 from its L2."""
    assert delay(tmp_path, "LDG.E.STRONG.GPU", "qv100") == pytest.approx(431 - 212, abs=4)


@pytest.mark.parametrize("gpu", ["qv100", "a100"])
def test_a_hit_does_not_wait(gpu: str, tmp_path: Path) -> None:
    assert delay(tmp_path, "LDG.E.SYS", gpu) == 0
