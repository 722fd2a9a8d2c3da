"""Policies written in Python give the same results as their built-in twins, and cannot break the engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.policy import PolicyError
from simt.trace.generate import generate

pytest.importorskip("numba")


def later(make: Callable[[Any], Any]) -> Callable[[Any], Callable[[], Any]]:
    """A policy that is compiled when a test first asks for it, not while tests are collected."""
    return lambda function: cache(lambda: make(function))


@later(simt.policy.scheduler)
def lrr(ready, age, last, cycle):  # type: ignore[no-untyped-def]
    for i in range(1, len(ready) + 1):
        w = (last + i) % len(ready)
        if ready[w]:
            return w
    return -1


@later(simt.policy.scheduler)
def gto(ready, age, last, cycle):  # type: ignore[no-untyped-def]
    if last >= 0 and ready[last]:
        return last
    best = -1
    for w in range(len(ready)):
        if ready[w] and (best < 0 or age[w] < age[best]):
            best = w
    return best


@later(simt.policy.replacement)
def lru(evictable, last_access, allocated):  # type: ignore[no-untyped-def]
    best = -1
    for way in range(len(evictable)):
        if evictable[way] and (best < 0 or last_access[way] < last_access[best]):
            best = way
    return best


@later(simt.policy.replacement)
def fifo(evictable, last_access, allocated):  # type: ignore[no-untyped-def]
    best = -1
    for way in range(len(evictable)):
        if evictable[way] and (best < 0 or allocated[way] < allocated[best]):
            best = way
    return best


@later(simt.policy.slice_hash)
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
    own = simt.simulate(trace, "qv100-accelsim", set=small, policies={key: policy()})
    assert counters(own) == counters(native)
    assert counters(
        simt.simulate(trace, "qv100-accelsim", set=small, policies={key: policy()}, threads=2)
    ) == counters(own)


def test_schedulers_matter(trace: Path) -> None:
    a = simt.simulate(trace, "qv100-accelsim", policies={"scheduler": lrr()})
    b = simt.simulate(trace, "qv100-accelsim", policies={"scheduler": gto()})
    assert counters(a) != counters(b)
    assert a.provenance.identity != b.provenance.identity
    assert a.provenance.overrides["sm.scheduler.policy"] == f"lrr@{lrr().identity[:12]}"


@later(simt.policy.scheduler)
def not_ready(ready, age, last, cycle):  # type: ignore[no-untyped-def]
    return 999


@later(simt.policy.replacement)
def beyond(evictable, last_access, allocated):  # type: ignore[no-untyped-def]
    return 10_000 + len(evictable)


@later(simt.policy.replacement)
def out_of_bounds(evictable, last_access, allocated):  # type: ignore[no-untyped-def]
    return evictable[10_000]


@later(simt.policy.slice_hash)
def negative(address, slices):  # type: ignore[no-untyped-def]
    return -7


@later(simt.policy.slice_hash)
def divides(address, slices):  # type: ignore[no-untyped-def]
    return address // (slices - slices)


@pytest.mark.parametrize(
    ("key", "policy", "message"),
    [
        ("scheduler", not_ready, "scheduler not_ready: it chose warp 999, expected one that is ready, or -1"),
        ("l1_replacement", beyond, r"replacement beyond: it chose way \d+, expected one that is evictable"),
        ("l1_replacement", out_of_bounds, "replacement out_of_bounds: victim raised an exception"),
        ("slice_hash", negative, "the function returned -7, expected 0 to slices - 1 = 63"),
        ("slice_hash", divides, "slice_hash: the function raised an exception"),
    ],
)
def test_nonsense_ends_the_simulation(key: str, policy: Any, message: str, trace: Path) -> None:
    small = {"l1.adaptive": False, "l1.cache.sets": 1, "l1.cache.ways": 4}
    for threads in (1, 2):
        with pytest.raises(simt.SimtError, match=message):
            simt.simulate(trace, "qv100-accelsim", set=small, policies={key: policy()}, threads=threads)


def test_a_scheduler_that_never_issues_is_a_deadlock(trace: Path) -> None:
    @simt.policy.scheduler
    def idle(ready, age, last, cycle):  # type: ignore[no-untyped-def]
        return -1

    with pytest.raises(simt.SimtError, match="deadlock"):
        simt.simulate(trace, "qv100-accelsim", set={"sm.count": 2}, policies={"scheduler": idle})


def test_the_identity_has_what_a_policy_refers_to() -> None:
    """Not only its own text: two policies of one factory differ, and are not taken for each other."""

    def hash_by(shift: int) -> Any:
        @simt.policy.slice_hash
        def by(address, slices):  # type: ignore[no-untyped-def]
            return (address >> shift) % slices

        return by

    assert hash_by(8).identity == hash_by(8).identity
    assert hash_by(8).identity != hash_by(9).identity
    assert hash_by(8).registered != hash_by(9).registered


def test_mistakes_are_named(trace: Path) -> None:
    with pytest.raises(PolicyError, match="short: found 1 parameters, expected 4"):

        @simt.policy.scheduler
        def short(ready):  # type: ignore[no-untyped-def]
            return 0

    with pytest.raises(PolicyError, match="strange: Numba cannot compile it"):

        @simt.policy.scheduler
        def strange(ready, age, last, cycle):  # type: ignore[no-untyped-def]
            return open("/tmp/x").read()

    with pytest.raises(
        PolicyError, match=r"Numba cannot compile it: NameError: name 'nothing_of_the_kind' is not"
    ):

        @simt.policy.scheduler
        def unknown(ready, age, last, cycle):  # type: ignore[no-untyped-def]
            return nothing_of_the_kind  # noqa: F821

    with pytest.raises(PolicyError, match=r"compile it: Unknown attribute 'nothing' of type array"):

        @simt.policy.scheduler
        def attribute(ready, age, last, cycle):  # type: ignore[no-untyped-def]
            return ready.nothing

    with pytest.raises(PolicyError, match="no 'schedular'"):
        simt.simulate(trace, policies={"schedular": lrr()})
    with pytest.raises(PolicyError, match="lrr is a scheduler, expected a slice_hash"):
        simt.simulate(trace, policies={"slice_hash": lrr()})
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
