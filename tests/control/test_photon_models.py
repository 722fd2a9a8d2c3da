"""Basic-block vectors and the interval model against cases computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt._engine import MemorySpace, Operation
from simt.control.photon.basic_block_vectors import WarpTypes, block_projection, distance, gpu_vector
from simt.control.photon.interval_model import BlockInstruction, block_cycles, mean_by_opcode


def test_types_of_warps_by_descending_weight() -> None:
    counts = np.array([[1, 5], [2, 0], [1, 5], [3, 3]], np.uint32)
    types = WarpTypes.of(counts)
    assert types.counts.tolist() == [[1, 5], [3, 3], [2, 0]]
    assert types.weights.tolist() == [0.5, 0.25, 0.25]
    assert types.of_warp.tolist() == [0, 2, 0, 1]


def test_the_vector_weighs_instructions_and_sums_to_one() -> None:
    projection = np.eye(2, 16)
    types = WarpTypes.of(np.array([[1, 5], [1, 5], [2, 0], [1, 5]], np.uint32))
    vector = gpu_vector(types, np.array([10, 2], np.uint32), projection)
    # 10 and 10 of 20 instructions, of three quarters of the warps; 20 of 20, of a quarter.
    np.testing.assert_allclose(vector[:, :2], [[0.375, 0.375], [0.25, 0]])
    assert vector.sum() == pytest.approx(1)


def test_distance_pads_the_shorter_vector() -> None:
    a, b = np.array([[0.5, 0], [0, 0.5]]), np.array([[1.0, 0]])
    assert distance(a, a) == 0
    assert distance(a, b) == distance(b, a) == pytest.approx(1)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_blocks_keep_their_place_whatever_kernel_they_are_in(keys: list[int]) -> None:
    together = block_projection(np.array(keys, np.uint64))
    np.testing.assert_allclose(together.sum(axis=1), 1)
    assert ((together > 0).sum(axis=1) == 3).all()
    alone = np.vstack([block_projection(np.array([key], np.uint64)) for key in keys])
    assert (together == alone).all()


def test_few_blocks_coincide() -> None:
    rows = {row.tobytes() for row in block_projection(np.arange(200, dtype=np.uint64))}
    # 200 blocks in 560 places: about 34 share a place with an earlier one.
    assert len(rows) > 140


def instruction(opcode: str, writes: list[int], reads: list[int]) -> BlockInstruction:
    def places(numbers: list[int]) -> tuple[tuple[int, int], ...]:
        return tuple((0, number) for number in numbers)

    return BlockInstruction(opcode, 7.0, places(reads), places(writes))


LATENCY = {"LDG": 100.0, "FFMA": 4.0, "BRA": 2.0}


def test_independent_instructions_issue_one_a_cycle() -> None:
    block = [instruction("FFMA", [i], [10 + i]) for i in range(5)]
    assert block_cycles(block, LATENCY) == 5
    assert block_cycles(block, LATENCY, issue_interval=2) == 10
    assert block_cycles([], LATENCY) == 0


def test_a_chain_waits_for_each_result() -> None:
    # Load at 0, ready at 100; FFMA at 100, ready at 104; FFMA at 104, branch at 105, next block at 106.
    block = [
        instruction("LDG", [1], [0]),
        instruction("FFMA", [2], [1]),
        instruction("FFMA", [3], [2]),
        instruction("BRA", [], []),
    ]
    assert block_cycles(block, LATENCY) == 106


def test_what_is_overwritten_is_waited_for() -> None:
    block = [instruction("LDG", [1], [0]), instruction("FFMA", [1], [2])]
    assert block_cycles(block, LATENCY) == 101


def test_a_load_that_nobody_reads_is_not_waited_for() -> None:
    assert block_cycles([instruction("LDG", [1], [0]), instruction("BRA", [], [])], LATENCY) == 2


def test_an_opcode_without_a_measured_latency_takes_its_initial_one() -> None:
    block = [instruction("MUFU", [1], [0]), instruction("FFMA", [2], [1])]
    assert block_cycles(block, LATENCY) == 8


def test_registers_of_wide_operands_and_the_zero_register() -> None:
    load = {
        "opcode": "LDG.E.64",
        "operation": Operation.Load,
        "space": MemorySpace.Global,
        "destinations": [(4, 0, 2)],
        "sources": [(8, 0, 2), (255, 0, 1)],
    }
    found = BlockInstruction.of(load)
    assert found.writes == ((0, 4), (0, 5))
    assert found.reads == ((0, 8), (0, 9))
    assert found.initial > BlockInstruction.of(load | {"operation": Operation.Arithmetic}).initial


def test_the_latency_table_takes_the_mean_by_opcode() -> None:
    code = [instruction("LDG", [1], [0]), instruction("LDG", [2], [0]), instruction("BRA", [], [])]
    assert mean_by_opcode(code, np.array([100, 300, np.nan])) == {"LDG": 200}
    assert mean_by_opcode(code, np.empty(0)) == {}
