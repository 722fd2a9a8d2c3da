"""The rows of opcodes: what is derived of them agrees, and the page lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from simt import _engine
from simt.isa import builtin_tables
from simt.isa.opcodes import access_bytes, energy_class, opcode_rows, shared_memory
from simt.isa.page import page
from simt.power.energies import SECTIONS

PAGE = Path(__file__).parents[2] / "docs" / "opcodes.md"
ROWS = Path(__file__).parents[2] / "engine" / "instructions" / "sass"


def test_the_page_is_that_of_the_rows() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m simt.isa.page > docs/opcodes.md"


def test_the_tables_are_those_of_the_rows() -> None:
    tables = list(builtin_tables().values())
    assert [(t.name, list(t.sm_versions)) for t in tables] == _engine.opcode_generations()
    for row in opcode_rows().values():
        for table, name in zip(tables, row.classes, strict=True):
            assert (row.name in table.opcodes) == bool(name)
        assert row.stand_in == any(row.name in table.stand_ins for table in tables)


def test_energies_are_those_of_the_files() -> None:
    keys = {f"{section}.{key}" for section in ("instructions", "tensor") for key in SECTIONS[section]}
    assert {energy_class(name)[0] for name in opcode_rows()} <= keys


@pytest.mark.parametrize(
    ("opcode", "size", "shared"),
    [
        ("LDG.E.128", 16, False),
        ("LDG.E.ENL2.256", 32, False),
        ("LDS.U8", 1, True),
        ("LDSM.16.M88.4", 16, True),
        ("SYNCS.ARRIVE.TRANS64", 8, False),
        ("ATOMS.ADD", 4, True),
        ("STG.E", 4, False),
        ("FROB.64", 8, False),
    ],
)
def test_access(opcode: str, size: int, shared: bool) -> None:
    assert (access_bytes(opcode), shared_memory(opcode)) == (size, shared)


@pytest.mark.parametrize("m, n, k", [(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)])
def test_fp64_products_by_their_sides(m: int, n: int, k: int) -> None:
    """A warp multiplies all of it; FP64 has a sixteenth of FP16's rate."""
    opcode = f"DMMA.{m}x{n}x{k}"
    assert _engine.tensor_multiply_adds(opcode) == m * n * k
    assert _engine.tensor_work(opcode) == m * n * k / 2048 * 16


def test_no_other_file_of_the_engine_names_an_opcode() -> None:
    """Names in quotation marks, where no modifier has the same name."""
    rooms = ("isa", "trace", "timing")
    engine = ROWS.parents[1]
    found = [
        f"{path.relative_to(engine)}: {name}"
        for room in rooms
        for path in sorted((engine / room).rglob("*.?pp"))
        for text in [path.read_text(encoding="utf-8")]
        for name in opcode_rows()
        if f'"{name}"' in text or f'"{name}.' in text
    ]
    assert found == []
