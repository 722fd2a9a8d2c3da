"""How a controller's decisions are carried out, without a GPU: CTAs end when the test says so."""

from __future__ import annotations

from typing import Any

import pytest

from simt._engine import testing
from simt.spec import load_spec

NEVER = 2**64 - 1
GO_ON = ("go on", 0, 0.0, 0.0, False)
STOP = ("stop", 0, 0.0, 0.0, False)


def skip(ctas: int) -> tuple[str, int, float, float, bool]:
    return ("skip", ctas, 0.0, 0.0, False)


def predict(
    cycles: float = 0, launch: float = 0, residents: bool = False
) -> tuple[str, int, float, float, bool]:
    return ("predict", 0, float(cycles), float(launch), residents)


def sampling(*answers: tuple[str, int, float, float, bool], ctas: int = 8, **how: Any) -> testing.Sampling:
    """2 SMs with one CTA each; an observation every 100 cycles; decisions take effect 10 cycles later."""
    spec = load_spec("qv100-accelsim", {"sm.count": 2, "launch.dispatch_latency": 10})
    return testing.Sampling(spec.native(), ctas, answers=list(answers), **how)


def ctas_of(placed: list[tuple[int, ...]]) -> list[int]:
    return [cta for *_, cta in placed]


def test_going_on_changes_nothing() -> None:
    control = sampling(GO_ON, ctas=2)
    assert ctas_of(control.advance(0, 50)) == [0, 1]
    assert control.next_event() == 100
    control.advance(100, 150)
    control.advance(200, 250)
    assert control.intervals == [(0, 0, 100), (1, 100, 200)]
    assert [control.leave(sm, 0, 230) for sm in (0, 1)] == [0, 0]
    assert control.done()
    assert control.next_event() == NEVER
    result = control.finish()
    assert result["decisions"] == []
    assert result["detailed_cycle"] == 231
    assert control.executed == [] and control.finished == []


def test_stop_takes_effect_after_the_delay() -> None:
    control = sampling(GO_ON, STOP)
    assert ctas_of(control.advance(0, 90)) == [0, 1]
    control.advance(100, 400)
    assert control.next_event() == 110
    assert not control.done()
    control.advance(110, 400)
    # Both resident CTAs, and CTAs 2 to 7, are executed without timing.
    assert control.finished == [(2, 2)]
    assert not control.done()  # residents leave their SMs when they have no requests in flight
    for sm in (0, 1):
        control.leave(sm, 0, 120)
    assert control.done()
    result = control.finish()
    assert result["stopped"]
    assert result["decisions"] == [(100, "stop", "")]
    assert result["executed"] == (12, 384)


def test_stop_before_the_launch_begins() -> None:
    control = sampling(STOP)
    assert control.advance(0, 100) == []
    assert control.done()
    assert control.finished == [(0, 0)]


def test_skipped_ctas_are_executed_without_timing() -> None:
    control = sampling(GO_ON, skip(3))
    assert ctas_of(control.advance(0, 90)) == [0, 1]
    control.advance(100, 110)
    assert control.executed == []
    control.advance(110, 120)
    assert control.executed == [(2, 5)]
    for sm in (0, 1):
        control.leave(sm, 0, 115)
    assert ctas_of(control.advance(130, 200)) == [5, 6]
    # Detailed simulation continues: the controller is called again.
    control.advance(200, 210)
    assert control.intervals[-1] == (1, 100, 200)
    result = control.finish()
    assert (result["skipped_ctas"], result["predicted_ctas"]) == (3, 0)


def test_no_more_is_skipped_than_there_is() -> None:
    control = sampling(skip(100), ctas=4)
    assert control.advance(0, 100) == []
    assert control.executed == [(0, 4)]
    assert control.done()


@pytest.mark.parametrize(("asked", "skipped"), [(1, []), (5, [(0, 4)]), (4, [(0, 4)])])
def test_clusters_are_skipped_as_a_whole(asked: int, skipped: list[tuple[int, int]]) -> None:
    control = sampling(skip(asked), cluster=2)
    control.advance(0, 1)
    assert [e for e in control.executed if e[0] != e[1]] == skipped


def test_predicted_ctas_take_their_places_for_the_predicted_time() -> None:
    control = sampling(GO_ON, predict(cycles=300), ctas=5)
    assert ctas_of(control.advance(0, 90)) == [0, 1]
    control.advance(100, 110)
    control.leave(0, 0, 105)
    control.leave(1, 0, 145)
    # Placed at 115 and 155; 300 cycles each; the fifth one after the first of them.
    assert control.advance(110, 1000) == []
    assert control.done()
    result = control.finish()
    assert result["predicted_ctas"] == 3
    assert result["last_end"] == 115 + 300 + 10 + 300 + 1
    assert result["detailed_cycle"] == 146
    assert control.executed == [(2, 5)]


def test_residents_are_predicted_too_where_it_is_asked_for() -> None:
    control = sampling(GO_ON, predict(cycles=300, residents=True), ctas=2)
    control.advance(0, 90)
    control.advance(100, 110)
    control.advance(110, 120)
    assert control.finished == [(2, 2)]
    # Their warps began at 1, so 191 of 300 cycles are left at 110.
    assert [control.leave(sm, 0, 115 + sm) for sm in (0, 1)] == [301, 301]
    result = control.finish()
    assert result["predicted_ctas"] == 2
    assert result["detailed_cycle"] == 110


def test_a_whole_launch_is_predicted_at_once() -> None:
    control = sampling(predict(launch=12345))
    assert control.advance(0, 100) == []
    assert control.done()
    result = control.finish()
    assert result["last_end"] == 12345
    assert result["predicted_ctas"] == 8
    assert control.executed == [(0, 8)]


def test_clusters_that_have_begun_go_on_in_detail() -> None:
    control = sampling(GO_ON, predict(cycles=50), ctas=6, cluster=4, ctas_per_sm=1)
    assert ctas_of(control.advance(0, 90)) == [0, 1]
    control.advance(100, 110)
    control.leave(0, 0, 100)
    control.leave(1, 0, 100)
    assert ctas_of(control.advance(110, 1000)) == [2, 3]
