"""Timelines: what the GPU did in each interval, exactly; the intervals' sums are the launch's counters."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from simt._engine import testing
from simt.spec import load_spec
from simt.trace.generate import generate
from support.tiny import GLOBAL, run, warp_of, write_kernel

# One channel, one clock, no traffic except the loads' sectors; SMs, network and L2 only add a delay.
GPU = "qv100-accelsim"
ONE_CHANNEL = {
    "address_map.channels": 1,
    "address_map.hash": "linear",
    "clock.core_mhz": 1000.0,
    "clock.interconnect_mhz": 1000.0,
    "clock.l2_mhz": 1000.0,
    "clock.dram_mhz": 1000.0,
    "launch.kernel_latency": 0,
    "dram.rcd": 12,
    "dram.rp": 11,
}
ACTIVATE_AND_READ, READ, CLOSE_ACTIVATE_AND_READ = 12 + 1, 1, 11 + 12 + 1  # rcd and rp, and the read's cycle


def rows(timeline: dict[str, Any], part: str) -> dict[str, Sequence[int]]:
    return {name: array("I", column) for name, column in timeline[part].items()}


def banks(timeline: dict[str, Any]) -> dict[str, Sequence[int]]:
    return rows(timeline, "dram_banks")


def loads(folder: Path, addresses: Sequence[int]) -> Path:
    """A warp that loads one sector after the other."""

    def build(w: Any) -> None:
        for address in addresses:
            w.memory("LDG.E.SYS", [address], 4, 4, (2,))
            w.op("FFMA", 2, (4, 4, 4))

    return write_kernel(folder, [[warp_of(build)]])


@pytest.fixture(scope="module")
def three_loads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first opens a row, the second finds it open, the third needs another row of the bank."""
    spec = load_spec(GPU, ONE_CHANNEL).native()
    first = testing.locate(spec, GLOBAL)
    places = ((GLOBAL + 32 * i, testing.locate(spec, GLOBAL + 32 * i)) for i in range(1, 1 << 16))
    other_row = next(a for a, at in places if at["bank"] == first["bank"] and at["row"] != first["row"])
    return loads(tmp_path_factory.mktemp("loads") / "t", [GLOBAL, GLOBAL + 32, other_row])


def test_dram_cycle_by_cycle(three_loads: Path) -> None:
    """With intervals of one cycle, each load's cycles in its bank are seen, and its burst in the last."""
    timeline = run(three_loads, GPU, ONE_CHANNEL, timeline=1)[0]["timeline"]
    found = banks(timeline)
    assert (
        set(found["channel"]) == {0} and len(set(found["bank"])) == 1 and set(found["pending_cycles"]) == {1}
    )
    stretches: list[list[int]] = []
    previous = -1
    for i, bus in zip(found["interval"], found["bus_cycles"], strict=True):
        if i != previous + 1:
            stretches.append([])
        stretches[-1].append(bus)
        previous = i
    assert stretches == [
        [0] * (length - 1) + [1] for length in (ACTIVATE_AND_READ, READ, CLOSE_ACTIVATE_AND_READ)
    ]
    assert [row[0] for row in timeline["dram_bus_cycles"]].count(1) == 3


@pytest.mark.parametrize("before", range(1, ACTIVATE_AND_READ))
def test_dram_cycles_of_an_interval_and_the_one_before(three_loads: Path, before: int) -> None:
    """An interval ends `before` cycles after the first load reached its bank: those count in it, the rest and
    the burst in the next one."""
    first = banks(run(three_loads, GPU, ONE_CHANNEL, timeline=1)[0]["timeline"])["interval"][0]
    found = banks(run(three_loads, GPU, ONE_CHANNEL, timeline=first + before)[0]["timeline"])
    assert found["interval"][:2].tolist() == [0, 1]
    assert found["pending_cycles"][0] == before and found["bus_cycles"][0] == 0
    rest = ACTIVATE_AND_READ - before
    assert found["pending_cycles"][1] in (rest, rest + READ, rest + READ + CLOSE_ACTIVATE_AND_READ)
    assert found["bus_cycles"][1] == 1 + (found["pending_cycles"][1] > rest) + (
        found["pending_cycles"][1] > rest + READ
    )


def sums(columns: Sequence[Sequence[int]]) -> int:
    return sum(map(sum, columns))


def check_sums(record: dict[str, Any]) -> None:
    """The intervals of a launch that ran alone add up to its counters; those of banks to their channels'."""
    t, counters, uses = record["timeline"], record["counters"], banks(record["timeline"])
    assert sum(t["warp_instructions"]) == counters["warp_instructions"]
    assert sum(t["active_warps"]) == counters["active_warp_cycles"]
    assert {reason: sum(row) for reason, row in t["warp_stalls"].items()} == record["warp_stalls"]
    assert {reason: sum(row) for reason, row in t["stalls"].items()} == {
        reason: sum(row) for reason, row in record["stalls"].items()
    }
    for name in ("dram_reads", "dram_writes", "dram_bus_cycles", "dram_pending_cycles"):
        assert sums(t[name]) == counters[name], name
    pc, there = record["pc"], rows(t, "instructions")
    issued, waiting = [0] * len(pc["pc"]), [0] * len(pc["pc"])
    for at, n, found in zip(there["instruction"], there["issued"], there["waiting"], strict=True):
        issued[at] += n
        waiting[at] += found
    assert issued == pc["issued"]
    assert waiting == [
        sum(row[i] for reason, row in pc["stalled"].items() if reason != "selected")
        for i in range(len(pc["pc"]))
    ]
    bus: dict[tuple[int, int], int] = {}
    longest: dict[tuple[int, int], int] = {}
    for interval, channel, used, pending in zip(
        uses["interval"], uses["channel"], uses["bus_cycles"], uses["pending_cycles"], strict=True
    ):
        at = interval, channel
        bus[at] = bus.get(at, 0) + used
        longest[at] = max(longest.get(at, 0), pending)
    for interval, (used_by_channel, pending_of) in enumerate(
        zip(t["dram_bus_cycles"], t["dram_pending_cycles"], strict=True)
    ):
        for channel, used in enumerate(used_by_channel):
            assert bus.get((interval, channel), 0) == used
            assert longest.get((interval, channel), 0) <= pending_of[channel]


SIMPLE_DRAM = {"dram.simple": True}


@pytest.mark.parametrize(("gpu", "changes"), [("rtx2060", {}), ("rtx2060", SIMPLE_DRAM)])
def test_sums_are_the_counters_and_ends_are_multiples(
    gpu: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    folder = generate(["streaming", "gather"], tmp_path / "t", sm=80, size=512, compression="none").parent
    settings = {"l2.copies_fill": False, "sm.count": 4, **changes}
    records = run(folder, gpu, settings, timeline=300)
    assert sum(record["counters"]["dram_reads"] for record in records) > 100
    for record in records:
        check_sums(record)
        ends = record["timeline"]["cycle"]
        assert all(end % 300 == 0 for end in ends[:-1]) and ends[-1] >= record["end_cycle"]
        assert all(a < b for a, b in pairwise(ends))


@pytest.mark.slow
def test_intervals_double_beyond_the_bound(tmp_path: Path) -> None:
    """A launch of more than 16,384 intervals: they merge, and lose nothing."""

    def build(w: Any) -> None:
        for i in range(300):
            w.memory("LDG.E.SYS", [GLOBAL + 4096 * i], 4, 4, (2,))
            w.op("FFMA", 2, (4, 4, 4))

    folder = write_kernel(tmp_path / "t", [[warp_of(build)]])
    record = run(folder, GPU, ONE_CHANNEL, timeline=2)[0]
    t = record["timeline"]
    expected = 2
    while (record["end_cycle"] - record["start_cycle"]) > expected * 16_384:
        expected *= 2
    assert t["interval"] == expected > 2 and 8_192 < len(t["cycle"]) <= 16_384
    assert all(end % expected == 0 for end in t["cycle"][:-1])
    check_sums(record)
    coarse = run(folder, GPU, ONE_CHANNEL, timeline=expected)[0]["timeline"]
    assert coarse == t


def test_overlapping_launches_are_the_same_for_any_threads_and_window(tmp_path: Path) -> None:
    for number, stream in enumerate((1, 2, 1, 3), start=1):
        warps = [
            warp_of(lambda w: [w.op("FFMA", 8, (8, 2, 8)) for _ in range(200)] and None) for _ in range(4)
        ]
        write_kernel(tmp_path / "t", [warps] * 12, number, stream=stream)
    settings = {"launch.max_concurrent_kernels": 4}
    reference = run(tmp_path / "t", "a100", settings, timeline=100)
    # Each timeline begins with its launch: the first interval contains nothing from before it.
    for record in reference:
        t = record["timeline"]
        assert t["cycle"][0] > record["start_cycle"]
        assert all(end % 100 == 0 for end in t["cycle"][:-1])
    for how in ({"threads": 3}, {"window": 1}, {"window": 7}):
        assert run(tmp_path / "t", "a100", settings, timeline=100, **how) == reference, how
