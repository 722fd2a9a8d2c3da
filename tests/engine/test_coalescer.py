"""Coalescing and shared-memory conflicts against slow, obvious references."""

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


@given(st.lists(st.integers(0, 4000).map(lambda a: 4 * a), min_size=1, max_size=32))
def test_word_conflicts(lanes: list[int]) -> None:
    banks: dict[int, set[int]] = {}
    for address in lanes:
        banks.setdefault(address // 4 % 32, set()).add(address // 4)
    assert testing.shared_passes(lanes, 4) == max(len(words) for words in banks.values())


@given(
    st.lists(st.integers(0, 1000).map(lambda a: 16 * a), min_size=1, max_size=32), st.sampled_from([8, 16])
)
def test_wide_conflicts(lanes: list[int], width: int) -> None:
    group = 32 * 4 // width
    passes = 0
    for begin in range(0, len(lanes), group):
        banks: dict[int, set[int]] = {}
        for address in lanes[begin : begin + group]:
            for word in range(address // 4, (address + width) // 4):
                banks.setdefault(word % 32, set()).add(word)
        passes += max(len(words) for words in banks.values())
    assert testing.shared_passes(lanes, width) == passes
    assert testing.shared_passes(lanes, width, by_width=False) <= 32
