"""shfl, vote, match, redux, elect, activemask: against slow references, with diverged and missing lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt import _engine
from simt.errors import PtxError
from support.ptx import CODE, Device, ptx_only

U32 = np.uint32


def run(
    body: str, *inputs: np.ndarray, lanes: int = 32, registers: str = "", target: str = "90a"
) -> tuple[np.ndarray, np.ndarray]:
    """Each lane's %d (b32) and predicate %p; inputs of 32- or 64-bit values in %i0, %i1, ... Lanes that write
    nothing have 0xdeadbeef and 7.
    """
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
    Device(text, target).run("k", d, p, *inputs, block=(lanes, 1, 1))
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


@pytest.mark.slow
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
    """__shfl_*_sync(mask, value, by, width), as defined by CUDA."""
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
    """`instruction`, with mask %m, executed once by the odd lanes and once by the even ones."""
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
        if CODE == "ptx":  # ptxas refuses it without .sync from sm_70 on
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


def test_votes_of_lanes_below() -> None:
    """Each lane names the lanes below it, but not itself: open in PTX, and so in code for sm_80."""
    holds = np.random.default_rng(5).random(32) < 0.5
    votes = [[bool(v) for v in holds[:lane]] for lane in range(32)]
    prepare = "setp.ne.u32 %v, %i0, 0; mov.u32 %m, %lanemask_lt;"
    registers = ".reg .pred %v; .reg .b32 %m;"

    def vote(instruction: str) -> tuple[np.ndarray, np.ndarray]:
        return run(prepare + instruction, holds.astype(U32), registers=registers, target="80")

    d, _ = vote("vote.sync.ballot.b32 %d, %v, %m;")
    assert d.tolist() == [sum(v << i for i, v in enumerate(below)) for below in votes]
    for mode, outcome in (
        ("all", all),
        ("any", any),
        ("uni", lambda below: all(below) or not any(below)),
    ):
        _, p = vote(f"vote.sync.{mode}.pred %p, %v, %m;")
        assert p.tolist() == [outcome(below) for below in votes], mode


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
    """Nonexistent lanes are not waited for; ballots have 0 for them."""
    d, _ = run("setp.eq.u32 %q, %lane, %lane; vote.sync.ballot.b32 %d, %q, -1;", lanes=9)
    assert (d[:9] == 0x1FF).all()
    a = np.arange(32, dtype=U32)
    d, _ = run("redux.sync.add.u32 %d, %i0, -1;", a, lanes=9)
    assert (d[:9] == 36).all()


def test_lanes_that_come_separately_wait_for_each_other() -> None:
    """Two groups of lanes reach a shuffle through branches whose post-dominator is after it."""
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


GONE = {
    "guarded ret": "@!%q ret;",
    "guarded exit": "@!%q exit;",
    "shared ret": "@!%q bra RETURN; bra.uni ON; RETURN: ret; ON:",
    "a tail of its own": "@%q bra ON; add.u32 %w, %w, 1; exit; ON:",
    "ret before a trap": "@!%q bra RETURN; bra.uni ON; RETURN: @!%q ret; trap; ON:",
}
STAY = 0x49249204  # lanes


@pytest.mark.parametrize("gone", GONE.values(), ids=list(GONE))
@pytest.mark.parametrize(
    ("instruction", "value", "predicates"),
    [
        ("bar.sync 0; mov.b32 %d, 1", 1, 0),
        ("barrier.sync 1, 32; mov.b32 %d, 2", 2, 0),
        ("bar.red.popc.u32 %d, 0, %q", 9, 0),
        ("barrier.cta.red.and.pred.aligned %p, 3, %q; mov.b32 %d, 3", 3, STAY),
        ("barrier.cluster.arrive; barrier.cluster.wait; mov.b32 %d, 4", 4, 0),
        ("bar.warp.sync -1; mov.b32 %d, 5", 5, 0),
        ("vote.sync.all.pred %p, %q, -1; mov.b32 %d, 6", 6, STAY),
        ("vote.sync.ballot.b32 %d, %q, -1", STAY, 0),
        ("match.all.sync.b32 %d|%p, %m, -1", STAY, STAY),
        ("redux.sync.or.b32 %d, %e, -1", STAY, 0),
        ("elect.sync %d|%p, -1", 2, 4),
        ("shfl.sync.idx.b32 %d, %lane, 9, 31, -1", 9, 0),
    ],
)
def test_lanes_that_have_exited_are_not_waited_for(
    gone: str, instruction: str, value: int, predicates: int
) -> None:
    there = (STAY >> np.arange(32) & 1).astype(bool)
    prepare = f"""mov.b32 %m, {STAY}; mov.u32 %e, %lanemask_eq; and.b32 %w, %m, %e; setp.ne.u32 %q, %w, 0;
        mov.b32 %w, %lane;"""
    d, p = run(f"{prepare} {gone} {instruction};", registers=".reg .b32 %m, %e;")
    assert (d == np.where(there, U32(value), 0)).all()
    assert (p == np.where(there, predicates >> np.arange(32) & 1, 7)).all()


@pytest.mark.parametrize("instruction", ["bar.sync 0", "barrier.sync 2, 32", "bar.warp.sync -1"])
def test_lanes_of_parts_of_a_warp_wait_for_each_other(instruction: str) -> None:
    """What a lane has stored before it waits is visible to others afterwards, at whatever instruction it
    waits.
    """
    body = f"""
      .shared .b32 s[32]; mov.u32 %a0, s; mad.lo.u32 %a0, %lane, 4, %a0; xor.b32 %a1, %a0, 4;
      add.u32 %w, %lane, 100; and.b32 %m, %lane, 3; setp.eq.u32 %q, %m, 0; setp.gt.u32 %r, %m, 1;
      @%q bra ONE; @%r bra TWO;
      st.shared.b32 [%a0], %w; {instruction}; bra.uni JOIN;
    ONE:
      st.shared.b32 [%a0], %w; {instruction}; bra.uni JOIN;
    TWO:
      st.shared.b32 [%a0], %w; {instruction};
    JOIN:
      ld.shared.b32 %d, [%a1];
    """
    d, _ = run(body, registers=".reg .b32 %m; .reg .b32 %a<2>; .reg .pred %r;")
    assert (d == 100 + (np.arange(32) ^ 1)).all()


ODD = np.arange(32) % 2 == 1
LANE = np.arange(32)


@pytest.mark.parametrize(
    ("odd", "even", "value", "predicate"),
    [
        (
            "shfl.sync.bfly.b32 %d|%p, %w, 1, 31, -1",
            "shfl.sync.bfly.b32 %d, %lane, 1, 31, %m; neg.s32 %d, %d",
            np.where(ODD, LANE - 1, -(LANE + 101)),
            ODD,
        ),
        (
            "vote.sync.any.pred %p, !%q, -1; mov.b32 %d, 3",
            "vote.sync.any.pred %r, %h, %m; selp.b32 %d, 1, 0, %r",
            np.where(ODD, 3, 1),
            ODD,
        ),
        (
            "match.any.sync.b64 %d, %v, %m",
            "match.any.sync.b64 %d, %u, -1",
            np.array([15 << (lane & ~3) for lane in range(32)]),
            False,
        ),
        (
            "redux.sync.add.s32 %d, %w, %m",
            "redux.sync.add.s32 %d, -7, %m",
            (LANE + 100)[ODD].sum() - 16 * 7,
            False,
        ),
        (
            "elect.sync %d|%p, -1",
            "elect.sync _|%r, %m; selp.b32 %d, 1, 0, %r",
            np.where(ODD, 0, LANE == 0),
            False,
        ),
    ],
    ids=["shfl", "vote", "match", "redux", "elect"],
)
def test_lanes_meet_at_different_instructions(odd: str, even: str, value: Any, predicate: Any) -> None:
    """The same kind of instruction with the same members: odd lanes at the first, even ones at the second."""
    body = f"""
      add.u32 %w, %lane, 100; and.b32 %m, %lane, 1; setp.eq.u32 %r, %m, 0; setp.eq.u32 %h, %lane, 4;
      setp.lt.u32 %q, %lane, 32; mov.b32 %m, -1; shr.u32 %e, %lane, 2; cvt.u64.u32 %v, %e; cvt.u64.u32 %u, %e;
      @%r bra EVEN;
      {odd}; bra.uni JOIN;
    EVEN:
      {even};
    JOIN:
    """
    d, p = run(body, registers=".reg .b32 %m, %e; .reg .b64 %v, %u; .reg .pred %r, %h;")
    assert (d == np.broadcast_to(value, 32).astype(np.int64).astype(U32)).all()
    assert (p == predicate).all()


def test_groups_of_lanes_at_one_instruction() -> None:
    """Each lane names its own group; if some of a group arrive later, only that group waits."""
    group = LANE % 3
    members = np.array([sum(1 << j for j in range(32) if group[j] == g) for g in group], U32)
    a = np.random.default_rng(9).integers(0, 1000, 32, U32)
    sums = np.array([a[group == g].sum() for g in group])
    d, p = run(
        "redux.sync.add.u32 %d, %i0, %i1; setp.eq.u32 %q, %lane, 7; vote.sync.any.pred %p, %q, %i1;",
        a,
        members,
    )
    assert (d == sums).all()
    assert (p == (group == 1)).all()
    late = """
      setp.eq.u32 %r, %lane, 4; @%r bra LATE;
      redux.sync.add.u32 %d, %i0, %i1; bra.uni JOIN;
    LATE:
      add.u32 %w, %i0, 5; redux.sync.add.u32 %d, %w, %i1;
    JOIN:
    """
    d, _ = run(late, a, members, registers=".reg .pred %r;")
    assert (d == sums + np.where(group == 1, 5, 0)).all()


@ptx_only("machine code does not wait for lanes at the CTA's barrier")
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
        "redux.sync.min.abs.b32 %d, %d, -1",
        "redux.sync.add.b32 %d, %d, -1",
        "shfl.sync.idx.b64 %a, %a, 0, 31, -1",
        "match.some.sync.b32 %d, %d, -1",
        "vote.sync.ballot.pred %p, %q, -1",
    ],
)
def test_what_there_is_not_is_refused(instruction: str) -> None:
    with pytest.raises(PtxError):
        run(instruction + ";")
