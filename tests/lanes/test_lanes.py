"""Executed programs on GPUs whose warps have 64 lanes: two functional warps of 32 each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.cuda import PtxModule
from simt.errors import TraceError

PTX = ".version 8.7\n.target sm_70\n.address_size 64\n"
PROLOGUE = """
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2; shr.u32 %r5, %r1, 5; and.b32 %r6, %r5, 1;
"""

SOURCE = (
    PTX
    + f"""
.visible .entry reverse(.param .u64 out)
{{
  .shared .align 4 .b8 tile[4096];
  {PROLOGUE}
  mov.u32 %r7, tile; shl.b32 %r8, %r1, 2; add.u32 %r8, %r7, %r8; st.shared.u32 [%r8], %r4;
  bar.sync 0;
  sub.u32 %r9, %r3, %r1; sub.u32 %r9, %r9, 1; shl.b32 %r9, %r9, 2; add.u32 %r9, %r7, %r9;
  ld.shared.u32 %r10, [%r9];
  st.global.u32 [%rd3], %r10;
  ret;
}}
// The halves of a 64-lane warp go different ways, with loops of different lengths, and meet.
.visible .entry halves(.param .u64 out)
{{
  {PROLOGUE}
  mov.u32 %r7, 0; mov.u32 %r8, 0;
  setp.eq.u32 %p1, %r6, 1;
  @%p1 bra UPPER;
LOWER:
  add.u32 %r7, %r7, 3; add.u32 %r8, %r8, 1;
  setp.lt.u32 %p2, %r8, 10;
  @%p2 bra LOWER;
  bra.uni MEET;
UPPER:
  add.u32 %r7, %r7, 5; add.u32 %r8, %r8, 1;
  setp.lt.u32 %p2, %r8, 20;
  @%p2 bra UPPER;
MEET:
  add.u32 %r7, %r7, %r4;
  st.global.u32 [%rd3], %r7;
  ret;
}}
// Odd and even warps of 32 wait for all at different instructions; odd ones have gone through a loop before.
.visible .entry parted(.param .u64 out)
{{
  .shared .align 4 .b8 tile[4096];
  {PROLOGUE}
  mov.u32 %r7, tile; shl.b32 %r8, %r1, 2; add.u32 %r8, %r7, %r8; mov.u32 %r11, 0;
  setp.eq.u32 %p1, %r6, 1;
  @%p1 bra UPPER;
  st.shared.u32 [%r8], %r4;
  bar.sync 0;
  bra.uni MEET;
UPPER:
  add.u32 %r11, %r11, 1; setp.lt.u32 %p2, %r11, 30; @%p2 bra UPPER;
  st.shared.u32 [%r8], %r4;
  bar.sync 0;
MEET:
  sub.u32 %r9, %r3, %r1; sub.u32 %r9, %r9, 1; shl.b32 %r9, %r9, 2; add.u32 %r9, %r7, %r9;
  ld.shared.u32 %r10, [%r9];
  bar.sync 0;
  st.global.u32 [%rd3], %r10;
  ret;
}}
// Warps 2 and 3 wait for 0 and 1: pairs that are no pair of halves.
.visible .entry named(.param .u64 out)
{{
  .shared .align 4 .b8 tile[512];
  {PROLOGUE}
  mov.u32 %r7, tile; and.b32 %r8, %r1, 63; shl.b32 %r8, %r8, 2; add.u32 %r8, %r7, %r8;
  add.u32 %r9, %r6, 1; mul.lo.u32 %r10, %r4, 7;
  setp.ge.u32 %p1, %r1, 64;
  @%p1 bra CONSUMER;
  st.shared.u32 [%r8], %r10;
  bar.arrive %r9, 64;
  st.global.u32 [%rd3], %r10;
  ret;
CONSUMER:
  bar.sync %r9, 64;
  ld.shared.u32 %r10, [%r8];
  st.global.u32 [%rd3], %r10;
  ret;
}}
// The lower half waits for what the upper half writes, in a loop that lies before.
.visible .entry waiting(.param .u64 out, .param .u64 flag)
{{
  {PROLOGUE}
  ld.param.u64 %rd4, [flag];
  setp.eq.u32 %p1, %r6, 1;
  @%p1 bra WRITE;
WAIT:
  ld.volatile.global.u32 %r7, [%rd4];
  setp.eq.u32 %p2, %r7, 0;
  @%p2 bra WAIT;
  bra.uni DONE;
WRITE:
  mov.u32 %r8, 0;
LONG:
  add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 500; @%p2 bra LONG;
  st.volatile.global.u32 [%rd4], 9;
  mov.u32 %r7, 9;
DONE:
  add.u32 %r7, %r7, %r4;
  st.global.u32 [%rd3], %r7;
  ret;
}}
.visible .entry lock(.param .u64 out, .param .u64 mutex)
{{
  {PROLOGUE}
  ld.param.u64 %rd4, [mutex];
TRY:
  atom.global.cas.b32 %r7, [%rd4], 0, 1;
  setp.ne.u32 %p1, %r7, 0;
  @%p1 bra TRY;
  membar.gl;
  ld.volatile.global.u32 %r8, [%rd1]; add.u32 %r8, %r8, 1; st.volatile.global.u32 [%rd1], %r8;
  membar.gl;
  atom.global.exch.b32 %r9, [%rd4], 0;
  ret;
}}
.visible .entry places(.param .u64 out, .param .u64 counter)
{{
  {PROLOGUE}
  ld.param.u64 %rd4, [counter];
  atom.global.add.u32 %r7, [%rd4], 1;
  mul.wide.u32 %rd5, %r7, 4; add.u64 %rd6, %rd1, %rd5; st.global.u32 [%rd6], %r4;
  ret;
}}
// Weak accesses to what the same warps have changed with reductions just before.
.visible .entry overlap(.param .u64 out)
{{
  {PROLOGUE}
  setp.eq.u32 %p1, %r6, 1;
  @%p1 bra UPPER;
  red.global.add.u32 [%rd3], 5;
  ld.global.u32 %r7, [%rd3]; add.u32 %r7, %r7, 1; st.global.u32 [%rd3], %r7;
  ret;
UPPER:
  red.global.add.u32 [%rd3], 7;
  ld.global.u32 %r7, [%rd3]; add.u32 %r7, %r7, 2; st.global.u32 [%rd3], %r7;
  ret;
}}
.visible .entry butterfly(.param .u64 out)
{{
  {PROLOGUE}
  shfl.sync.bfly.b32 %r7, %r4, 31, 31, 0xffffffff;
  st.global.u32 [%rd3], %r7;
  ret;
}}
.visible .entry local(.param .u64 out)
{{
  .local .align 4 .b8 stack[64];
  {PROLOGUE}
  mov.u32 %r7, stack; and.b32 %r8, %r1, 15; shl.b32 %r8, %r8, 2; add.u32 %r7, %r7, %r8;
  st.local.u32 [%r7], %r4; ld.local.u32 %r9, [%r7];
  st.global.u32 [%rd3], %r9;
  ret;
}}
.visible .entry strided(.param .u64 out, .param .u32 stride)
{{
  {PROLOGUE}
  ld.param.u32 %r7, [stride]; mul.lo.u32 %r8, %r4, %r7; mul.wide.u32 %rd2, %r8, 4; add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r9, [%rd3]; add.u32 %r9, %r9, 1; st.global.u32 [%rd3], %r9;
  ret;
}}
"""
)


def device(spec: str = "r9nano", **options: Any) -> tuple[simt.GPU, Any]:
    settings = {"sm.count": 4, **options.pop("set", {})}
    gpu = simt.GPU(spec, code="ptx", set=settings, **options)
    return gpu, gpu.load(PtxModule.from_text(SOURCE, "lanes.ptx"))


def threads_of(ctas: int, block: int) -> np.ndarray:
    return np.arange(ctas * block, dtype=np.uint32).reshape(ctas, block)


@pytest.mark.parametrize("block", [1, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 160, 1000, 1024])
def test_blocks_of_any_size(block: int) -> None:
    """Exactly ceil(threads / 64) warps, each instruction once for all 64 lanes, and correct values."""
    _, module = device()
    out = np.zeros((5, block), np.uint32)
    launch = module.reverse[5, block](out)
    assert (out == threads_of(5, block)[:, ::-1]).all()
    warps = -(-block // 64)
    assert launch.engine["warps"] == 5 * warps
    _, one = device()
    single = one.reverse[1, 32](np.zeros(32, np.uint32))
    assert launch.warp_instructions == 5 * warps * single.warp_instructions
    assert launch.thread_instructions == 5 * block * single.warp_instructions


def test_halves_that_part_meet_again() -> None:
    """10 iterations of the lower half and 20 of the upper one issue separately, everything else together."""
    _, module = device()
    out = np.zeros((2, 128), np.uint32)
    launch = module.halves[2, 128](out)
    upper = np.arange(128) // 32 % 2
    assert (out == threads_of(2, 128) + np.where(upper, 100, 30)).all()
    _, small = device("qv100")
    low = small.halves[1, 32](np.zeros(32, np.uint32)).warp_instructions
    high = small.halves[1, 64](np.zeros(64, np.uint32)).warp_instructions - low
    # Executed by both halves together: the dozen PTX instructions before the branch and three at the end.
    together = low + high - launch.warp_instructions / 4
    assert 12 <= together <= 20


@pytest.mark.parametrize("block", [64, 96, 128, 192])
def test_halves_wait_for_all_at_different_instructions(block: int) -> None:
    _, module = device()
    out = np.zeros((3, block), np.uint32)
    module.parted[3, block](out)
    assert (out == threads_of(3, block)[:, ::-1]).all()


def test_barriers_for_a_number_of_threads() -> None:
    _, module = device()
    out = np.zeros((3, 128), np.uint32)
    module.named[3, 128](out)
    expected = threads_of(3, 128) * 7
    expected[:, 64:] = expected[:, :64]
    assert (out == expected).all()


def test_one_half_waits_for_the_other() -> None:
    _, module = device()
    out, flag = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    module.waiting[1, 64](out, flag)
    assert (out == np.arange(64) + 9).all()


def test_a_lock_between_halves() -> None:
    _, module = device()
    out, mutex = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    module.lock[1, 40](out, mutex)
    assert out[0] == 40


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["places", "overlap", "lock", "parted", "named"])
def test_threads_and_windows_change_nothing(kernel: str) -> None:
    def run(threads: int, window: int | None) -> tuple[np.ndarray, Any]:
        _, module = device(threads=threads, window=window)
        out, cell = np.zeros(6 * 128, np.uint32), np.zeros(1, np.uint32)
        more = (cell,) if kernel in ("places", "lock") else ()
        return out, module[kernel][(1, 34) if kernel == "lock" else (6, 128)](out, *more)

    first, counted = run(1, None)
    if kernel == "places":
        assert sorted(first) == list(range(6 * 128))
    if kernel == "overlap":
        assert (first == np.where(np.arange(6 * 128) // 32 % 2, 9, 6)).all()
    for threads, window in ((1, 1), (2, 5), (4, None)):
        again, recounted = run(threads, window)
        assert (again == first).all()
        assert recounted.engine == counted.engine


def test_warp_operations_stay_32_wide() -> None:
    _, module = device()
    out = np.zeros(128, np.uint32)
    module.butterfly[1, 128](out)
    assert (out == np.arange(128) ^ 31).all()


def test_lanes_have_local_memory_of_their_own() -> None:
    _, module = device()
    out = np.zeros((2, 96), np.uint32)
    launch = module.local[2, 96](out)
    assert (out == threads_of(2, 96)).all()
    # A request for the load and one for the store of each of four warps.
    assert launch.engine["local_requests"] == 2 * 2 * 2


@pytest.mark.parametrize(("stride", "sectors"), [(0, 1), (1, 8), (2, 16), (8, 64), (32, 64)])
def test_64_lanes_are_coalesced_together(stride: int, sectors: int) -> None:
    _, module = device()
    launch = module.strided[1, 64](np.zeros(64 * max(1, stride), np.uint32), stride)
    assert launch.engine["global_load_requests"] == launch.engine["global_store_requests"] == 1
    assert launch.engine["global_load_sectors"] == launch.engine["global_store_sectors"] == sectors


def test_shared_memory_serves_64_lanes_in_two_passes() -> None:
    _, module = device()
    launch = module.reverse[1, 128](np.zeros(128, np.uint32))
    assert launch.engine["shared_wavefronts"] == 2 * 2 * 2  # two warps' store and load
    assert launch.engine["shared_bank_conflicts"] == 0


def test_a_run_can_be_recorded(tmp_path: Path) -> None:
    """A store keeps warps of 64 lanes; text cannot, and a GPU with 32-lane warps refuses them."""
    gpu, module = device()
    timed = module.reverse[4, 160](np.zeros(640, np.uint32))
    path = tmp_path / "reverse.simt"
    with gpu.trace(path):
        module.reverse[4, 160](np.zeros(640, np.uint32))
    settings = {"sm.count": 4}
    replayed = simt.simulate(path, "r9nano", set=settings).launches[0]
    assert replayed.warp_instructions == timed.warp_instructions
    assert replayed.thread_instructions == timed.thread_instructions
    assert abs(replayed.cycles - timed.cycles) <= 0.02 * timed.cycles
    with pytest.raises(TraceError, match="64 lanes"):
        simt.trace.to_text(path, tmp_path / "text")
    with pytest.raises(TraceError, match=r"64 lanes.*\.simt"), gpu.trace(tmp_path / "text"):
        pass
    assert not (tmp_path / "text").exists() or not any((tmp_path / "text").iterdir())
    with pytest.raises(simt.SimtError, match="64 lanes"):
        simt.simulate(path, "qv100")


@pytest.mark.parametrize("spec", ["r9nano", "mi100"])
def test_values_are_those_of_warps_of_32(spec: str) -> None:
    rng = np.random.default_rng(3)
    _, module = device(spec)
    _, reference = device("qv100")
    for kernel in ("reverse", "halves", "parted", "butterfly", "local", "overlap"):
        start = rng.integers(0, 1000, 7 * 320).astype(np.uint32)
        outs = [start.copy(), start.copy()]
        for m, out in zip((module, reference), outs, strict=True):
            m[kernel][7, 320](out)
        assert (outs[0] == outs[1]).all()
