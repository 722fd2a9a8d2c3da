"""Collective instructions and CTA barriers of lanes that have diverged, in machine code of ptxas."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from support.ptx import per_lane

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("elftools") is None,
    reason="pyelftools is not installed: pip install 'simt[sass]'",
)

LANE = np.arange(32, dtype=np.uint32)
DIVERGED = """{{
  .reg .pred %odd, %v, %w; .reg .b32 %x; and.b32 %x, %i0, 1; setp.ne.u32 %odd, %x, 0;
  @%odd bra ODD;
  {even}; bra.uni JOIN;
ODD:
  {odd};
JOIN:
}}"""


@pytest.mark.parametrize(
    ("even", "odd", "expected"),
    [
        (  # lane 6 holds it, for lanes at both
            "setp.eq.u32 %v, %i0, 6; vote.sync.any.pred %w, %v, -1; selp.u32 %o, 1, 0, %w",
            "setp.eq.u32 %v, %i0, 64; vote.sync.any.pred %w, %v, -1; selp.u32 %o, 2, 0, %w",
            1 + LANE % 2,
        ),
        (
            "redux.sync.add.u32 %o, %i0, -1",
            "redux.sync.add.u32 %o, 1000, -1",
            np.full(32, LANE[::2].sum() + 16 * 1000),
        ),
        (
            "match.any.sync.b32 %o, %i1, -1",
            "shr.u32 %x, %i0, 3; match.any.sync.b32 %o, %x, -1",
            np.uint32(0xFF) << (LANE & ~np.uint32(7)),
        ),
    ],
    ids=["vote", "redux", "match"],
)
def test_lanes_at_several_instructions_execute_one(even: str, odd: str, expected: np.ndarray) -> None:
    body = DIVERGED.format(even=even, odd=odd)
    assert per_lane(body, LANE, LANE >> 3, code="sass").tolist() == expected.tolist()


def test_groups_of_lanes_of_which_some_come_later() -> None:
    """Three groups; ptxas tells by R2UR and BRA.DIV that not all lanes have the same members."""
    group = LANE % 3
    members = np.array([(np.uint32(1) << LANE[group == g]).sum() for g in group], np.uint32)
    body = """{ .reg .pred %late; .reg .b32 %x; setp.eq.u32 %late, %i0, 4; @%late bra LATE;
      redux.sync.add.u32 %o, %i0, %i1; bra.uni JOIN;
    LATE: add.u32 %x, %i0, 500; redux.sync.add.u32 %o, %x, %i1;
    JOIN: }"""
    sums = np.array([LANE[group == g].sum() for g in group]) + np.where(group == 1, 500, 0)
    assert per_lane(body, LANE, members, code="sass").tolist() == sums.tolist()


@pytest.mark.parametrize("target", ["75", "80", "90a"])
def test_barriers_whose_number_and_threads_are_in_registers(target: str) -> None:
    """One register holds both: BAR.SYNC R0, R0."""
    words = np.arange(128, dtype=np.uint32)
    numbers, threads = 1 + words // 64, np.full(128, 64, np.uint32)  # two warps at each of two barriers
    body = """{ .shared .b32 s[128]; .reg .b32 %x, %y; mov.b32 %x, s; mad.lo.u32 %y, %i0, 4, %x;
      st.shared.b32 [%y], %i0; bar.sync %i1, %i2;
      xor.b32 %y, %i0, 32; mad.lo.u32 %y, %y, 4, %x; ld.shared.b32 %o, [%y]; }"""
    assert (
        per_lane(body, words, numbers, threads, code="sass", target=target).tolist() == (words ^ 32).tolist()
    )
