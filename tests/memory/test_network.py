"""The crossbar: one packet an output and cycle, fairness, and what waits behind a blocked head."""

from hypothesis import given
from hypothesis import strategies as st

from simt._engine import testing


def moves(
    queues: list[list[tuple[int, int]]], outputs: int, islip: bool, cycles: int = 50
) -> list[tuple[int, ...]]:
    return testing.crossbar_moves(queues, outputs, islip, cycles)


def test_islip_serves_the_inputs_of_an_output_in_turn() -> None:
    found = moves([[(0, 1), (0, 2)], [(0, 3), (0, 4)], [(0, 5), (0, 6)]], 1, True)
    assert [(cycle, i) for cycle, i, _, _ in found] == [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]


def test_a_blocked_head_holds_what_is_behind_it() -> None:
    """Both inputs want output 0; input 1's second packet could go to output 1 at once, but waits."""
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
