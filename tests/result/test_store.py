"""Runs of very many launches: what memory holds, what the temporary file holds, and how they are saved."""

from __future__ import annotations

import os
import pickle
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simt.errors import ResultError
from simt.result import LaunchResult, Result, store
from simt.result.elapsed import covered, shares
from simt.result.store import BLOCK, LaunchStore
from simt.run.record import Facts, launch_result
from support.fake_gpu import MACHINE, finished_launch

LAUNCHES = int(os.environ.get("SIMT_LAUNCHES", "4000"))


def launches(count: int) -> list[LaunchResult]:
    """Launches one after the other, of two kernels, the second of which has a timeline."""
    made, cycle = [], 0
    for index in range(count):
        ctas = 1 + index % 3
        raw = finished_launch(index + 1, cycle, ctas, interval=500 * (index % 2))
        facts = Facts(index, index + 1, f"kernel{index % 2}", (ctas, 1, 1), (256, 1, 1), 0, 32, 80)
        made.append(launch_result(raw, facts, MACHINE))
        cycle = made[-1].end_cycle + 10
    return made


def result(count: int) -> Result:
    whole = Result.load(Path(__file__).parent / "nothing") if False else None
    assert whole is None
    raise NotImplementedError


@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3])
def test_a_store_has_what_was_added(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_DECODED_BYTES", 1)  # every other block is read from the file
    expected = launches(count)
    kept = LaunchStore(MACHINE)
    order = list(range(count))
    random.Random(count).shuffle(order)
    for index in order:
        kept.add(expected[index])
    assert list(kept) == order and len(kept) == count and count - 1 in kept and count not in kept
    found = kept.in_order()
    assert found == tuple(expected) and tuple(expected) == found
    assert found[-1] == expected[-1] and found[3:70] == tuple(expected[3:70])
    assert found[0].counters == expected[0].counters and found[1].machine is MACHINE
    assert list(reversed(found)) == expected[::-1] and pickle.loads(pickle.dumps(found)) == tuple(expected)
    assert found != tuple(expected[:-1]) and found != (*expected[:-1], replace(expected[-1], name="another"))
    with pytest.raises(KeyError):
        kept[count]


def test_a_full_disk_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    kept = LaunchStore(MACHINE)
    with pytest.raises(ResultError, match=r"cannot keep finished launches there: No space left.*set TMPDIR"):
        for launch in launches(BLOCK):
            kept.add(launch)


def test_shares_of_intervals() -> None:
    """Against a count of every cycle."""
    chance = random.Random(1)
    intervals = [(a, a + chance.randrange(0, 40)) for a in (chance.randrange(200) for _ in range(50))]
    running = np.zeros(300)
    for a, b in intervals:
        running[a:b] += 1
    expected = [sum(1 / running[t] for t in range(a, b)) for a, b in intervals]
    assert shares(intervals) == pytest.approx(expected)
    assert sum(shares(intervals)) == pytest.approx(covered(intervals))
    assert shares([]) == []
