"""Policies written in Python give the same results as their built-in twins, and cannot break the engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.policy import PolicyError
from simt.trace.generate import generate

pytest.importorskip("numba")


@simt.policy.scheduler
def lrr(ready, age, last, cycle):  # type: ignore[no-untyped-def]
    for i in range(1, len(ready) + 1):
        w = (last + i) % len(ready)
        if ready[w]:
            return w
    return -1


@simt.policy.scheduler
def gto(ready, age, last, cycle):  # type: ignore[no-untyped-def]
    if last >= 0 and ready[last]:
        return last
    best = -1
    for w in range(len(ready)):
        if ready[w] and (best < 0 or age[w] < age[best]):
            best = w
    return best


@simt.policy.replacement
def lru(evictable, last_access, allocated):  # type: ignore[no-untyped-def]
    best = -1
    for way in range(len(evictable)):
        if evictable[way] and (best < 0 or last_access[way] < last_access[best]):
            best = way
    return best


@simt.policy.replacement
def fifo(evictable, last_access, allocated):  # type: ignore[no-untyped-def]
    best = -1
    for way in range(len(evictable)):
        if evictable[way] and (best < 0 or allocated[way] < allocated[best]):
            best = way
    return best


@simt.policy.slice_hash
def linear(address, slices):  # type: ignore[no-untyped-def]
    # QV100: 32 channels interleaved at 256 bytes; the lowest bank bit, 13, chooses one of two slices.
    return (address >> 8) % 32 * 2 + ((address >> 13) & 1)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(
        ["gemm", "gather"], tmp_path_factory.mktemp("t") / "t", sm=70, size=128, compression="none"
    )


def counters(result: simt.Result) -> list[Any]:
    return [(launch.cycles, launch.counters) for launch in result.launches]


@pytest.mark.parametrize(
    ("key", "policy", "builtin"),
    [
        ("scheduler", lrr, {"sm.scheduler.policy": "lrr"}),
        ("scheduler", gto, {"sm.scheduler.policy": "gto"}),
        ("l2_replacement", lru, {"l2.slice.replacement": "lru", "l2.slice.sets": 2}),
        ("l2_replacement", fifo, {"l2.slice.replacement": "fifo", "l2.slice.sets": 2}),
        ("l1_replacement", fifo, {"l1.cache.replacement": "fifo"}),
        ("slice_hash", linear, {"address_map.hash": "linear"}),
    ],
)
def test_twin_of_a_builtin_policy(key: str, policy: Any, builtin: dict[str, Any], trace: Path) -> None:
    small = {"l2.slice.sets": 2} if key == "l2_replacement" else {}
    native = simt.simulate(trace, "qv100-accelsim", set=builtin)
    own = simt.simulate(trace, "qv100-accelsim", set=small, policies={key: policy})
    assert counters(own) == counters(native)
    assert counters(
        simt.simulate(trace, "qv100-accelsim", set=small, policies={key: policy}, threads=2)
    ) == counters(own)


def test_schedulers_matter(trace: Path) -> None:
    a = simt.simulate(trace, "qv100-accelsim", policies={"scheduler": lrr})
    b = simt.simulate(trace, "qv100-accelsim", policies={"scheduler": gto})
    assert counters(a) != counters(b)
    assert a.provenance.identity != b.provenance.identity


def test_nonsense_is_taken_for_none(trace: Path) -> None:
    @simt.policy.replacement
    def beyond(evictable, last_access, allocated):  # type: ignore[no-untyped-def]
        return 10_000 + len(evictable)

    @simt.policy.slice_hash
    def huge(address, slices):  # type: ignore[no-untyped-def]
        return -7 if address & 32 else 1 << 30

    result = simt.simulate(trace, "qv100-accelsim", policies={"slice_hash": huge})
    assert result.launches[0].cycles > 0
    # A replacement that never evicts: the engine must return, either finished or with a deadlock error.
    try:
        simt.simulate(trace, "qv100-accelsim", policies={"l1_replacement": beyond}, max_cycles=200_000)
    except simt.SimtError as error:
        assert "deadlock" in str(error)


def test_a_scheduler_that_never_issues_is_a_deadlock(trace: Path) -> None:
    @simt.policy.scheduler
    def idle(ready, age, last, cycle):  # type: ignore[no-untyped-def]
        return 999

    with pytest.raises(simt.SimtError, match="deadlock"):
        simt.simulate(trace, "qv100-accelsim", policies={"scheduler": idle}, max_cycles=100_000_000)


def test_mistakes_are_named(trace: Path) -> None:
    with pytest.raises(PolicyError, match="short: found 1 parameters, expected 4"):

        @simt.policy.scheduler
        def short(ready):  # type: ignore[no-untyped-def]
            return 0

    with pytest.raises(PolicyError, match="strange: Numba cannot compile it"):

        @simt.policy.scheduler
        def strange(ready, age, last, cycle):  # type: ignore[no-untyped-def]
            return open("/tmp/x").read()

    with pytest.raises(PolicyError, match="no 'schedular'"):
        simt.simulate(trace, policies={"schedular": lrr})
    with pytest.raises(PolicyError, match="lrr is a scheduler, expected a slice_hash"):
        simt.simulate(trace, policies={"slice_hash": lrr})
    with pytest.raises(PolicyError, match=r"decorated with @simt\.policy\.scheduler"):
        simt.simulate(trace, policies={"scheduler": len})  # type: ignore[dict-item]


def test_simt_does_not_need_numba() -> None:
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import simt\n"
        "from simt.policy import PolicyError\n"
        "try:\n    simt.policy.scheduler(lambda a, b, c, d: 0)\n"
        "except PolicyError as e: print(e)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'simt[policies]'" in out
    loaded = "import simt, sys; print('numba' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout.strip()
        == "False"
    )
