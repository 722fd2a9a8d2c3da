"""Policies in Python that keep state: what they see, and that each scheduler and cache has its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.policy import Operation, PolicyError, Space, Unit
from simt.trace.generate import generate
from simt.trace.writer import Warp
from support.tiny import GLOBAL, warp_of, write_kernel

pytest.importorskip("numba")

GPU = "qv100-accelsim"
ONE_SM = {"sm.count": 1, "l1.adaptive": False, "l1.cache.sets": 1, "l1.cache.ways": 2}
"""An L1 of two lines."""


def line(number: int) -> list[int]:
    """The addresses of a warp that reads the first sector of a line."""
    return [GLOBAL + 128 * number + 4 * (lane % 8) for lane in range(32)]


def reads(*numbers: int) -> Warp:
    """A warp that reads these lines, one after the other, waiting for each."""

    def build(warp: Warp) -> None:
        for number in numbers:
            warp.memory("LDG.E.SYS", line(number), 4, 4, (2,))
            warp.op("FFMA", 8, (4, 2, 8))

    return warp_of(build)


def simulate(trace: Path, policy: Any, key: str = "scheduler", **how: Any) -> simt.Result:
    return simt.simulate(trace, GPU, policies={key: policy}, **{"set": ONE_SM, **how})


def test_a_scheduler_sees_the_l1_and_instructions(tmp_path: Path) -> None:
    """One warp reads lines 0, 1, 2, 0, 0 through an L1 of two lines. Each event must be the next of this
    list, else the policy raises an exception; and the warp may exit only when all have come.
    """
    trace = write_kernel(tmp_path / "t", [[reads(0, 1, 2, 0, 0)]])
    base = GLOBAL
    # Kind (0: miss, 1: hit, 2: eviction), line address, PC of the access. A miss takes its line at once.
    events = np.array(
        [
            (0, base, 0x00),
            (0, base + 128, 0x20),
            (2, base, 0),
            (0, base + 256, 0x40),
            (2, base + 128, 0),
            (0, base, 0x60),
            (1, base, 0x80),
        ]
    )

    class Watching:
        expected = events
        seen = 0
        time = 0

        def l1_accessed(self, warp, address, pc, hit, write, cycle):  # type: ignore[no-untyped-def]
            e = self.expected[self.seen]
            if e[0] != hit or e[1] != address or e[2] != pc or write or warp or cycle < self.time:
                raise ValueError
            self.seen += 1
            self.time = cycle

        def l1_evicted(self, warp, line, cycle):  # type: ignore[no-untyped-def]
            e = self.expected[self.seen]
            if e[0] != 2 or e[1] != line or warp or cycle < self.time:
                raise ValueError
            self.seen += 1

        def choose(self, warps, last, cycle):  # type: ignore[no-untyped-def]
            w = 0
            if not warps[w].ready:
                raise ValueError
            loads = warps[w].operation == Operation.Load
            if loads != (warps[w].pc % 32 == 0 and warps[w].pc < 160):
                raise ValueError
            if loads and (warps[w].unit != Unit.Memory or warps[w].space != Space.Global):
                raise ValueError
            if warps[w].issued != warps[w].pc // 16:
                raise ValueError
            if warps[w].operation == Operation.Exit and self.seen < len(self.expected):
                return -1
            return w

    result = simulate(trace, simt.policy.scheduler(Watching))
    assert result.launches[0].counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"] == 1

    class Wrong(Watching):
        expected = events[1:]

    with pytest.raises(simt.SimtError, match="scheduler Wrong: l1_accessed raised an exception"):
        simulate(trace, simt.policy.scheduler(Wrong))


def test_each_scheduler_of_each_sm_has_its_own_state(tmp_path: Path) -> None:
    """Two CTAs of two warps on two SMs: each scheduler issues its warp's 11 instructions, and no others."""
    trace = write_kernel(tmp_path / "t", [[reads(0, 1, 2, 3, 4)] * 2] * 2)

    class Counting:
        count = 0

        def choose(self, warps, last, cycle):  # type: ignore[no-untyped-def]
            if self.sm not in (0, 1) or self.scheduler not in (0, 1):
                raise ValueError
            if self.count != warps[0].issued:
                raise ValueError
            self.count += 1
            return 0

    result = simulate(trace, simt.policy.scheduler(Counting), set={**ONE_SM, "sm.count": 2})
    assert result.launches[0].warp_instructions == 4 * 11


class TimesOut:
    """Lets a warp load only 1,000 cycles after any issue."""

    time = 0

    def choose(self, warps, last, cycle):  # type: ignore[no-untyped-def]
        for w in range(len(warps)):
            if warps[w].ready and (warps[w].operation != Operation.Load or cycle >= self.time + 1000):
                self.time = cycle
                return w
        return -1


def test_a_scheduler_is_asked_again_though_nothing_happens(tmp_path: Path) -> None:
    trace = write_kernel(tmp_path / "t", [[reads(0, 0, 0, 0)]])
    fast = simt.simulate(trace, GPU, set=ONE_SM).launches[0].cycles
    slow = simulate(trace, simt.policy.scheduler(TimesOut)).launches[0].cycles
    assert 4000 < slow < 4000 + fast


class Leaning:
    """The warp whose load missed last goes first."""

    favourite = -1

    def l1_accessed(self, warp, address, pc, hit, write, cycle):  # type: ignore[no-untyped-def]
        if not hit:
            self.favourite = warp

    def choose(self, warps, last, cycle):  # type: ignore[no-untyped-def]
        if self.favourite >= 0 and warps[self.favourite].ready:
            return self.favourite
        best = -1
        for w in range(len(warps)):
            if warps[w].ready and (best < 0 or warps[w].issued < warps[best].issued):
                best = w
        return best


class SecondChance:
    """Clock, with a hand for each of the first 64 sets."""

    hand = np.zeros(64, np.int64)

    class Line:
        used = False

    def victim(self, lines, evictable, set):  # type: ignore[no-untyped-def]
        for i in range(2 * len(lines)):
            way = (self.hand[set % 64] + i) % len(lines)
            if evictable[way] and (not lines[way].used or i >= len(lines)):
                return way
        return -1

    def allocated(self, lines, set, way, address, pc, write, time):  # type: ignore[no-untyped-def]
        self.hand[set % 64] = (way + 1) % len(lines)
        lines[way].used = False

    def used(self, lines, set, way, address, pc, write, time):  # type: ignore[no-untyped-def]
        lines[way].used = True


@pytest.mark.parametrize(
    ("key", "policy"),
    [("scheduler", Leaning), ("scheduler", TimesOut), ("l1_replacement", SecondChance)],
)
def test_results_depend_on_neither_threads_nor_windows(key: str, policy: type, tmp_path: Path) -> None:
    trace = generate(["gather"], tmp_path / "t", sm=70, size=64, compression="none")
    compiled = (simt.policy.scheduler if key == "scheduler" else simt.policy.replacement)(policy)

    def run(**how: Any) -> list[Any]:
        result = simulate(trace, compiled, key, set={"sm.count": 4}, **how)
        return [(launch.cycles, launch.counters) for launch in result.launches]

    expected = run()
    assert run(threads=2) == expected
    assert run(window=1) == expected
    assert run(window=7, threads=2) == expected


class FirstIn:
    """FIFO by an order of its own."""

    time = 0

    class Line:
        order = 0

    def victim(self, lines, evictable, set):  # type: ignore[no-untyped-def]
        best = -1
        for way in range(len(lines)):
            if evictable[way] and (best < 0 or lines[way].order < lines[best].order):
                best = way
        return best

    def allocated(self, lines, set, way, address, pc, write, time):  # type: ignore[no-untyped-def]
        if set >= self.sets or len(lines) != self.ways or address % 128:
            raise ValueError
        self.time += 1
        lines[way].order = self.time


@pytest.mark.parametrize(("key", "setting"), [("l1_replacement", "l1.cache"), ("l2_replacement", "l2.slice")])
def test_a_replacement_class_is_like_its_builtin_twin(key: str, setting: str, tmp_path: Path) -> None:
    trace = generate(["gemm", "gather"], tmp_path / "t", sm=70, size=128, compression="none")
    small = {
        "l2.slice.sets": 1,
        "l2.slice.ways": 2,
        "l1.adaptive": False,
        "l1.cache.sets": 1,
        "l1.cache.ways": 8,
    }
    own = simulate(trace, simt.policy.replacement(FirstIn), key, set=small)
    native = simt.simulate(trace, GPU, set={**small, f"{setting}.replacement": "fifo"})
    other = simt.simulate(trace, GPU, set={**small, f"{setting}.replacement": "lru"})
    assert [x.counters for x in own.launches] == [x.counters for x in native.launches]
    if key == "l1_replacement":  # in such an L2 the two agree
        assert [x.counters for x in own.launches] != [x.counters for x in other.launches]


def test_a_replacement_sees_the_pc_in_an_l1(tmp_path: Path) -> None:
    """Line 0 is read at PC 0 and 0x60: in between, lines 1 and 2 came, and keeping what PC 0 brought makes
    the second read a hit, which LRU makes a miss."""
    trace = write_kernel(tmp_path / "t", [[reads(0, 1, 2, 0)]])

    class KeepsFirst:
        class Line:
            pc = -1

        def victim(self, lines, evictable, set):  # type: ignore[no-untyped-def]
            for way in range(len(lines)):
                if evictable[way] and lines[way].pc != 0:
                    return way
            return -1

        def allocated(self, lines, set, way, address, pc, write, time):  # type: ignore[no-untyped-def]
            lines[way].pc = pc

    hits = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"
    own = simulate(trace, simt.policy.replacement(KeepsFirst), "l1_replacement")
    lru = simt.simulate(trace, GPU, set=ONE_SM)
    assert (own.launches[0].counters[hits], lru.launches[0].counters.get(hits, 0)) == (1, 0)


def test_mistakes_in_classes_are_named() -> None:
    class Empty:
        pass

    class More:
        def choose(self, warps, last, cycle):  # type: ignore[no-untyped-def]
            return -1

        def helper(self):  # type: ignore[no-untyped-def]
            return 0

    class Short:
        def choose(self, warps):  # type: ignore[no-untyped-def]
            return -1

    class Text:
        name = "x"

        def choose(self, warps, last, cycle):  # type: ignore[no-untyped-def]
            return -1

    class Unknown:
        def choose(self, warps, last, cycle):  # type: ignore[no-untyped-def]
            return warps[0].colour

    for policy, message in (
        (Empty, "Empty: found no method choose, which a scheduler needs"),
        (More, "More: found a method helper, expected choose, l1_accessed, l1_evicted"),
        (Short, r"Short\.choose: found 2 parameters, expected 4"),
        (Text, "Text: its attribute name is 'x', expected a number or a NumPy array"),
        (Unknown, "Unknown: Numba cannot compile it: .*colour"),
    ):
        with pytest.raises(PolicyError, match=message):
            simt.policy.scheduler(policy)
    with pytest.raises(PolicyError, match="Empty: found a class, expected a function for a slice_hash"):
        simt.policy.slice_hash(Empty)
