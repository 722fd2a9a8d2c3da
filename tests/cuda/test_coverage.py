"""docs/functional/coverage.md lists what the engine accepts, and the listed forms are valid PTX."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from simt import _engine
from simt.cuda import coverage, ptxas
from simt.isa.ptx import ptx_table

PAGE = Path(__file__).parents[2] / "docs" / "functional" / "coverage.md"


def accepted(text: str) -> dict[tuple[int, str], int]:
    """Accepted forms, by table of the page and opcode."""
    counts = {}
    for table, part in enumerate(text.split("\n## ")):
        for opcode, count in re.findall(r"^\| (\w+) \| (\d+) \|", part, re.MULTILINE):
            counts[table, opcode] = int(count)
    return counts


def test_page_is_up_to_date() -> None:
    kept, now = PAGE.read_text(encoding="utf-8"), coverage.page()
    counts = accepted(now)
    fallen = [key[1] for key, count in accepted(kept).items() if counts.get(key, 0) < count]
    assert not fallen, f"fewer forms of these are accepted than the page says: {fallen}"
    assert kept == now, "run: python -m simt.cuda.coverage > docs/functional/coverage.md"


def test_every_row_is_tried() -> None:
    untried = [row.name for row in ptx_table().values() if row.executable and not row.forms + row.later_forms]
    assert untried == []


@pytest.mark.slow
def test_every_form_is_ptx() -> None:
    """ptxas accepts all of them; an invalid form would say nothing about coverage."""
    forms = coverage.forms()
    program = coverage.kernel([coverage.instruction(form) for form in forms])
    for assembler in ptxas._assemblers():
        run = subprocess.run(
            [assembler, f"-arch={coverage.TARGET}", "-O0", "-o", "/dev/null", "-"],
            input=program,
            capture_output=True,
            text=True,
        )
        if "Unsupported .version" not in run.stdout + run.stderr:
            break
    else:
        pytest.skip("no ptxas that reads this version of PTX is installed")
    assert run.returncode == 0, (run.stdout + run.stderr)[:2000]


def test_a_form_becomes_an_instruction() -> None:
    assert coverage.instruction("ld.global.v2.f64 V,[g]") == "ld.global.v2.f64 {%l0, %l1},[%l60];"
    assert coverage.instruction("mul.wide.u16 W,T,T") == "mul.wide.u16 %r0,%h0,%h1;"
    assert coverage.instruction("setp.lt.and.s32 p|p,T,T,!p") == "setp.lt.and.s32 %p0|%p1,%r0,%r1,!%p2;"
    assert coverage.expand("a{,.b}.{c,d}") == ["a.c", "a.d", "a.b.c", "a.b.d"]


def test_a_refusal_gives_the_reason() -> None:
    memory = _engine.functional.DeviceMemory(1 << 20)
    assert coverage.refusal("add.u32 %r0, %r1, %r2;", memory) is None
    multi_sample = coverage.instruction("tex.2dms.v4.f32.s32 4xr,[l,<r,r,r,r>]")
    assert "multi-sample" in (coverage.refusal(multi_sample, memory) or "")
