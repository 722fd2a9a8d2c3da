"""Products into tensor memory take the time that was published of a B200, and what waits for them waits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt

SCRIPTS = Path(__file__).resolve().parents[2] / "docs" / "records" / "scripts"


@pytest.fixture(scope="module")
def products() -> Iterator[Any]:
    sys.path.insert(0, str(SCRIPTS))
    try:
        import tensor_products

        yield tensor_products
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def gpu() -> simt.GPU:
    return simt.GPU("b200", set={"sm.count": 2})


@pytest.fixture
def published(products: Any, shared_data: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = products.rows_of(shared_data / "silicon" / "b200-tcgen05.csv")
    return rows


@pytest.mark.slow
def test_published_latencies(products: Any, gpu: simt.GPU, published: list[dict[str, str]]) -> None:
    """Within 6 cycles, but for one of 264: S8 by two CTAs, M = 128, N = 64."""
    shapes = [products.Product.of(row) for row in published]
    found = [products.cycles(gpu, shape, [1])[0] for shape in shapes]
    published_cycles = [float(row["latency_cycles"]) for row in published]
    off = {s: a - b for s, a, b in zip(shapes, found, published_cycles, strict=True) if abs(a - b) > 6}
    assert len(published) == 264
    assert len(off) <= 1, off


@pytest.mark.slow
def test_published_rates(products: Any, gpu: simt.GPU, published: list[dict[str, str]]) -> None:
    """Within 5 % on at least nine in ten, with 64 products in flight; none is off by more than a tenth."""
    rows = [r for r in published[::6] if r["cycles_at_depth_64"]]
    found = [products.cycles(gpu, products.Product.of(r), [64])[0] / 64 for r in rows]
    errors = [a / float(r["cycles_at_depth_64"]) - 1 for a, r in zip(found, rows, strict=True)]
    assert sum(abs(e) <= 0.05 for e in errors) >= 0.9 * len(rows)
    assert max(map(abs, errors)) < 0.15


def test_known_rows(products: Any, gpu: simt.GPU) -> None:
    """Of SemiAnalysis's microbench-blackwell."""
    for row, expected in (
        (("BF16", "SS", 1, 128, 256), 264),
        (("BF16", "SS", 1, 64, 64), 152),
        (("BF16", "SS", 2, 128, 256), 229),
        (("BF16", "SS", 1, 128, 64), 168),
    ):
        assert abs(products.cycles(gpu, products.Product(*row), [1])[0] - expected) <= 6, row


def test_rate_is_that_of_columns_or_of_shared_memory(products: Any, gpu: simt.GPU) -> None:
    """128 x 256 takes N / 2 cycles, 128 x 64 what its operands take at 128 bytes a cycle: 48."""
    for row, interval in ((("BF16", "SS", 1, 128, 256), 128), (("BF16", "SS", 1, 128, 64), 48)):
        few, many = products.cycles(gpu, products.Product(*row), [4, 12])
        assert many - few == 8 * interval


def test_swizzled_operands_have_a_rate_of_their_own(products: Any) -> None:
    """Products of 128 x 64 read 6,144 bytes each: at 64 and 32 bytes a cycle if swizzled, 128 if not."""
    product = products.Product("BF16", "SS", 1, 128, 64)
    plain = str(1 << 46 | 8 << 16 | 16 << 32)
    for swizzled, rate, interval in ((0, 64, 48), (2, 64, 96), (2, 32, 192)):
        gpu = simt.GPU("b200", set={"sm.count": 2, "sm.tensor_memory_swizzled_bandwidth": rate})
        texts = [products.entry(product, depth, False) for depth in (4, 12)]
        assert all(plain in text for text in texts)
        text = "".join(texts).replace(plain, str(int(plain) | swizzled << 61))
        head = ".version 8.8\n.target sm_100a\n.address_size 64\n.shared .align 1024 .b8 room[32784];\n"
        module, out, found = gpu.load(head + text), np.zeros(1, np.uint64), []
        for depth in (4, 12):
            module[f"k{depth}"][1, 32](out)
            found.append(int(out[0]))
        assert found[1] - found[0] == 8 * interval


@pytest.mark.slow
def test_machine_code_takes_the_published_time(products: Any, published: list[dict[str, str]]) -> None:
    """Within 6 cycles on every eleventh row but one: S8 by two CTAs, M = 128, N = 64."""
    gpu = simt.GPU("b200", set={"sm.count": 2}, code="sass")
    rows = published[::11]
    found = [products.cycles(gpu, products.Product.of(r), [1], elected=True)[0] for r in rows]
    off = [r for r, a in zip(rows, found, strict=True) if abs(a - float(r["latency_cycles"])) > 6]
    assert len(rows) == 24
    assert len(off) <= 1, off


def test_rate_of_machine_code(products: Any) -> None:
    gpu = simt.GPU("b200", set={"sm.count": 2}, code="sass")
    for row, interval in ((("BF16", "SS", 1, 128, 256), 128), (("BF16", "SS", 1, 128, 64), 48)):
        found = products.cycles(gpu, products.Product(*row), [4, 12], elected=True)
        assert found[1] - found[0] == 8 * interval


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_the_opcode_has_the_shape_where_the_program_does(products: Any, code: simt.options.Code) -> None:
    """For energies; machine code has the descriptor as a number in a register."""
    gpu = simt.GPU("b200", set={"sm.count": 2}, code=code)
    products.cycles(gpu, products.Product("BF16", "SS", 1, 128, 64), [1], elected=True)
    products.cycles(gpu, products.Product("MXF4", "SS", 2, 256, 128), [1], elected=True)
    found = [[x for x in launch.pc["opcode"] if "MMA" in x] for launch in gpu.launches]
    assert found == [["UTCHMMA.128x64x16"], ["UTCOMMA.2CTA.256x128x64"]]
    assert not any("does not have its shape" in x for x in gpu.result().warnings)


def test_other_gpus_take_no_time_for_them(products: Any) -> None:
    """A GPU without tensor memory that is given such a program, as a trace gives it."""
    bare = simt.GPU("b200", set={"sm.count": 2, "sm.tensor_memory_columns": 0})
    assert products.cycles(bare, products.Product("BF16", "SS", 1, 128, 256), [1])[0] < 100
