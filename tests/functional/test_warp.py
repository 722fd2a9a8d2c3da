"""shfl, vote, match, redux, elect, activemask: against slow references, with diverged and missing lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt import _engine
from simt.errors import PtxError
from support.ptx import Device

U32 = np.uint32


def run(
    body: str, *inputs: np.ndarray, lanes: int = 32, registers: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """What lanes leave in %d (b32) and as predicate %p; inputs of 32- or 64-bit values in %i0, %i1, ...

    Lanes that leave nothing have 0xdeadbeef and 7."""
    parameters = ", ".join(
        [".param .b64 d", ".param .b64 p", *(f".param .b64 in{k}" for k in range(len(inputs)))]
    )
    loads = "".join(
        f".reg .b{8 * a.dtype.itemsize} %i{k}; ld.param.b64 %a, [in{k}];"
        f"mad.wide.u32 %a, %lane, {a.dtype.itemsize}, %a; ld.global.b{8 * a.dtype.itemsize} %i{k}, [%a];\n"
        for k, a in enumerate(inputs)
    )
    text = f"""
    .visible .entry k({parameters})
    {{
      .reg .b64 %a; .reg .b32 %lane, %d, %w; .reg .pred %p, %q; {registers}
      mov.u32 %lane, %tid.x; mov.u32 %d, 0xdeadbeef; setp.ne.u32 %p, %lane, %lane;
      {loads}
      {body}
      ld.param.b64 %a, [d]; mad.wide.u32 %a, %lane, 4, %a; st.global.b32 [%a], %d;
      selp.u32 %w, 1, 0, %p;
      ld.param.b64 %a, [p]; mad.wide.u32 %a, %lane, 4, %a; st.global.b32 [%a], %w;
      ret;
    }}
    """
    d, p = np.zeros(32, U32), np.full(32, 7, U32)
    Device(text).run("k", d, p, *inputs, block=(lanes, 1, 1))
    return d, p


def shuffle(mode: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d, p = np.zeros(32, U32), np.zeros(32, U32)
    for lane in range(32):
        by, clamp, segment = int(b[lane]) & 31, int(c[lane]) & 31, int(c[lane]) >> 8 & 31
        last, first = (lane & segment) | (clamp & ~segment & 31), lane & segment
        j = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": first | (by & ~segment & 31)}[mode]
        p[lane] = j >= last if mode == "up" else j <= last
        d[lane] = a[j if p[lane] else lane]
    return d, p


LANES = st.lists(st.integers(0, 2**32 - 1), min_size=32, max_size=32).map(lambda v: np.array(v, U32))


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@given(a=LANES, b=LANES, c=LANES)
@settings(max_examples=30, deadline=None)
def test_shuffles_with_any_operands(mode: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    got = run(f"shfl.sync.{mode}.b32 %d|%p, %i0, %i1, %i2, 0xffffffff;", a, b, c)
    expected = shuffle(mode, a, b, c)
    assert (got[0] == expected[0]).all()
    assert (got[1] == expected[1]).all()


@pytest.mark.parametrize("width", [32, 16, 8, 4, 2, 1])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_as_cuda_writes_them(mode: str, width: int) -> None:
    """__shfl_*_sync(mask, value, by, width), as CUDA defines it."""
    a = np.arange(100, 132, dtype=U32)
    lane = np.arange(32)
    for by in (0, 1, 2, 3, 7, 16, 31):
        c = (32 - width) << 8 | (0 if mode == "up" else 31)
        d, _ = run(f"shfl.sync.{mode}.b32 %d, %i0, {by}, {c}, -1;", a)
        start = lane // width * width
        if mode == "idx":
            source = start + by % width
        elif mode == "up":
            source = np.where(lane - by >= start, lane - by, lane)
        elif mode == "down":
            source = np.where(lane + by < start + width, lane + by, lane)
        else:
            source = np.where((lane ^ by) < start + width, lane ^ by, lane)
        assert (d == a[source]).all()


def test_a_shuffle_may_overwrite_its_sources() -> None:
    a = np.random.default_rng(0).integers(0, 2**32, 32, U32)
    d, _ = run("mov.b32 %d, %i0; shfl.sync.bfly.b32 %d, %d, 5, 31, -1; xor.b32 %d, %d, 0;", a)
    assert (d == a[np.arange(32) ^ 5]).all()


DIVERGE = """
  and.b32 %w, %lane, 1; setp.eq.u32 %q, %w, 0; mov.b32 %m, 0xaaaaaaaa;
  @%q bra EVEN;
  {odd}
  bra JOIN;
EVEN:
  mov.b32 %m, 0x55555555;
  {even}
JOIN:
"""


def diverged(instruction: str) -> str:
    """`instruction`, with mask %m, once by the odd lanes and once by the even ones."""
    return DIVERGE.format(odd=instruction, even=instruction)


def test_votes() -> None:
    rng = np.random.default_rng(3)
    even = np.arange(32) % 2 == 0
    for holds in [np.zeros(32, bool), np.ones(32, bool), even, rng.random(32) < 0.5, np.arange(32) == 5]:
        bits = holds.astype(U32)
        ballot = int((bits.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum())
        prepare = "setp.ne.u32 %v, %i0, 0;"
        d, _ = run(prepare + "vote.sync.ballot.b32 %d, %v, -1;", bits, registers=".reg .pred %v;")
        assert (d == ballot).all()
        d, _ = run(prepare + "vote.sync.ballot.b32 %d, !%v, -1;", bits, registers=".reg .pred %v;")
        assert (d == ballot ^ 0xFFFFFFFF).all()
        d, _ = run(prepare + "vote.ballot.b32 %d, %v;", bits, registers=".reg .pred %v;")
        assert (d == ballot).all()
        for mode, test in (
            ("all", lambda x: x.all()),
            ("any", lambda x: x.any()),
            ("uni", lambda x: x.all() or not x.any()),
        ):
            _, p = run(prepare + f"vote.sync.{mode}.pred %p, %v, -1;", bits, registers=".reg .pred %v;")
            assert (p == test(holds)).all()
            body = prepare + diverged(f"vote.sync.{mode}.pred %p, %v, %m;")
            _, p = run(body, bits, registers=".reg .pred %v; .reg .b32 %m;")
            assert (p[::2] == test(holds[::2])).all()
            assert (p[1::2] == test(holds[1::2])).all()


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_matches(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    bits = 8 * np.dtype(dtype).itemsize
    for spread in (1, 2, 5, 1000):
        a = rng.integers(0, spread, 32).astype(dtype) << dtype(bits - 10)
        d, _ = run(f"match.any.sync.b{bits} %d, %i0, -1;", a)
        assert d.tolist() == [sum(1 << j for j in range(32) if a[j] == a[i]) for i in range(32)]
        d, p = run(f"match.all.sync.b{bits} %d|%p, %i0, -1;", a)
        same = (a == a[0]).all()
        assert (p == same).all()
        assert (d == (0xFFFFFFFF if same else 0)).all()
    a = np.arange(32).astype(dtype) % dtype(2)
    d, p = run(diverged(f"match.all.sync.b{bits} %d|%p, %i0, %m;"), a, registers=".reg .b32 %m;")
    assert p.all()
    assert d.tolist() == [0x55555555, 0xAAAAAAAA] * 16


@pytest.mark.parametrize("operation", ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32"])
def test_reductions_of_numbers(operation: str) -> None:
    name, type_ = operation.split(".")
    dtype = np.int32 if type_ == "s32" else U32
    a = np.random.default_rng(5).integers(0, 2**32, 32, U32)
    f = {"add": np.sum, "min": np.min, "max": np.max}[name]
    with np.errstate(over="ignore"):
        whole = f(a.view(dtype), **({"dtype": dtype} if name == "add" else {}))
        halves = [f(a.view(dtype)[k::2], **({"dtype": dtype} if name == "add" else {})) for k in (0, 1)]
    d, _ = run(f"redux.sync.{operation} %d, %i0, -1;", a)
    assert (d.view(dtype) == whole).all()
    d, _ = run(diverged(f"redux.sync.{operation} %d, %i0, %m;"), a, registers=".reg .b32 %m;")
    assert d.view(dtype).tolist() == halves * 16


@pytest.mark.parametrize("operation", ["and", "or", "xor"])
def test_reductions_of_bits(operation: str) -> None:
    a = np.random.default_rng(6).integers(0, 2**32, 32, U32)
    a |= U32(0x100)
    a &= U32(0xFFFFFFFE)
    expected = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[operation].reduce(a)
    d, _ = run(f"redux.sync.{operation}.b32 %d, %i0, -1;", a)
    assert (d == expected).all()


def test_the_active_lanes() -> None:
    d, _ = run("activemask.b32 %d;")
    assert (d == 0xFFFFFFFF).all()
    d, _ = run("setp.lt.u32 %q, %lane, 3; @!%q activemask.b32 %d;")
    assert d.tolist() == [0xDEADBEEF] * 3 + [0xFFFFFFF8] * 29
    d, _ = run(diverged("activemask.b32 %d;"), registers=".reg .b32 %m;")
    assert d.tolist() == [0x55555555, 0xAAAAAAAA] * 16
    d, _ = run("activemask.b32 %d;", lanes=7)
    assert d[:7].tolist() == [0x7F] * 7


def test_elect_chooses_the_lowest_lane() -> None:
    d, p = run("elect.sync %d|%p, 0xffffffff;")
    assert (d == 0).all()
    assert p.tolist() == [1] + [0] * 31
    d, p = run(diverged("elect.sync %d|%p, %m;"), registers=".reg .b32 %m;")
    assert d.tolist() == [0, 1] * 16
    assert p.tolist() == [1, 1] + [0] * 30
    _, p = run("elect.sync _|%p, -1;", lanes=5)
    assert p[:5].tolist() == [1, 0, 0, 0, 0]


def test_a_warp_that_is_not_full() -> None:
    """Lanes that do not exist are not waited for; ballots have 0 for them."""
    d, _ = run("setp.eq.u32 %q, %lane, %lane; vote.sync.ballot.b32 %d, %q, -1;", lanes=9)
    assert (d[:9] == 0x1FF).all()
    a = np.arange(32, dtype=U32)
    d, _ = run("redux.sync.add.u32 %d, %i0, -1;", a, lanes=9)
    assert (d[:9] == 36).all()


def test_lanes_that_come_separately_wait_for_each_other() -> None:
    """Two groups of lanes reach one shuffle by branches whose post-dominator lies behind it."""
    body = """
      setp.gt.u32 %r, %lane, 100; setp.lt.u32 %q, %lane, 12; @%q bra LOW;
      add.u32 %w, %lane, 100; @%r bra ASIDE; bra.uni MEET;
    LOW:
      add.u32 %w, %lane, 1000; @%r bra ASIDE;
    MEET:
      shfl.sync.idx.b32 %d, %w, %i0, 31, -1;
      bra.uni END;
    ASIDE:
      mov.b32 %d, 0;
    END:
    """
    index = np.random.default_rng(8).permutation(32).astype(U32)
    value = np.arange(32) + np.where(np.arange(32) < 12, 1000, 100)
    d, _ = run(body, index, registers=".reg .pred %r;")
    assert (d == value[index]).all()


def test_lanes_that_never_come_are_reported() -> None:
    body = """
      setp.lt.u32 %q, %lane, 16; @%q bra SOME;
      bar.sync 0; bra DONE;
    SOME:
      vote.sync.all.pred %p, %q, -1;
    DONE:
    """
    with pytest.raises(_engine.functional.ProgramFault, match="divergent"):
        run(body)


@pytest.mark.parametrize(
    "instruction",
    [
        "redux.sync.add.f32 %d, %d, -1",
        "redux.sync.min.abs.f32 %d, %d, -1",
        "redux.sync.add.b32 %d, %d, -1",
        "shfl.sync.idx.b64 %a, %a, 0, 31, -1",
        "match.some.sync.b32 %d, %d, -1",
        "vote.sync.ballot.pred %p, %q, -1",
    ],
)
def test_what_there_is_not_is_refused(instruction: str) -> None:
    with pytest.raises(PtxError):
        run(instruction + ";")
