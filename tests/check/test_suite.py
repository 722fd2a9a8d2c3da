"""Each fault of the suite is found and named at its line, and nothing is found in its mended twin."""

from __future__ import annotations

import importlib.util
import re
from contextlib import suppress
from typing import Any

import pytest

import simt
from check.suite import KINDS, Pair, Place, pairs
from simt.cuda import toolkit
from simt.errors import SimtError
from simt.sass.disassembler import is_installed

if not toolkit.toolkits():
    pytest.skip("NVRTC's wheel is not installed", allow_module_level=True)

ALL = list(pairs())
CHECKER = importlib.util.find_spec("simt.check") is not None
checked = pytest.mark.skipif(not CHECKER, reason="there is no simt.check")
LIMIT = 20
"""Seconds after which a program that would not end is stopped."""
ORDERS: dict[str, dict[str, Any]] = {
    "without timing": {"functional": True},
    "oldest warp first": {"set": {"sm.count": 4, "sm.scheduler.policy": "gto"}},
    "warps in turn": {"set": {"sm.count": 4, "sm.scheduler.policy": "lrr"}},
    "one SM": {"set": {"sm.count": 1, "sm.scheduler.policy": "lrr"}},
}


def each(machine_code: bool = False) -> pytest.MarkDecorator:
    """Parametrises a test with the pairs and what is executed."""
    cases = []
    for pair in ALL:
        if pair.path.suffix == ".py" and importlib.util.find_spec("triton" if "tri" in pair.name else "numba_cuda") is None:
            continue
        slow = [pytest.mark.slow] if "slow" in pair.facts or pair.path.suffix == ".py" else []
        cases.append(pytest.param(pair, "ptx", id=pair.name, marks=slow))
        if machine_code and "ptx" not in pair.facts:
            cases.append(pytest.param(pair, "sass", id=f"{pair.name} in machine code", marks=pytest.mark.slow))
    return pytest.mark.parametrize(("pair", "code"), cases)


def gpu_of(pair: Pair, code: str, **options: Any) -> simt.GPU:
    if code == "sass" and not is_installed():
        pytest.skip("nvdisasm is not installed")
    options = {"functional": True, "set": {"sm.count": 4}, **options}
    return simt.GPU(pair.gpu, code=code, **options)


def findings(pair: Pair, code: str, fault: bool, **options: Any) -> list[Place]:
    """What the checker finds in one of the two."""
    made: list[simt.GPU] = []

    def make() -> simt.GPU:
        made.append(gpu_of(pair, code, check="all" if "weak" in pair.facts else True, timeout=LIMIT, **options))
        return made[-1]

    if fault:
        with suppress(SimtError):
            pair.run(make, fault)
    else:
        pair.run(make, fault)
    found = []
    for gpu in made:
        for one in gpu.findings():
            accesses = [a for a in (one.first, one.second) if a is not None]
            lines = {one.line, *(a.line for a in accesses)} - {None, 0}
            found.append(Place(one.kind, frozenset(lines)))
    return found


def test_every_kind_has_pairs() -> None:
    assert len(ALL) >= 60
    assert set(KINDS) == frozenset().union(*(pair.kinds for pair in ALL))
    unknown = {kind for pair in ALL for mark in pair.marks for kind in mark.kinds} - set(KINDS)
    assert not unknown


@each(machine_code=not CHECKER)
def test_the_twin_is_right(pair: Pair, code: str) -> None:
    pair.run(lambda: gpu_of(pair, code), fault=False)


@each()
def test_marks_are_at_instructions(pair: Pair, code: str) -> None:
    """The faulty kernel is one that a compiler has left in place."""
    if pair.path.suffix != ".cu":
        return
    text = pair.load(gpu_of(pair, code), fault=True).ptx.text
    line, lines = 0, set()
    for one in text.splitlines():
        if found := re.match(r"\s*\.loc\s+\d+ (\d+)", one):
            line = int(found[1])
        elif one.strip().endswith(";"):
            lines.add(line)
    host = pair.text[: pair.text.index("*/")].count("\n")
    wanted = {mark.line for mark in pair.marks if mark.role == "fault" and mark.line > host}
    assert wanted <= lines


@each()
def test_the_faulty_one_runs_or_is_refused(pair: Pair, code: str) -> None:
    with suppress(SimtError):
        pair.run(lambda: gpu_of(pair, code, timeout=LIMIT), fault=True)


@checked
@each(machine_code=True)
def test_the_fault_is_found(pair: Pair, code: str) -> None:
    found = findings(pair, code, fault=True)
    assert any(pair.names_the_fault(place) for place in found), found
    assert all(pair.allows(place) for place in found), found


@checked
@each(machine_code=True)
def test_nothing_is_found_in_the_twin(pair: Pair, code: str) -> None:
    assert not findings(pair, code, fault=False)


@checked
@pytest.mark.slow
@pytest.mark.parametrize("order", list(ORDERS)[1:])
@each()
def test_findings_do_not_depend_on_the_order_of_warps(pair: Pair, code: str, order: str) -> None:
    first = findings(pair, code, fault=True, **ORDERS["without timing"])
    other = findings(pair, code, fault=True, **ORDERS[order])
    assert {p.kind for p in first if pair.names_the_fault(p)} == {
        p.kind for p in other if pair.names_the_fault(p)
    }
