"""Coalescing and shared-memory conflicts against slow, obvious references."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt._engine import testing

widths = st.sampled_from([1, 2, 4, 8, 16])
addresses = st.lists(st.integers(0, 2000), min_size=1, max_size=32)


@given(addresses, widths)
def test_transactions_are_the_sectors_touched(lanes: list[int], width: int) -> None:
    bytes_of: dict[int, set[int]] = {}
    for address in lanes:
        for byte in range(address, address + width):
            bytes_of.setdefault(byte // 32 * 32, set()).add(byte % 32)
    expected = [(sector, sum(1 << b for b in touched)) for sector, touched in sorted(bytes_of.items())]
    found = testing.coalesce(lanes, width)
    assert [(address, mask) for address, mask, _ in found] == expected
    assert sum(count for _, _, count in found) == len(lanes)


@given(st.lists(st.integers(0, 300).map(lambda a: 4 * a), min_size=1, max_size=32))
def test_atomic_transactions_hold_no_byte_twice(lanes: list[int]) -> None:
    found = testing.coalesce(lanes, 4, atomic=True)
    assert sum(count for _, _, count in found) == len(lanes)
    assert sum(mask.bit_count() for _, mask, _ in found) == 4 * len(lanes)
    # As many transactions as the busiest word of each sector requires, and no more.
    for sector in {a // 32 for a in lanes}:
        words = [a for a in lanes if a // 32 == sector]
        assert sum(address // 32 == sector for address, _, _ in found) == max(words.count(w) for w in words)


def test_before_maxwell_segments_are_whole() -> None:
    both_halves = [address for address, _, _ in testing.coalesce([0, 64], 4, sectored=False)]
    assert both_halves == [0, 32, 64, 96]
    one_half = [address for address, _, _ in testing.coalesce([0, 32], 4, sectored=False)]
    assert one_half == [0, 32]
    assert [address for address, _, _ in testing.coalesce([96], 4, sectored=False)] == [96]


def passes_of(groups: list[list[int]], width: int) -> int:
    """The largest number of distinct words that one bank delivers, summed over groups of lanes."""
    passes = 0
    for group in groups:
        banks: dict[int, set[int]] = {}
        for address in group:
            for word in range(address // 4, (address + width + 3) // 4):
                banks.setdefault(word % 32, set()).add(word)
        passes += max((len(words) for words in banks.values()), default=0)
    return passes


masks = st.integers(1, (1 << 32) - 1)


def active(lanes: list[int], mask: int) -> list[int]:
    return [address for lane, address in enumerate(lanes) if mask >> lane & 1]


@given(st.lists(st.integers(0, 4000).map(lambda a: 4 * a), min_size=32, max_size=32), masks)
def test_word_conflicts(lanes: list[int], mask: int) -> None:
    there = active(lanes, mask)
    assert testing.shared_passes(there, mask, 4) == passes_of([there], 4)


@given(
    st.lists(st.integers(0, 1000).map(lambda a: 16 * a), min_size=32, max_size=32),
    masks,
    st.sampled_from([8, 16]),
    st.booleans(),
)
def test_wide_conflicts(lanes: list[int], mask: int, width: int, load: bool) -> None:
    size = 32 * 4 // width
    pairs = [
        all(lanes[n] == lanes[n ^ d] for n in range(32) if mask >> n & 1 and mask >> (n ^ d) & 1)
        for d in (1, 2)
    ]
    if load and any(pairs):
        size *= 2
    groups = [[lanes[n] for n in range(begin, begin + size) if mask >> n & 1] for begin in range(0, 32, size)]
    there = active(lanes, mask)
    assert testing.shared_passes(there, mask, width, load=load) == max(1, passes_of(groups, width))
    assert testing.shared_passes(there, mask, width, by_width=False) <= 32


@pytest.mark.parametrize(
    ("address", "width", "load", "passes"),
    [
        (lambda lane: 0, 8, True, 1),  # one word for all
        (lambda lane: 0, 16, True, 2),
        (lambda lane: 0, 16, False, 4),  # only loads return less
        (lambda lane: lane // 2 * 16, 16, True, 2),  # n and n ^ 1
        (lambda lane: lane // 4 * 32 + lane % 2 * 16, 16, True, 2),  # n and n ^ 2
        (lambda lane: lane // 4 * 16, 16, True, 2),  # both
        (lambda lane: lane % 16 * 16, 16, True, 4),  # halves of the warp alike: no such pairs
        (lambda lane: lane * 16, 16, True, 4),
    ],
)
def test_wide_loads_of_equal_pairs(
    address: Callable[[int], int], width: int, load: bool, passes: int
) -> None:
    lanes = [address(lane) for lane in range(32)]
    assert testing.shared_passes(lanes, 0xFFFFFFFF, width, load=load) == passes


@given(
    st.lists(st.integers(0, 1000).map(lambda a: 16 * a), min_size=32, max_size=32),
    masks,
    st.lists(
        st.tuples(st.integers(0, 2000), st.sampled_from([0, 0, 4, 16, 128]), st.integers(0, 31)), max_size=6
    ),
    st.sampled_from([4, 8, 16]),
)
def test_what_is_kept_of_an_earlier_load_holds(
    lanes: list[int], mask: int, others: list[tuple[int, int, int]], width: int
) -> None:
    """Loads at some distance from each other, one lane of which may be elsewhere."""
    loads = [active(lanes, mask)]
    for distance, change, lane in others:
        moved = [address + distance for address in lanes]
        moved[lane] += change
        loads.append(active(moved, mask))
    alone = [testing.shared_passes(load, mask, width) for load in loads]
    assert testing.shared_passes_of_loads(loads, mask, width) == alone


def test_a_load_a_byte_further_is_not_taken_for_an_earlier_one() -> None:
    """Two lanes in one word, and in neighbouring words of which only the bank of the second is another."""
    loads = [[0, 3], [1, 4], [129, 132], [128, 131], [0, 128], [0, 124]]
    assert testing.shared_passes_of_loads(loads, 3, 4) == [1, 1, 1, 1, 2, 1]
    loads = [[2, 129], [3, 130], [4, 131], [5, 132]]  # banks 0 and 0, 0 and 0, 1 and 0, 1 and 1
    assert testing.shared_passes_of_loads(loads, 3, 4) == [2, 2, 1, 2]
