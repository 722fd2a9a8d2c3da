"""Translation of addresses between the SMs and the interconnect."""

from __future__ import annotations

from typing import Any

import pytest

from memory.test_memory_system import BASE, memory, traffic

MIB = 1 << 20
HIT = 166  # cycles of an L2 hit of qv100-accelsim
MISS = 300


def with_tlbs(**overrides: Any) -> Any:
    fields = {"entries": 4, "entry_mib": 2, "count": 1, "miss_latency": MISS, **overrides}
    return memory(**{f"tlb__{name}": value for name, value in fields.items()})


def latencies(m: Any, requests: list[tuple[int, int, int, bool]], end: int = 100_000) -> list[int]:
    """Of each request, all of which are in the L2."""
    for _, _, address, _ in requests:
        m.insert(address, 32)
    found = {(sm, address): cycle for cycle, sm, address, _ in m.run(requests, end, 8)}
    assert len(found) == len(requests)
    return [found[sm, address] - cycle for cycle, sm, address, _ in requests]


def test_the_first_touch_of_a_page_waits_and_the_second_does_not() -> None:
    m = with_tlbs()
    assert latencies(m, [(100, 0, BASE, False), (2000, 0, BASE + 4096, False)]) == [HIT + MISS, HIT]
    assert m.counter("tlb_misses") == 1


def test_a_page_ends_with_its_last_byte() -> None:
    first, last, behind = BASE, BASE + 2 * MIB - 32, BASE + 2 * MIB
    m = with_tlbs()
    requests = [(100, 0, first, False), (2000, 0, last, False), (4000, 0, behind, False)]
    assert latencies(m, requests) == [HIT + MISS, HIT, HIT + MISS]


@pytest.mark.parametrize(("mib", "misses"), [(2, 4), (4, 2), (8, 1)])
def test_an_entry_translates_so_much_memory(mib: int, misses: int) -> None:
    m = with_tlbs(entry_mib=mib)
    latencies(m, [(100 + 1000 * k, 0, BASE + 2 * MIB * k, False) for k in range(4)])
    assert m.counter("tlb_misses") == misses


def test_what_needs_the_same_translation_waits_for_the_rest_of_the_miss() -> None:
    m = with_tlbs()
    requests = [(100, 0, BASE, False), (250, 1, BASE + 1024, False), (399, 2, BASE + 4096, False)]
    assert latencies(m, requests) == [HIT + MISS, HIT + MISS - 150, HIT + MISS - 299]
    assert m.counter("tlb_misses") == 1


def test_what_has_its_translation_overtakes_what_waits() -> None:
    m = with_tlbs()
    requests = [(100, 0, BASE, False), (1000, 0, BASE + 2 * MIB, False), (1010, 0, BASE + 64, False)]
    assert latencies(m, requests) == [HIT + MISS, HIT + MISS, HIT]


def test_misses_of_several_pages_are_under_way_together() -> None:
    m = with_tlbs()
    requests = [(100 + 10 * k, k, BASE + 2 * MIB * k, False) for k in range(4)]
    assert latencies(m, requests) == [HIT + MISS] * 4


def test_beyond_its_reach_the_oldest_translation_is_gone() -> None:
    """Four entries: a fifth page takes the place of the first, when it is translated."""
    m = with_tlbs()
    pages = [(1000 * (k + 1), 0, BASE + 2 * MIB * k, False) for k in range(5)]
    in_time = (5000 + MISS - 1, 1, BASE + 32, False)
    again = [(7000, 0, BASE + 2 * MIB + 32, False), (8000, 0, BASE + 64, False)]
    assert latencies(m, [*pages, in_time, *again]) == [HIT + MISS] * 5 + [HIT, HIT, HIT + MISS]


def test_a_single_entry_serves_two_pages_in_turn() -> None:
    m = with_tlbs(entries=1)
    requests = [(1000 * (k + 1), 0, BASE + 2 * MIB * (k % 2) + 64 * k, False) for k in range(6)]
    assert latencies(m, requests) == [HIT + MISS] * 6


def test_sms_use_the_tlbs_in_turn() -> None:
    m = with_tlbs(count=3)
    requests = [(1000 * (k + 1), sm, BASE + 64 * k, False) for k, sm in enumerate((0, 3, 1, 4, 2, 0))]
    missing = [True, False, True, False, True, False]
    assert latencies(m, requests) == [HIT + MISS * late for late in missing]


def test_stores_wait_too() -> None:
    m = with_tlbs()
    replies = m.run([(100, 0, BASE, True), (2000, 0, BASE + 32, True)], 5000, 8)
    first, second = (cycle for cycle, *_ in replies)
    assert (first - 100) - (second - 2000) == MISS


def test_memory_that_a_memset_wrote_is_translated_but_not_a_copy_from_the_host() -> None:
    written, received = BASE, BASE + 64 * MIB
    m = with_tlbs()
    m.insert(written, 6 * MIB, True)
    m.insert(received, 2 * MIB, False)
    requests = [(100 + 2000 * k, 0, written + 2 * MIB * k, False) for k in range(3)]
    assert latencies(m, [*requests, (9000, 0, received, False)]) == [HIT, HIT, HIT, HIT + MISS]


@pytest.mark.parametrize(("window", "parts"), [(1, 1), (7, 4), (100, 2)])
def test_results_depend_on_neither_windows_nor_parts(window: int, parts: int) -> None:
    requests = [
        (cycle, sm, BASE + (address - BASE) * 512, write)
        for cycle, sm, address, write in traffic(7, 80, 3000)
    ]
    fields = {"entries": 3, "count": 2, "miss_latency": 170}
    expected = with_tlbs(**fields).run(requests, 20_000, 50, 1)
    assert len(expected) == len(requests)
    m = with_tlbs(**fields)
    assert sorted(m.run(requests, 20_000, window, parts)) == sorted(expected)
    assert m.idle()
    assert m.counter("tlb_misses") > 100


def test_no_window_is_longer_than_a_miss() -> None:
    assert with_tlbs().look_ahead() == memory().look_ahead()
    assert with_tlbs(miss_latency=40).look_ahead() == 40


def test_without_entries_nothing_is_translated() -> None:
    requests = traffic(3, 80, 500)
    assert with_tlbs(entries=0).run(requests, 20_000, 50) == memory().run(requests, 20_000, 50)
