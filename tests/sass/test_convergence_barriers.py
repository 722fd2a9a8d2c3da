"""Which lanes wait for which at BSYNC and WARPSYNC, in code written by hand."""

from __future__ import annotations

import pytest

from sass.test_refused_code import EXIT, load
from simt import _engine
from simt.sass.disassembler import is_installed

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)

Line = tuple[str, str, list[str]]
LANE: list[Line] = [
    ("", "S2R", ["R0", "SR_LANEID"]),
    ("", "ISETP.GE.AND", ["P0", "PT", "R0", "0x10", "PT"]),
    ("", "ISETP.GE.AND", ["P1", "PT", "R0", "0x18", "PT"]),
]


def run(lines: list[Line]) -> None:
    module = load([*LANE, *lines, EXIT])
    launch = _engine.functional.Launch(module, 0, (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, {})
    launch.run(b"", 1, 1, lambda text: None)


def test_lanes_at_a_barrier_of_the_cta_are_not_waited_for() -> None:
    # The upper lanes pass BSYNC, since the lower ones will not come. Those wait for all 32, but the upper
    # ones have gone to the CTA's barrier, which waits for all threads: only without them can any lane go on.
    # A barrier for some threads might be completed by other warps.
    def lines(*barrier: str) -> list[Line]:
        return [
            ("", "BSSY", ["B0", "0x80"]),  # 0x30
            ("@P0", "BRA", ["0x70"]),
            ("", "WARPSYNC.ALL", []),
            ("", "BRA", ["0x90"]),
            ("", "BSYNC", ["B0"]),  # 0x70
            ("", "BAR.SYNC", list(barrier)),
        ]

    run(lines("0x0"))
    with pytest.raises(_engine.functional.ProgramFault, match=r"16 threads of warp 0 wait at `WARPSYNC.ALL`"):
        run(lines("0x1", "0x40"))


def test_lanes_that_left_for_a_warpsync_are_not_waited_for() -> None:
    # As ptxas lets lanes leave a region: without BREAK.
    for leaving in ("@P0", "@!P0"):
        run(
            [
                ("", "BSSY", ["B0", "0x70"]),  # 0x30
                (leaving, "BRA", ["0x80"]),
                ("", "NOP", []),
                ("", "BSYNC", ["B0"]),  # 0x60
                ("", "NOP", []),
                ("", "WARPSYNC", ["0xffffffff"]),  # 0x80
                ("", "BAR.SYNC", ["0x0"]),
            ]
        )


def test_lanes_that_wait_go_on_without_those_that_yield() -> None:
    # Some lanes wait at the barrier when others yield, and others again arrive before those do. All of them
    # meet again at WARPSYNC.ALL, whichever lanes the barrier still held together.
    for first, second in (("@P0", "@!P1"), ("@!P0", "@P1"), ("@P1", "@P0"), ("@!P1", "@!P0")):
        run(
            [
                ("", "BSSY", ["B0", "0xe0"]),  # 0x30
                (first, "BRA", ["0xd0"]),
                (second, "BRA", ["0xc0"]),
                ("", "MOV", ["R2", "0x40"]),
                ("", "YIELD", []),  # 0x70
                ("", "NANOSLEEP", ["0x8"]),
                ("", "IADD3", ["R2", "R2", "-0x1", "RZ"]),
                ("", "ISETP.NE.AND", ["P2", "PT", "R2", "RZ", "PT"]),
                ("@P2", "BRA", ["0x70"]),  # 0xb0
                ("", "NOP", []),
                ("", "BSYNC", ["B0"]),  # 0xd0
                ("", "WARPSYNC.ALL", []),
            ]
        )


@pytest.mark.parametrize("leaving", ["@P0", "@!P0", "@P1"])
def test_lanes_that_left_for_an_outer_bsync_are_not_waited_for(leaving: str) -> None:
    # As ptxas leads them out of an inner region by a table of branches, without BREAK. Those that go on after
    # the inner BSYNC meet the others at the outer one: the last barrier is for all 32.
    run(
        [
            ("", "BSSY.RECONVERGENT", ["B0", "0x90"]),  # 0x30
            ("", "BSSY.RELIABLE", ["B8", "0x70"]),
            (leaving, "BRA", ["0x80"]),
            ("", "BSYNC.RELIABLE", ["B8"]),  # 0x60
            ("", "NOP", []),
            ("", "BSYNC.RECONVERGENT", ["B0"]),  # 0x80
            ("", "WARPSYNC", ["0xffffffff"]),
            ("", "BAR.SYNC", ["0x0"]),
        ]
    )


def test_lanes_that_wait_for_each_other_in_no_circle_are_reported() -> None:
    # The upper lanes wait at a named barrier for another warp: nobody's BSYNC is given up for that.
    with pytest.raises(_engine.functional.ProgramFault, match="16 threads of warp 0 wait at `BSYNC"):
        run(
            [
                ("", "BSSY.RECONVERGENT", ["B0", "0x70"]),  # 0x30
                ("@P0", "BRA", ["0x80"]),
                ("", "NOP", []),
                ("", "BSYNC.RECONVERGENT", ["B0"]),  # 0x60
                ("", "BRA", ["0x90"]),
                ("", "BAR.SYNC", ["0x1", "0x40"]),  # 0x80
            ]
        )
