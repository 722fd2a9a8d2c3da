"""Each fault of the suite is found and named at its line, and nothing is found in its mended twin."""

from __future__ import annotations

import importlib.util
import re
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest

import simt
from check.suite import KINDS, Pair, Place, pairs
from simt.cuda import toolkit
from simt.errors import ProgramFault, SimtError
from simt.sass.disassembler import is_installed

if not toolkit.toolkits():
    pytest.skip("NVRTC's wheel is not installed", allow_module_level=True)

ALL = list(pairs())
NEEDS = {"triton": "triton", "numba": "numba_cuda"}
"""Packages that the pairs of a folder need."""
NOT_IN_MACHINE_CODE = {
    "what a shuffle gets from a lane that is not there is not followed": ("sync/source_lane_left",),
    "lanes that are together are ordered": (
        *("public/cccl_raking", "public/kokkos_broadcast", "public/kokkos_mask", "race/warp_masks"),
        *("race/warp_reduction", "race/warp_volatile", "sync/shuffle_in_branch", "sync/shuffle_in_loop"),
        *("sync/reduction_in_branch", "sync/warp_barrier_in_branch", "sync/mask_without_self"),
    ),
    "variables are not known by name": (
        *("memory/constant_index", "memory/constant_write", "memory/shared_neighbour"),
        "public/llama_padding",
    ),
    "pointers to local memory are not followed": ("race/other_threads_local",),
    "a compiler copies barriers": ("sync/two_branches",),
    "it has an instruction that is refused": ("async/copy_to_mbarrier", "async/library_barrier"),
    "volatile flags in shared memory are ordinary accesses there": ("sync/flag_behind_barrier",),
    "what lanes combine with each other is not followed": ("race/rounded_apart",),
    "ptxas makes the order of the twin": (
        *("cluster/relaxed_arrival", "race/message_chain"),
        *("hopper/wgmma_no_fence", "hopper/wgmma_read_early", "hopper/wgmma_second_group"),
    ),
}
"""Pairs that machine code shows otherwise: the fault is not seen, or the twin is reported; by the reason."""
UNSEEN = frozenset(name for names in NOT_IN_MACHINE_CODE.values() for name in names)
QUICK = (
    *("race/reverse", "race/double_buffer", "race/flag_without_fence", "sync/part_of_a_block"),
    *("cluster/neighbour", "async/unwaited", "memory/dynamic_shared_size", "leak/heap"),
    *("hopper/wgmma_tile_reuse", "init/selected_away", "init/mma_tail"),
)
"""Pairs that are checked in machine code in each run."""
REFUSED = "async/copy_to_mbarrier"
LIMIT = 60
"""Seconds after which a program that would not end is stopped."""


def each(code: str = "ptx", faulty: bool = False) -> pytest.MarkDecorator:
    """Parametrises a test with the pairs. faulty: it needs what the checker says of the faults."""
    cases = []
    for pair in ALL:
        needs = NEEDS.get(pair.path.parent.name)
        marks = [pytest.mark.slow] * ("slow" in pair.facts or needs is not None)
        if needs is not None:
            marks.append(
                pytest.mark.skipif(
                    importlib.util.find_spec(needs) is None, reason=f"{needs} is not installed"
                )
            )
        if faulty and "missed" in pair.facts:
            marks.append(pytest.mark.xfail(strict=True, reason=pair.facts["missed"]))
        if code == "ptx" or "ptx" not in pair.facts:
            cases.append(pytest.param(pair, id=pair.name, marks=marks))
    return pytest.mark.parametrize("pair", cases)


def gpu_of(pair: Pair, code: str, **options: Any) -> simt.GPU:
    if code == "sass" and not is_installed():
        pytest.skip("nvdisasm is not installed")
    options = {"functional": True, "set": {"sm.count": 4}, **options}
    return simt.GPU(pair.gpu, code=code, **options)


def findings(pair: Pair, fault: bool, reversed_warps: bool = False, code: str = "ptx") -> list[Place]:
    """What the checker finds in one of the two, which runs, and of which the twin's values are compared."""
    made: list[simt.GPU] = []
    options: dict[str, Any] = {"timeout": LIMIT} if fault else {}
    options["check"] = "all" if "weak" in pair.facts else True

    def make() -> simt.GPU:
        made.append(gpu_of(pair, code, **options))
        return made[-1]

    with suppress(SimtError) if fault else nullcontext():
        pair.run(make, fault, reversed_warps)
    return [pair.place(one) for gpu in made for one in gpu.findings()]


def require_fault(pair: Pair, found: list[Place]) -> None:
    """Fails unless the fault is found, and nothing but what follows from it."""
    assert any(pair.names_the_fault(place) for place in found), found
    assert all(pair.allows(place) for place in found), found


def test_every_kind_has_pairs() -> None:
    assert len(ALL) >= 60
    assert set(KINDS) == frozenset().union(*(pair.kinds for pair in ALL))
    unknown = {kind for pair in ALL for mark in pair.marks for kind in mark.kinds} - set(KINDS)
    assert not unknown


@each()
def test_marks_are_at_instructions(pair: Pair) -> None:
    """The faulty kernel is one that a compiler has left in place."""
    if pair.path.suffix != ".cu":
        return
    text = pair.load(gpu_of(pair, "ptx"), fault=True).ptx.text
    line, lines = 0, set()
    for one in text.splitlines():
        if found := re.match(r"\s*\.loc\s+\d+ (\d+)", one):
            line = int(found[1])
        elif one.strip().endswith(";"):
            lines.add(line)
    wanted = {mark.line for mark in pair.marks if mark.role == "fault" and mark.line > pair.host_end}
    assert wanted <= lines


@each(faulty=True)
def test_the_fault_is_found(pair: Pair) -> None:
    require_fault(pair, findings(pair, fault=True))


@each()
def test_the_twin_is_right_and_nothing_is_found(pair: Pair) -> None:
    assert not findings(pair, fault=False)


@pytest.mark.slow
@each(code="sass")
def test_the_twin_is_right_in_machine_code(pair: Pair) -> None:
    pair.run(lambda: gpu_of(pair, "sass"), False, False)


@pytest.mark.slow
@each()
def test_warps_in_another_order(pair: Pair) -> None:
    if pair.path.suffix != ".cu":
        return
    if not pair.facts.keys() & {"missed", "one_order"}:
        require_fault(pair, findings(pair, fault=True, reversed_warps=True))
    assert not findings(pair, fault=False, reversed_warps=True)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(pair, id=pair.name, marks=[pytest.mark.slow] * (pair.name not in QUICK))
        for pair in ALL
        if pair.path.suffix == ".cu" and pair.name not in UNSEEN and "missed" not in pair.facts
    ],
)
def test_machine_code(pair: Pair) -> None:
    """What is left of a fault in machine code is found at its line, and nothing in the twin."""
    require_fault(pair, findings(pair, fault=True, code="sass"))
    assert not findings(pair, fault=False, code="sass")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name
        for reason, names in NOT_IN_MACHINE_CODE.items()
        if not any(part in reason for part in ("is refused", "volatile flags", "lanes combine"))
        for name in names
    ],
)
def test_the_twin_of_a_fault_that_machine_code_hides(name: str) -> None:
    (pair,) = (pair for pair in ALL if pair.name == name)
    assert not findings(pair, fault=False, code="sass")


def test_half_a_warp_meets_in_machine_code() -> None:
    """sm_75 calls a routine, whose WARPSYNC names the lanes that meet."""
    pair = next(pair for pair in ALL if pair.name == "sync/shuffle_in_branch")
    on_turing = Pair(pair.path)
    on_turing.gpu = "t4"
    assert {place.kind for place in findings(on_turing, fault=True, code="sass")} == {"mask"}
    assert not findings(on_turing, fault=False, code="sass")


def test_an_instruction_of_machine_code_is_refused() -> None:
    pair = next(pair for pair in ALL if pair.name == REFUSED)
    with pytest.raises(ProgramFault, match="`simt check` does not follow this instruction in machine code"):
        pair.run(lambda: gpu_of(pair, "sass", check=True), False, False)


def test_an_index_beyond_an_array_is_not_of_another_gpu() -> None:
    """GPUs that do not see each other's memory have the same addresses."""
    other = simt.GPU("a100", check=True)
    held = other.array(np.zeros(1 << 20, np.int32))
    gpu = simt.GPU("a100", check=True)
    kernel = gpu.compile('extern "C" __global__ void k(int* y) { y[threadIdx.x] = 1; }').k
    with pytest.raises(ProgramFault):
        kernel[1, 128](gpu.zeros(100, np.int32))
    assert [finding.kind for finding in gpu.findings()] == ["out-of-bounds"]
    assert held.nbytes == 1 << 22
