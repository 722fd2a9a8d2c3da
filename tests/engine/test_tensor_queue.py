"""Products into tensor memory take the time that was published of a B200, and what waits for them waits."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import simt
from support.tensor_timing import cycles


@pytest.fixture(scope="module")
def gpu() -> simt.GPU:
    return simt.GPU("b200", set={"sm.count": 2})


@pytest.fixture
def published(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "silicon" / "b200-tcgen05.csv").open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def shape(row: dict[str, str]) -> tuple[str, str, int, int, int]:
    return row["format"], row["operands"], int(row["ctas"]), int(row["m"]), int(row["n"])


@pytest.mark.slow
def test_published_latencies(gpu: simt.GPU, published: list[dict[str, str]]) -> None:
    """Within 6 cycles, but for one of 264: S8 by two CTAs, M = 128, N = 64."""
    off = [r for r in published if abs(cycles(gpu, *shape(r)) - float(r["latency_cycles"])) > 6]
    assert len(published) == 264
    assert len(off) <= 1, [shape(r) for r in off]


@pytest.mark.slow
def test_published_rates(gpu: simt.GPU, published: list[dict[str, str]]) -> None:
    """Within 5 % on at least nine in ten, with 64 products in flight; none is off by more than a tenth."""
    rows = [r for r in published[::6] if r["cycles_at_depth_64"]]
    errors = [cycles(gpu, *shape(r), 64) / 64 / float(r["cycles_at_depth_64"]) - 1 for r in rows]
    assert sum(abs(e) <= 0.05 for e in errors) >= 0.9 * len(rows)
    assert max(map(abs, errors)) < 0.15


def test_known_rows(gpu: simt.GPU) -> None:
    """Of SemiAnalysis's microbench-blackwell."""
    for row, expected in (
        (("BF16", "SS", 1, 128, 256), 264),
        (("BF16", "SS", 1, 64, 64), 152),
        (("BF16", "SS", 2, 128, 256), 229),
        (("BF16", "SS", 1, 128, 64), 168),
    ):
        assert abs(cycles(gpu, *row) - expected) <= 6, row


def test_rate_is_that_of_columns_or_of_shared_memory(gpu: simt.GPU) -> None:
    """128 x 256 takes N / 2 cycles, 128 x 64 what its operands take at 128 bytes a cycle: 48."""
    for row, interval in ((("BF16", "SS", 1, 128, 256), 128), (("BF16", "SS", 1, 128, 64), 48)):
        assert cycles(gpu, *row, 12) - cycles(gpu, *row, 4) == 8 * interval


@pytest.mark.slow
def test_machine_code_takes_the_published_time(published: list[dict[str, str]]) -> None:
    """Within 6 cycles on nine in ten of every eleventh row."""
    gpu = simt.GPU("b200", set={"sm.count": 2}, code="sass")
    rows = published[::11]
    off = [r for r in rows if abs(cycles(gpu, *shape(r), elected=True) - float(r["latency_cycles"])) > 6]
    assert len(rows) == 24
    assert len(off) <= 2, [shape(r) for r in off]


def test_rate_of_machine_code() -> None:
    gpu = simt.GPU("b200", set={"sm.count": 2}, code="sass")
    for row, interval in ((("BF16", "SS", 1, 128, 256), 128), (("BF16", "SS", 1, 128, 64), 48)):
        found = [cycles(gpu, *row, depth, elected=True) for depth in (4, 12)]
        assert found[1] - found[0] == 8 * interval


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_the_opcode_has_the_shape_where_the_program_does(code: simt.options.Code) -> None:
    """For energies; machine code has the descriptor as a number in a register."""
    gpu = simt.GPU("b200", set={"sm.count": 2}, code=code)
    cycles(gpu, "BF16", "SS", 1, 128, 64, elected=True)
    cycles(gpu, "MXF4", "SS", 2, 256, 128, elected=True)
    found = [[x for x in launch.pc["opcode"] if "MMA" in x] for launch in gpu.launches]
    assert found == [["UTCHMMA.128x64x16"], ["UTCOMMA.2CTA.256x128x64"]]
    assert not any("does not have its shape" in x for x in gpu.result().warnings)


def test_other_gpus_take_no_time_for_them() -> None:
    """A GPU without tensor memory that is given such a program, as a trace gives it."""
    bare = simt.GPU("b200", set={"sm.count": 2, "sm.tensor_memory_columns": 0})
    assert cycles(bare, "BF16", "SS", 1, 128, 256) < 100
