"""The case studies run, and show the effects they describe."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from simt.cuda import toolkit

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "case_studies"

pytestmark = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a study in its quick form; returns the rows of its tables by first column, and its output."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def call(name: str) -> tuple[dict[str, list[float]], str]:
        plot = tmp_path / "plot.png"
        monkeypatch.setattr(sys, "argv", [name, "--quick", "--output", str(plot)])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        assert plot.read_bytes().startswith(b"\x89PNG")
        said = capsys.readouterr().out
        rows = {}
        for line in said.splitlines():
            first, *cells = re.split(r"  +", line.strip())
            if cells and all(re.fullmatch(r"[\d.,]+( %)?", cell) for cell in cells):
                rows[first] = [float(cell.removesuffix(" %").replace(",", "")) for cell in cells]
        return rows, said

    return call


@pytest.mark.slow
def test_the_new_l1_refuses_less_and_is_faster(run) -> None:
    rows, _ = run("l1_reservation_fails")
    assert set(rows) == {"rows", "gather"}
    for old_own, _, old_cycles, new_own, _, new_cycles, faster in rows.values():
        assert new_own < old_own / 10
        assert new_cycles < old_cycles
        assert faster == pytest.approx(old_cycles / new_cycles, abs=0.01)


@pytest.mark.slow
def test_row_hits_first_is_faster(run) -> None:
    rows, _ = run("dram_scheduling")
    for fcfs, row_hits_first, *_ in rows.values():
        assert row_hits_first <= fcfs
    assert rows["triad"][2] > 1.05


@pytest.mark.slow
def test_without_a_hash_strides_camp(run) -> None:
    rows, _ = run("l2_hash")
    none, xor, ipoly = rows["4,096 B"]
    assert min(xor, ipoly) > 4 * none
    assert rows["transpose"][3] > 1 and rows["transpose"][4] > 1


@pytest.mark.slow
def test_more_sms_help_what_computes(run) -> None:
    rows, _ = run("half_the_sms")
    assert 1.2 < rows["aes"][2] <= 2.05
    assert rows["triad"][2] >= 0.95


@pytest.mark.slow
def test_a_v100_is_faster(run) -> None:
    rows, said = run("v100_against_rtx2060")
    assert all(speedup > 1 for *_, speedup in rows.values())
    assert "ratio of FP32 peaks: 2.19" in said  # 80 SMs of 64 lanes at 1380 MHz; 30 of 64 at 1680 MHz
