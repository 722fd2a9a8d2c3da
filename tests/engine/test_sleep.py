"""NANOSLEEP takes the requested time: the warp's next instruction issues when it is over, to the cycle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simt
from simt.cuda import PtxModule
from simt.trace.writer import Warp
from support.tiny import cycles, distance, run, write_kernel

GIGAHERTZ = {"clock.core_mhz": 1000.0}


def sleep(nanoseconds: int, mask: int = 0xFFFFFFFF):  # type: ignore[no-untyped-def]
    return lambda w, i: w.op("NANOSLEEP", immediate=nanoseconds, mask=mask)


@pytest.mark.parametrize("nanoseconds", [3, 4, 57, 1000])
def test_a_nanosecond_is_a_cycle_at_one_gigahertz(nanoseconds: int, tmp_path: Path) -> None:
    assert distance(tmp_path, sleep(nanoseconds), "qv100", GIGAHERTZ, (10, 20)) == nanoseconds


@pytest.mark.parametrize(("mhz", "nanoseconds", "expected"), [(1380.0, 100, 138), (1380.0, 101, 140)])
def test_part_of_a_cycle_is_a_whole_one(mhz: float, nanoseconds: int, expected: int, tmp_path: Path) -> None:
    found = distance(tmp_path, sleep(nanoseconds), "qv100", {"clock.core_mhz": mhz}, (10, 20))
    assert found == expected


def test_no_sleep_is_longer_than_a_millisecond(tmp_path: Path) -> None:
    assert distance(tmp_path, sleep(2_000_000), "qv100", GIGAHERTZ, (2, 3)) == 1_000_000


def test_a_sleep_of_nothing_or_of_no_lane_is_a_branch(tmp_path: Path) -> None:
    branch = distance(tmp_path, lambda w, i: w.op("BRA"), "qv100", GIGAHERTZ)
    assert distance(tmp_path, sleep(0), "qv100", GIGAHERTZ) == branch
    assert distance(tmp_path, sleep(500, mask=0), "qv100", GIGAHERTZ) == branch


def test_operand_collectors_stand_for_a_model_that_does_not_sleep(tmp_path: Path) -> None:
    assert distance(tmp_path, sleep(500), "qv100-accelsim", GIGAHERTZ) < 20


def test_other_warps_go_on(tmp_path: Path) -> None:
    """While one warp sleeps for 4,000 cycles, another warp's 400 dependent FFMAs are not delayed."""

    def lasts(*warps: Warp) -> int:
        folder = write_kernel(tmp_path / str(len(list(tmp_path.iterdir()))), [list(warps)])
        return cycles(folder, "qv100", GIGAHERTZ)

    def sleeper() -> Warp:
        warp = Warp()
        warp.op("NANOSLEEP", immediate=4000)
        return warp

    def worker() -> Warp:
        warp = Warp()
        for _ in range(400):
            warp.op("FFMA", 8, (8, 2, 8))
        return warp

    alone = lasts(sleeper())
    assert 4000 < alone < 4600
    assert lasts(sleeper(), worker()) == alone


def test_sleeping_is_a_state_of_its_own(tmp_path: Path) -> None:
    warp = Warp()
    warp.op("NANOSLEEP", immediate=1000)
    (record,) = run(write_kernel(tmp_path, [[warp]]), "qv100", GIGAHERTZ)
    assert record["warp_stalls"]["sleeping"] == 999  # of 1,000 cycles the first has issued the sleep


PTX = """.version 8.7
.target sm_70
.address_size 64
.visible .entry sleeps(.param .u64 out, .param .u32 base, .param .u32 each) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [base]; ld.param.u32 %r2, [each];
  mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r3, %r2, %r1;
  mov.u64 %rd2, %clock64;
  nanosleep.u32 %r4;
  mov.u64 %rd3, %clock64;
  sub.u64 %rd4, %rd3, %rd2; st.global.u64 [%rd1], %rd4;
  ret;
}
"""


def test_a_length_in_a_register_and_lanes_that_differ() -> None:
    """Lanes wake up together, with the one that sleeps shortest: PTX permits shorter sleeps."""
    gpu = simt.GPU("qv100", set=GIGAHERTZ)
    kernel = gpu.load(PtxModule(PTX, "sleep.ptx", "sm_70"))["sleeps"]

    def lasts(base: int, each: int) -> int:
        out = gpu.zeros(1, np.int64)
        kernel[1, 32](out, np.uint32(base), np.uint32(each))
        return int(out.numpy()[0])

    none = lasts(0, 0)
    assert lasts(777, 0) - lasts(776, 0) == 1
    assert 777 <= lasts(777, 0) <= 777 + none
    assert lasts(777, 40) == lasts(777, 0)
