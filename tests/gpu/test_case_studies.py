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
    """Runs a study in its quick form; returns the rows of its tables by first column, and its output. Of an
    interval there is the lower end; one in parentheses is left out."""
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
            found = [re.fullmatch(r"([\d.,]+)( %|-[\d.]+| \([\d.-]+\))?", cell) for cell in cells]
            if found and all(found):
                rows[first] = [float(cell[1].replace(",", "")) for cell in found]
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
def test_hints_keep_the_kv_cache(run) -> None:
    rows, _ = run("kv_cache")
    _, without, *_ = rows["no hint"]
    for way in ("KV cache evict_last", "both", "window: KV cache persisting"):
        assert rows[way][1] < 0.1 * without


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


@pytest.mark.slow
def test_energy_of_convolutions(run) -> None:
    rows, _ = run("convolution_energy")
    assert set(rows) == {"direct", "implicit_gemm"}
    for microseconds, millijoules, least, _, watts, *_ in rows.values():
        assert millijoules == pytest.approx(watts * microseconds / 1000, rel=0.05)
        assert 0 < least < millijoules
    assert rows["direct"][3] == 1


@pytest.mark.slow
def test_tensor_cores_take_a_fraction_of_the_energy(run) -> None:
    rows, _ = run("gemm_energy")
    fp32, tensor = rows["a100 FP32"], rows["a100 tensor"]
    assert tensor[0] > 8 * fp32[0]  # multiply-adds per cycle and SM
    assert tensor[3] < fp32[3] / 5  # pJ each


@pytest.mark.slow
def test_slower_memory_costs_static_energy(run) -> None:
    rows, _ = run("memory_energy")
    stock, no_hash = rows["transpose, stock"], rows["transpose, no hash"]
    assert no_hash[2] > 1.1
    assert no_hash[3] < stock[3]  # W
    stock, fcfs = rows["triad, stock"], rows["triad, FCFS"]
    assert fcfs[2] > 1.1
    assert fcfs[5] == pytest.approx(stock[5], rel=0.1)  # energy in DRAM


@pytest.mark.slow
def test_more_and_slower_sms_at_equal_power(run) -> None:
    rows, _ = run("equal_power")
    for _, half_watts, _, watts, mhz, *_ in rows.values():
        assert 0.96 * half_watts < watts <= half_watts + 1
        assert 900 < mhz < 1380
    assert rows["aes"][5] > 1.15 and rows["aes"][7] > 1.3
    assert 0.9 < rows["triad"][5] < 1.1
