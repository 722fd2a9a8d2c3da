"""Sectored caches: hand-computed cases, and a slow, obvious reference."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt._engine import testing
from simt.spec import load_spec

LINE = 128
HALF = 0x0000FFFF


def cache(which: str = "l2", **changes: Any) -> Any:
    """A small cache: one set of two ways by default."""
    prefix = "l1.cache" if which == "l1" else "l2.slice"
    values = {"sets": 1, "ways": 2, "set_index": "linear", "dirty_threshold": 0, **changes}
    overrides: dict[str, Any] = {f"{prefix}.{k}": v for k, v in values.items()}
    if which == "l1":
        overrides["l1.adaptive"] = False
    return testing.Cache(load_spec("qv100-accelsim", overrides).native(), which)


def read_in(c: Any, address: int) -> None:
    assert c.access(address) in ("miss", "sector_miss")
    c.fill(address)
    c.ready()
    c.misses()


def test_sectors_of_a_line_miss_one_by_one() -> None:
    c = cache()
    assert c.access(0) == "miss"
    assert c.access(32) == "sector_miss"
    assert c.access(0) == "hit_reserved"
    c.fill(0)
    assert c.access(0) == "hit"
    assert c.access(32) == "hit_reserved"
    assert [m[0] for m in c.misses()] == [0, 32]


def test_merged_reads_come_out_in_order_when_the_data_is_there() -> None:
    c = cache()
    for token in (11, 12, 13):
        c.access(64, token=token)
    assert c.ready() == []
    c.fill(64)
    assert c.ready() == [11, 12, 13]


def test_a_line_replaced_while_its_reads_still_wait_for_their_turn_is_not_reserved_for_ever() -> None:
    c = cache()
    for address, token in ((0, 11), (0, 12), (LINE, 13)):
        c.access(address, token=token)
    c.fill(0)
    c.fill(LINE)
    assert c.access(2 * LINE, token=14) == "miss" and not c.contains(0)
    # Merged into the MSHR of address 0, whose data has come: nothing else will fill the line.
    assert c.access(0, token=15) == "miss"
    assert c.contains(0) and c.access(0) == "hit"
    assert [m[0] for m in c.misses()] == [0, LINE, 2 * LINE]
    assert c.ready() == [11, 12, 15, 13]


def test_least_recently_used_way_is_evicted() -> None:
    c = cache()
    read_in(c, 0)
    read_in(c, LINE)
    assert c.access(0) == "hit"
    read_in(c, 2 * LINE)
    assert c.contains(0) and c.contains(2 * LINE) and not c.contains(LINE)


def test_fifo_evicts_the_oldest_whatever_was_used() -> None:
    c = cache(replacement="fifo")
    read_in(c, 0)
    read_in(c, LINE)
    assert c.access(0) == "hit"
    read_in(c, 2 * LINE)
    assert not c.contains(0) and c.contains(LINE)


@pytest.mark.parametrize("replacement", ["lru", "fifo"])
@pytest.mark.parametrize("ways", [3, 8, 24, 31, 32, 70])
def test_the_order_of_a_set_of_any_width(ways: int, replacement: str) -> None:
    """Sets of up to 31 ways are kept in another form than wider ones."""
    c = cache(sets=2, ways=ways, replacement=replacement)
    rng = random.Random(ways)
    orders: list[list[int]] = [[], []]  # oldest first
    for _ in range(40 * ways):
        line = rng.randrange(3 * ways)
        order = orders[line % 2]
        assert c.contains(line * LINE) == (line in order)
        if line in order:
            assert c.access(line * LINE) == "hit"
            if replacement == "fifo":
                continue
            order.remove(line)
        else:
            read_in(c, line * LINE)
            del order[: len(order) == ways]
        order.append(line)


@pytest.mark.parametrize("ways", [4, 40])
def test_reads_outlive_the_lines_they_were_made_for(ways: int) -> None:
    c = cache("l1", ways=ways, write_policy="write_through", mshr_merge=3)
    c.access(0, token=11)
    c.invalidate()
    assert c.access(0, token=12) == "miss"  # waits in the first one's MSHR
    c.set_ways(2)
    assert c.access(0, token=13) == "miss"
    assert c.access(0, token=14) == "reservation_fail"
    assert c.failure() == "mshr_merge"
    assert [m[0] for m in c.misses()] == [0]
    c.fill(0)
    assert c.contains(0)
    assert c.ready() == [11, 12, 13]


def test_a_set_with_every_way_reserved_refuses() -> None:
    c = cache()
    assert c.access(0) == "miss"
    assert c.access(LINE) == "miss"
    assert c.access(2 * LINE) == "reservation_fail"
    assert c.failure() == "line"
    c.fill(0)
    assert c.access(2 * LINE) == "miss"


def test_mshr_entries_and_merges_are_limited() -> None:
    c = cache(ways=4, mshr_entries=2, mshr_merge=2)
    assert [c.access(0), c.access(32)] == ["miss", "sector_miss"]
    assert (c.access(64), c.failure()) == ("reservation_fail", "mshr_entries")
    assert c.access(0) == "hit_reserved"
    assert (c.access(0), c.failure()) == ("reservation_fail", "mshr_merge")
    c.fill(0)
    assert c.access(64) == "reservation_fail", "the entry is free when its reads have been taken out"
    c.ready()
    assert c.access(64) == "sector_miss"


def test_a_miss_needs_two_places_in_the_miss_queue() -> None:
    c = cache(ways=8, miss_queue=3)
    assert c.access(0) == "miss"
    assert c.access(LINE) == "miss"
    assert (c.access(2 * LINE), c.failure()) == ("reservation_fail", "miss_queue")
    c.misses()
    assert c.access(2 * LINE) == "miss"


def test_write_validate_reads_back_only_what_is_complete() -> None:
    c = cache()
    assert c.access(0, write=True, byte_mask=HALF) == "miss"
    assert c.misses() == [], "nothing is fetched"
    assert c.access(0) == "sector_miss", "half of the sector is not known"
    assert [m[0] for m in c.misses()] == [0]
    c.fill(0)
    assert c.access(0) == "hit"
    assert c.access(32, write=True) == "sector_miss"
    assert c.access(32) == "hit", "every byte was written"
    assert c.modified_lines() == 1


def test_two_halves_written_make_a_whole() -> None:
    c = cache()
    c.access(0, write=True, byte_mask=HALF)
    c.access(0, write=True, byte_mask=0xFFFF0000)
    assert c.access(0) == "hit"


def test_eviction_writes_back_the_modified_sectors_at_once() -> None:
    c = cache(ways=1)
    c.access(32, write=True)
    c.access(96, write=True)
    assert c.access(LINE) == "miss"
    write_back, fetch = sorted(c.misses(), key=lambda m: not m[1])
    assert write_back[:4] == (32, True, True, 2)
    assert fetch[:2] == (LINE, False)


@pytest.mark.parametrize(("threshold", "evicts"), [(25, True), (26, False)])
def test_modified_lines_stay_below_the_threshold(threshold: int, evicts: bool) -> None:
    """One of four lines is modified: 25 percent."""
    c = cache(ways=4, dirty_threshold=threshold)
    c.access(0, write=True)
    for i in (1, 2, 3):
        read_in(c, i * LINE)
    read_in(c, 4 * LINE)
    assert c.contains(0) != evicts


def test_beyond_the_limit_the_oldest_modified_line_is_written_back_and_stays() -> None:
    c = cache(ways=4, dirty_limit=50)
    c.access(0, write=True)
    c.access(LINE, write=True)
    assert c.misses() == [] and c.modified_lines() == 2
    c.access(0, write=True)  # makes LINE the older one
    read_in(c, 3 * LINE)
    c.access(2 * LINE, write=True)
    (back,) = c.misses()
    assert back[:4] == (LINE, True, True, 1)
    assert c.modified_lines() == 2
    assert c.access(LINE) == "hit"
    # A later eviction has nothing to write.
    assert [c.access(line * LINE) for line in (0, 2, 3)] == ["hit"] * 3
    assert c.access(4 * LINE) == "miss"
    assert [m[2] for m in c.misses()] == [False] and not c.contains(LINE)


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (49, 1), (50, 2), (74, 2), (75, 3), (100, 4)])
def test_the_limit_of_modified_lines_is_a_share_of_a_set(limit: int, most: int) -> None:
    c = cache(ways=4, dirty_limit=limit)
    for line in range(4):
        c.access(line * LINE, write=True)
    assert c.modified_lines() == most
    assert [m[0] for m in c.misses()] == [line * LINE for line in range(4 - most)]


def test_of_a_line_written_back_early_only_complete_sectors_stay() -> None:
    c = cache(ways=4, dirty_limit=25)
    c.access(0, write=True, byte_mask=HALF)
    c.access(32, write=True)
    c.access(LINE, write=True)
    assert [m[:4] for m in c.misses()] == [(0, True, True, 2)]
    assert not c.contains(0) and c.contains(32)
    assert c.access(0) == "sector_miss"


def written_back(lines: int, **changes: Any) -> set[int]:
    """Of so many lines, the only ones of their set, that are written one after the other."""
    c = cache(ways=lines, dirty_limit=50, **changes)
    for line in range(lines):
        c.access(line * LINE, write=True)
        assert c.modified_lines() == min(line + 1, lines // 2)
    return {m[0] // LINE for m in c.misses()}


def test_a_hash_chooses_what_is_written_back_among_old_and_new_lines() -> None:
    """By age, the first half; by a hash, about half of each half, but not the line that is being written."""
    assert written_back(64) == set(range(32))
    chosen = written_back(64, dirty_hash=True)
    assert len(chosen) == 32 and 63 not in chosen
    assert 8 <= len(chosen & set(range(32))) <= 24


@pytest.mark.parametrize("ways", [4, 7, 8, 16, 24, 70])
def test_one_of_the_oldest_quarter_is_evicted(ways: int) -> None:
    evicted = set()
    for start in range(0, 12 * ways * ways, ways):
        c = cache(ways=ways, replacement="oldest_quarter")
        for line in range(start, start + ways):
            read_in(c, line * LINE)
        read_in(c, (start + 12345) * LINE)
        (gone,) = [way for way in range(ways) if not c.contains((start + way) * LINE)]
        evicted.add(gone)
    assert evicted == set(range(max(1, ways // 4)))


@pytest.mark.parametrize(
    ("lines", "least", "most"),
    [(16, 1, 1), (17, 0.54, 0.66), (18, 0.33, 0.46), (20, 0.12, 0.23), (24, 0, 0.06)],
)
def test_a_chain_through_more_than_a_set_hits_as_on_a_v100(lines: int, least: float, most: float) -> None:
    """LRU would hit nothing beyond 16; the shares are those of a short program that chooses at random."""
    hits = reads = 0
    for start in range(0, 20000, 1000):
        c = cache(ways=16, replacement="oldest_quarter")
        for turn in range(30):
            for line in range(start, start + lines):
                found = c.access(line * LINE) == "hit"
                if not found:
                    c.fill(line * LINE)
                    c.ready()
                    c.misses()
                hits += found and turn >= 10
                reads += turn >= 10
    assert least <= hits / reads <= most


@pytest.mark.parametrize("replacement", ["lru", "fifo"])
def test_a_set_full_of_modified_lines_gives_up_its_oldest(replacement: str) -> None:
    """Below the threshold; otherwise a set whose lines are all kept would refuse all others forever."""
    c = cache(sets=2, dirty_threshold=100, replacement=replacement)
    for i in (0, 2, 4):
        assert c.access(i * LINE, write=True) == "miss"
    assert [c.contains(i * LINE) for i in (0, 2, 4)] == [False, True, True]
    # A line cannot be evicted while it waits for data.
    assert c.access(6 * LINE) == "miss"
    assert c.access(8 * LINE) == "reservation_fail"
    c.fill(6 * LINE)
    assert c.access(8 * LINE) == "miss"
    assert [c.contains(i * LINE) for i in (4, 6)] == [True, False]


def test_atomics_leave_the_sector_modified() -> None:
    c = cache()
    read_in(c, 0)
    assert c.access(0, atomic=True) == "hit"
    assert c.modified_lines() == 1
    assert c.access(LINE, atomic=True) == "miss"
    c.fill(LINE)
    assert c.modified_lines() == 2


def test_write_through_sends_every_write_and_never_writes_back() -> None:
    c = cache("l1", ways=1, write_policy="write_through", write_allocation="write_validate")
    read_in(c, 0)
    assert c.access(0, write=True) == "hit" and c.write_sent()
    assert c.access(LINE, write=True) == "miss" and c.write_sent()
    assert [(m[0], m[2]) for m in c.misses()] == [(0, False), (LINE, False)]


def test_pascal_l1_evicts_on_global_writes_and_keeps_local_ones() -> None:
    c = cache("l1", write_policy="local_write_back_global_write_through", write_allocation="none")
    read_in(c, 0)
    assert c.access(0, write=True) == "hit" and c.write_sent()
    assert not c.contains(0)
    read_in(c, 0)
    assert c.access(0, write=True, local=True) == "hit" and not c.write_sent()
    assert c.contains(0)


def test_allocation_on_fill_reserves_nothing() -> None:
    c = cache("l1", ways=1, allocation="on_fill", mshr_entries=8)
    assert [c.access(i * LINE) for i in range(3)] == ["miss"] * 3
    c.fill(LINE)
    assert c.contains(LINE)
    c.fill(0)
    assert c.contains(0) and not c.contains(LINE)


def test_fewer_ways_after_a_carve_out() -> None:
    c = cache("l1", ways=4, write_policy="write_through")
    for i in range(4):
        read_in(c, i * LINE)
    c.set_ways(2)
    assert not any(c.contains(i * LINE) for i in range(4))
    for i in range(3):
        read_in(c, i * LINE)
    assert [c.contains(i * LINE) for i in range(3)] == [False, True, True]


@dataclass
class SlowLine:
    tag: int
    used: int
    state: dict[int, str] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    becomes_modified: set[int] = field(default_factory=set)


class SlowCache:
    """Write-back, write-validate, LRU, on-miss, in the simplest form."""

    def __init__(self, sets: int, ways: int, entries: int, merge: int) -> None:
        self.sets, self.ways, self.entries, self.merge = sets, ways, entries, merge
        self.lines: list[list[SlowLine]] = [[] for _ in range(sets)]
        self.waiting: dict[int, list[int]] = {}
        self.time = 0

    def find(self, address: int) -> SlowLine | None:
        return next((x for x in self.lines[address // LINE % self.sets] if x.tag == address // LINE), None)

    def access(self, address: int, write: bool, mask: int, token: int) -> str:
        self.time += 1
        sector = address // 32
        line = self.find(address)
        in_set = self.lines[address // LINE % self.sets]
        state = line.state.get(sector, "invalid") if line else "absent"
        full = line is not None and line.written.get(sector) == 0xFFFFFFFF
        if line and (state == "valid" or (state == "modified" and (write or full))):
            line.used = self.time
            if write:
                line.written[sector] = (0xFFFFFFFF if state == "valid" else line.written[sector]) | mask
                line.state[sector] = "modified"
            return "hit"
        outcome = {"reserved": "hit_reserved", "absent": "miss"}.get(state, "sector_miss")
        victim = None
        if line is None and len(in_set) == self.ways:
            free = [x for x in in_set if "reserved" not in x.state.values()]
            if not free:
                return "reservation_fail"
            victim = min(free, key=lambda x: x.used)
        if not write:
            waiting = self.waiting.get(sector)
            if waiting is not None and len(waiting) >= self.merge:
                return "reservation_fail"
            if waiting is None and len(self.waiting) >= self.entries:
                return "reservation_fail"
        if line is None:
            if victim:
                in_set.remove(victim)
            line = SlowLine(address // LINE, self.time)
            in_set.append(line)
        line.used = self.time
        if not write:
            if state == "modified":
                line.becomes_modified.add(sector)
            line.state[sector] = "reserved"
            self.waiting.setdefault(sector, []).append(token)
        elif state == "reserved":
            line.becomes_modified.add(sector)
        else:
            line.written[sector] = line.written.get(sector, 0) * (state == "modified") | mask
            line.state[sector] = "modified"
        return outcome

    def fill(self, sector: int) -> list[int]:
        line = self.find(sector * 32)
        if line and line.state.get(sector) == "reserved":
            line.state[sector] = "modified" if sector in line.becomes_modified else "valid"
            line.written[sector] = 0xFFFFFFFF
            line.becomes_modified.discard(sector)
        return self.waiting.pop(sector)


steps = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "fill"]),
        st.integers(0, 23),
        st.sampled_from([HALF, 0xFFFFFFFF, 0xF]),
    ),
    max_size=120,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(steps)
def test_against_a_slow_reference(program: list[tuple[str, int, int]]) -> None:
    fast = cache(sets=2, ways=2, mshr_entries=4, mshr_merge=3, miss_queue=1000)
    slow = SlowCache(2, 2, 4, 3)
    for token, (what, sector, mask) in enumerate(program):
        if what == "fill":
            if not slow.waiting:
                continue
            target = sorted(slow.waiting)[sector % len(slow.waiting)]
            expected = slow.fill(target)
            fast.fill(target * 32)
            assert fast.ready() == expected
        else:
            write = what == "write"
            found = fast.access(sector * 32, write=write, byte_mask=mask, token=token)
            assert found == slow.access(sector * 32, write, mask, token), (what, sector)
    for sector in range(24):
        line = slow.find(sector * 32)
        there = line is not None and line.state.get(sector) in ("valid", "modified")
        assert fast.contains(sector * 32) == there


def test_inserted_data_is_clean_or_modified() -> None:
    """Data inserted without time is written back on eviction only if it represents a write."""
    c = cache()
    c.insert(0, False)
    c.insert(LINE, True)
    c.insert(LINE + 32, True)
    assert c.misses() == []
    assert c.modified_lines() == 1
    assert [c.access(address) for address in (0, LINE, LINE + 32)] == ["hit"] * 3
    assert c.access(2 * LINE) == "miss"  # evicts line 0: clean
    assert [m[2] for m in c.misses()] == [False]
    assert c.access(3 * LINE) == "miss"
    back, read = c.misses()
    assert back[0] == LINE and back[2] and back[3] == 2
    assert read[0] == 3 * LINE
    assert c.modified_lines() == 0


def test_what_makes_room_for_inserted_data_leaves_no_traffic() -> None:
    c = cache()
    for line in range(4):
        c.insert(line * LINE, True)
    assert c.misses() == []
    assert c.modified_lines() == 2


@given(
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from([0, HALF, ~HALF & 0xFFFFFFFF, 0xFFFFFFFF]))),
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from([0, HALF, 0xFFFFFFFF])), min_size=1),
    st.sampled_from(["lru", "fifo", "oldest_quarter"]),
    st.sampled_from([0, 60]),
    st.sampled_from([3, 8]),
    st.sampled_from([100, 50]),
    st.booleans(),
)
@settings(deadline=None, max_examples=50)
def test_a_restored_cache_goes_on_as_the_first(
    before: list[tuple[int, int]],
    after: list[tuple[int, int]],
    replacement: str,
    threshold: int,
    ways: int,
    limit: int,
    by_hash: bool,
) -> None:
    """Reads (no bytes written) and writes of sectors; what is being read when it is saved has arrived."""
    changes = {"sets": 4, "ways": ways, "replacement": replacement, "dirty_threshold": threshold}
    changes |= {"dirty_limit": limit, "dirty_hash": by_hash}
    one, two = cache(**changes), cache(**changes)
    two.insert(0, False)  # what it held is gone

    def use(c: Any, sector: int, written: int, arrives: bool) -> Any:
        outcome = c.access(32 * sector, write=written != 0, byte_mask=written or ~0 & 0xFFFFFFFF)
        sent = c.misses()
        if arrives and outcome in ("miss", "sector_miss") and not written:
            c.fill(32 * sector)
            c.ready()
        return outcome, sent

    for sector, written in before[:-1]:
        use(one, sector, written, True)
    if before:
        use(one, *before[-1], False)
    two.restore(one)
    if before:
        one.fill(32 * before[-1][0])
        one.ready()
    assert two.modified_lines() == one.modified_lines()
    for sector, written in after:
        assert use(two, sector, written, True) == use(one, sector, written, True)


def full(ways: int = 4, **changes: Any) -> Any:
    """A cache of one set of four ways that holds the lines 0 to 3, the first the oldest."""
    c = cache(ways=ways, **changes)
    for line in range(ways):
        read_in(c, line * LINE)
    return c


def held(c: Any, lines: int = 12) -> list[int]:
    return [line for line in range(lines) if c.contains(line * LINE)]


def read_as(c: Any, line: int, eviction: str) -> None:
    if c.access(line * LINE, eviction=eviction) != "hit":
        c.fill(line * LINE)
        c.ready()
    c.misses()


def test_lines_evicted_first_go_before_older_ones() -> None:
    c = full()
    read_as(c, 2, "first")  # also the most recently used
    read_as(c, 4, "default")
    assert held(c) == [0, 1, 3, 4]
    read_as(c, 5, "first")
    read_as(c, 6, "first")  # takes the place of 5: a stream occupies one line
    assert held(c) == [1, 3, 4, 6]


def test_lines_evicted_last_outlast_a_stream() -> None:
    c = full()
    read_as(c, 0, "last")
    for line in range(4, 12):
        read_as(c, line, "default")
    assert held(c) == [0, 9, 10, 11]
    read_as(c, 0, "default")  # a plain access leaves the priority as it is
    for line in range(1, 5):
        read_as(c, line, "default")
    assert 0 in held(c)
    read_as(c, 0, "normal")
    for line in range(5, 9):
        read_as(c, line, "default")
    assert held(c) == [5, 6, 7, 8]


@pytest.mark.parametrize(("protected", "kept"), [(0, []), (1, [2]), (2, [1, 2]), (3, [0, 1, 2])])
def test_as_many_lines_are_protected_as_are_set_aside(protected: int, kept: list[int]) -> None:
    """The most recently used ones; the others are like any line."""
    c = full()
    c.set_protected_ways(protected)
    for line in range(3):
        read_as(c, line, "last")
    for line in range(4, 8):
        read_as(c, line, "default")
    assert [line for line in held(c) if line < 3] == kept


def test_a_stream_of_protected_lines_keeps_the_newest() -> None:
    c = full()
    c.set_protected_ways(2)
    for line in range(4, 10):
        read_as(c, line, "last")
    for line in (10, 11, 0, 1):
        read_as(c, line, "default")
    assert held(c) == [0, 1, 8, 9]


def test_reset_lines_are_like_any_line() -> None:
    c = full()
    for line in range(3):
        read_as(c, line, "last")
    c.reset_protected()
    for line in range(4, 8):
        read_as(c, line, "default")
    assert held(c) == [4, 5, 6, 7]


def test_an_access_that_leaves_the_order_unchanged_is_no_use() -> None:
    c = full()
    read_as(c, 0, "unchanged")
    read_as(c, 4, "default")
    assert held(c) == [1, 2, 3, 4]


@pytest.mark.parametrize("which", ["l1", "l2"])
@pytest.mark.parametrize("allocation", ["on_miss", "on_fill"])
def test_without_allocation_a_miss_takes_no_line(which: str, allocation: str) -> None:
    c = cache(which, allocation=allocation)
    for line in (0, 1):
        read_in(c, line * LINE)
    assert c.access(2 * LINE, token=7, eviction="no_allocate") == "miss"
    c.fill(2 * LINE)
    assert c.ready() == [7]
    assert held(c) == [0, 1]
    assert c.access(0, eviction="no_allocate") == "hit"
    c.misses()
    # One that would take a line, merged with it, takes it.
    assert c.access(2 * LINE, token=8, eviction="no_allocate") == "miss"
    assert c.access(2 * LINE, token=9) in ("miss", "hit_reserved")
    assert len(c.misses()) == 1
    c.fill(2 * LINE)
    assert c.ready() == [8, 9]
    assert held(c) == [0, 2]


def test_priorities_are_part_of_what_a_cache_holds() -> None:
    c = full()
    read_as(c, 0, "last")
    other = cache(ways=4)
    other.restore(c)
    for line in range(4, 8):
        read_as(other, line, "default")
    assert held(other) == [0, 5, 6, 7]


@pytest.mark.parametrize("custom", ["lru", "fifo"])
def test_priorities_precede_the_replacement_policy(custom: str) -> None:
    c = full(replacement=custom)
    read_as(c, 0, "last")
    read_as(c, 4, "default")
    assert held(c) == [0, 2, 3, 4]


# Cache policies as ptxas 13.0 makes them, from the upper half of the 64 bits.
@pytest.mark.parametrize(
    ("policy", "shares"),
    [
        (0, {"default": 1.0}),
        (0x14F0000000000000, {"last": 1.0}),
        (0x1270000000000000, {"first": 0.5, "default": 0.5}),
        (0x1630000000000000, {"normal": 0.25, "default": 0.75}),
        (0x1000000000000000, {"default": 1.0}),
        (0x1540000000000000, {"last": 5 / 16, "first": 11 / 16}),
    ],
)
def test_policies_hold_for_their_share_of_the_lines(policy: int, shares: dict[str, float]) -> None:
    names = ["default", "normal", "first", "last"]
    lines = 4096
    found = [names[testing.eviction_of(policy, line * LINE)] for line in range(lines)]
    assert {name: found.count(name) / lines for name in set(found)} == pytest.approx(shares, abs=0.03)
    # All sectors of a line have the same.
    assert all(testing.eviction_of(policy, 32 * s) == testing.eviction_of(policy, 0) for s in range(4))


def test_a_range_policy_holds_for_its_blocks() -> None:
    """64 blocks of 16 KiB from 16 MiB on, of a range of 2 MiB: the primary priority, evicted last."""
    start, count, size = (16 << 20) >> 14, 64, 2
    policy = 3 << 59 | 2 << 57 | 1 << 56 | size << 52 | (start & 127) << 44 | count << 37
    inside, before, after = 16 << 20, (16 << 20) - 1, (17 << 20)
    assert testing.eviction_of(policy, inside) == testing.eviction_of(policy, after - 1) == 3
    assert testing.eviction_of(policy, before) == testing.eviction_of(policy, after) == 2
