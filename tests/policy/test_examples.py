"""The policies on docs/policies.md do what it says: hand-made cases, and the kernel that it describes."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import simt
from simt._engine import testing
from simt.policy import Operation, Space, library
from simt.trace.writer import Warp
from support.documents import ROOT
from support.tiny import GLOBAL, write_kernel

pytest.importorskip("numba")

PAGE = (ROOT / "docs" / "policies.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, type]:
    """Those of the page, from files, where inspect finds their sources."""
    found: dict[str, Any] = {}
    for text in blocks("python"):
        if text.startswith("# ") and "class " in text:
            file = tmp_path_factory.mktemp("page") / text[2:].partition("\n")[0]
            file.write_text(text)
            exec(compile(text, str(file), "exec"), found)
    return {name: found[name] for name in ("TwoLevel", "LostLocality", "StaticRRIP")}


def test_every_example_in_cpp_compiles() -> None:
    texts = blocks("cpp")
    names = [name for text in texts for _, name in library.load(text.encode(), text.partition("\n")[0])]
    assert names == ["youngest", "folded", "most_recent"]


def test_two_level_keeps_to_its_active_set(classes: dict[str, type]) -> None:
    """Two active warps: 0 and 1 take turns; when 1 waits for memory, 2 takes its place."""

    class Pair(classes["TwoLevel"]):  # type: ignore[name-defined,misc]
        size = 2

    policy = simt.policy.scheduler(Pair)
    every = 0b1111
    ready, waits = [every, every, 0b1101, every, every], [0, 0, 0b0010, 0, 0]
    chosen = testing.scheduler_choices(policy.registered, [0, 1, 2, 3], ready, waits=waits)
    assert chosen == [0, 1, 2, 0, 2]


def warps(*loads: bool) -> list[Any]:
    """Ready warps, the oldest first, and whether each is about to load."""
    kinds = {True: (Operation.Load, Space.Global), False: (Operation.Arithmetic, Space.None_)}
    return [
        SimpleNamespace(ready=1, resident=1, age=i, operation=kinds[load][0], space=kinds[load][1])
        for i, load in enumerate(loads)
    ]


def test_lost_locality_holds_back_others(classes: dict[str, type]) -> None:
    """By hand: three warps may have scores of 300 in all. Warp 2 loses line 1024 and misses it: its score is
    1,100. Warps 0 and 1, behind it, may not load, but do other work. 300 cycles later warp 2 has 800; 1,000
    cycles later all have 100, and the oldest loads."""
    policy = classes["LostLocality"]()
    for name in ("score", "lost", "next"):  # of its own, as in the engine
        setattr(policy, name, np.copy(getattr(policy, name)))
    every = warps(True, True, True)
    assert policy.choose(every, -1, 10) == 0
    policy.l1_accessed(2, 1056, 0, 0, 0, 10)
    assert policy.score[:3].tolist() == [100, 100, 100]  # not a line that it had lost
    policy.l1_evicted(2, 1024, 10)
    policy.l1_accessed(1, 1056, 0, 0, 0, 10)  # another warp's miss
    policy.l1_accessed(2, 1056, 0, 1, 0, 10)  # a hit
    assert policy.score[:3].tolist() == [100, 100, 100]
    policy.l1_accessed(2, 1056, 0, 0, 0, 10)
    assert policy.score[:3].tolist() == [100, 100, 1100]
    assert policy.choose(every, 0, 10) == 2
    assert policy.choose(warps(True, False, True), 0, 10) == 1
    every[2].ready = 0
    assert policy.choose(every, 0, 10) == -1
    assert policy.choose(every, 0, 310) == -1
    assert policy.score[:3].tolist() == [100, 100, 800]
    assert policy.choose(every, 0, 1010) == 0


def test_lost_locality_keeps_working_sets_in_the_l1(classes: dict[str, type], tmp_path: Path) -> None:
    """32 warps that each read 8 lines 12 times, and an L1 of 64 lines: eight warps' lines."""

    def again(first: int) -> Warp:
        warp = Warp()
        for _ in range(12):
            warp.pc = 0
            for line in range(first, first + 8):
                warp.memory("LDG.E.SYS", [GLOBAL + 128 * line + 4 * lane for lane in range(32)], 4, 4, (2,))
                warp.op("FFMA", 8, (4, 2, 8))
        return warp

    trace = write_kernel(tmp_path / "t", [[again(8 * w) for w in range(32)]])
    small = {"sm.count": 1, "l1.adaptive": False, "l1.cache.sets": 4, "l1.cache.ways": 16}
    lrr = simt.simulate(trace, "qv100-accelsim", set={**small, "sm.scheduler.policy": "lrr"})
    policy = simt.policy.scheduler(classes["LostLocality"])
    own = simt.simulate(trace, "qv100-accelsim", set=small, policies={"scheduler": policy})
    rate = "l1tex__t_sector_hit_rate.pct"
    assert lrr.launches[0].counters.get(rate, 0) == 0
    assert round(own.launches[0].counters[rate]) == 81
    assert "in 0 % of the sectors, and this scheduler in 81 %" in " ".join(PAGE.split())


def test_rrip_by_hand(classes: dict[str, type]) -> None:
    """Four ways, filled in order, then way 1 is used: 0, 2 and 3 are predicted far away (2), 1 near (0). The
    first of the farthest goes, and when another line has its place, all that stay have aged by one."""
    policy, kind = classes["StaticRRIP"](), classes["StaticRRIP"].Line  # type: ignore[attr-defined]
    lines = [SimpleNamespace(distance=kind.distance, allocated=0) for _ in range(4)]
    for way, line in enumerate(lines):
        assert policy.victim(lines, [1] * 4, 0) == way
        policy.allocated(lines, 0, way, 128 * way, 0, 0, way)
        line.allocated = way
        policy.used(lines, 0, way, 128 * way, 0, 0, way)  # the access itself
    assert [line.distance for line in lines] == [2, 2, 2, 2]
    policy.used(lines, 0, 1, 128, 0, 0, 9)
    assert [line.distance for line in lines] == [2, 0, 2, 2]
    assert policy.victim(lines, [0, 1, 1, 1], 0) == 2
    policy.allocated(lines, 0, 2, 1024, 0, 0, 10)
    assert [line.distance for line in lines] == [3, 1, 2, 3]
