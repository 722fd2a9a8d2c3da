"""The crossbar: one packet per output and cycle, fairness, and head-of-line blocking."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt._engine import testing


def moves(
    queues: list[list[tuple[int, int]]], outputs: int, islip: bool, cycles: int = 50, **ports: int
) -> list[tuple[int, ...]]:
    return testing.crossbar_moves(queues, outputs, islip, cycles, **ports)


def test_islip_serves_the_inputs_of_an_output_in_turn() -> None:
    found = moves([[(0, 1), (0, 2)], [(0, 3), (0, 4)], [(0, 5), (0, 6)]], 1, True)
    assert [(cycle, i) for cycle, i, _, _ in found] == [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]


def test_a_blocked_head_holds_what_is_behind_it() -> None:
    """Both inputs want output 0; input 1's second packet could go to output 1 immediately, but waits."""
    found = moves([[(0, 1)], [(0, 2), (1, 3)]], 2, False)
    assert found[:2] == [(0, 0, 0, 1), (1, 1, 0, 2)]
    assert found[2] == (2, 1, 1, 3)


def test_islip_lets_an_input_send_to_rising_outputs_in_one_cycle() -> None:
    rising = moves([[(0, 1), (1, 2), (2, 3)]], 3, True)
    assert [cycle for cycle, *_ in rising] == [0, 0, 0]
    falling = moves([[(2, 1), (1, 2), (0, 3)]], 3, True)
    assert [cycle for cycle, *_ in falling] == [0, 1, 2]
    assert [cycle for cycle, *_ in moves([[(0, 1), (1, 2), (2, 3)]], 3, False)] == [0, 1, 2]


queues = st.lists(st.lists(st.integers(0, 4), max_size=8), min_size=1, max_size=6)


@given(queues, st.booleans())
def test_every_packet_arrives_once_and_in_order(wanted: list[list[int]], islip: bool) -> None:
    named = [[(output, 100 * i + k) for k, output in enumerate(q)] for i, q in enumerate(wanted)]
    found = moves(named, 5, islip, cycles=60)
    for i, q in enumerate(named):
        assert [(output, name) for _, source, output, name in found if source == i] == q
    taken = [(cycle, output) for cycle, _, output, _ in found]
    assert len(set(taken)) == len(taken), "one packet an output and cycle"


def test_outputs_that_look_ahead_take_what_is_behind_a_blocked_head() -> None:
    """As above, but output 1 sees the second packet of input 1 in the first cycle."""
    found = moves([[(0, 1)], [(0, 2), (1, 3)]], 2, True, look_ahead=2)
    assert sorted(found) == [(0, 0, 0, 1), (0, 1, 1, 3), (1, 1, 0, 2)]
    # The third packet is not visible until one of the two before it has left, in cycle 1.
    found = moves([[(0, 1)], [(0, 2), (0, 3), (1, 4)]], 2, True, look_ahead=2)
    assert min(cycle for cycle, _, output, _ in found if output == 1) >= 2


def test_ports_are_as_wide_as_they_say() -> None:
    """Ten packets from one input to one output, limited by the narrower of the two ports."""
    queues = [[(0, i) for i in range(10)]]
    for widths, cycles in (((1, 1), 10), ((2, 1), 10), ((1, 2), 10), ((2, 2), 5)):
        ports = {"input_width": widths[0], "output_width": widths[1]}
        found = moves(queues, 1, True, look_ahead=4, **ports)
        assert found[-1][0] == cycles - 1
        assert [name for *_, name in found] == list(range(10))


@given(queues, st.integers(2, 6), st.integers(1, 3), st.integers(1, 3))
def test_looking_ahead_keeps_the_order_between_two_ports(
    wanted: list[list[int]], look_ahead: int, input_width: int, output_width: int
) -> None:
    named = [[(output, 100 * i + k) for k, output in enumerate(q)] for i, q in enumerate(wanted)]
    found = moves(
        named, 5, True, 80, look_ahead=look_ahead, input_width=input_width, output_width=output_width
    )
    assert sorted(name for *_, name in found) == sorted(name for q in named for _, name in q)
    for i, q in enumerate(named):
        for output in range(5):
            sent = [name for _, source, to, name in found if (source, to) == (i, output)]
            assert sent == [name for to, name in q if to == output]
    for cycle in range(80):
        now = [(source, to) for c, source, to, _ in found if c == cycle]
        assert all([s for s, _ in now].count(i) <= input_width for i in range(len(named)))
        assert all([t for _, t in now].count(output) <= output_width for output in range(5))


@pytest.mark.parametrize(("look_ahead", "least", "most"), [(2, 0.65, 0.75), (8, 0.85, 0.93)])
def test_look_ahead_gives_the_bandwidth_of_the_literature(look_ahead: int, least: float, most: float) -> None:
    """Uniform traffic in a crossbar of 32 ports: Karol et al. 1987, table II, give 0.70 for windows of 2 and
    0.88 for windows of 8 (of infinitely many ports; packets arrive in any cycle)."""
    rng = random.Random(1)
    queues = [[(rng.randrange(32), k) for k in range(400)] for _ in range(32)]
    found = moves(queues, 32, True, 200, look_ahead=look_ahead)
    assert least < len(found) / (32 * 200) < most
