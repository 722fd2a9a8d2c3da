"""Simulated power against measured power: logs of nvidia-smi, and tables of programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import simt
from simt.errors import ProfileError
from simt.result import Result
from simt.validate import correlate, find_programs, page
from simt.validate.correlation import ENERGY, POWER
from support.energies import energies
from support.fake_gpu import installed
from support.launches import MACHINE, launch

WATTS = energies(power__board=50, power__chip_idle=25)  # 75 W whatever runs
LOG = """timestamp, power.draw [W], utilization.gpu [%]
2026/11/23 04:00:00.000, 30.10 W, 0 %
2026/11/23 04:00:00.020, 70.00 W, 97 %
2026/11/23 04:00:00.040, 80.00 W, 98 %
2026/11/23 04:00:00.060, [N/A], 99 %
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with installed():
        provenance = simt.simulate("input").provenance
    launches = tuple(replace(launch(i, start=10_000 * i), pc={}, energies=WATTS) for i in range(2))
    (tmp_path / "results").mkdir()
    (tmp_path / "measured").mkdir()
    Result(launches, MACHINE, provenance, energies=WATTS).save(tmp_path / "results" / "sum")
    return tmp_path


def test_a_log_of_nvidia_smi(folder: Path) -> None:
    (folder / "measured" / "sum.csv").write_text(LOG)
    found = correlate(find_programs(folder / "results", folder / "measured"))
    (row,) = found.kernels.to_dicts()
    assert (row["counter"], row["simulated"], row["measured"]) == (
        POWER,
        pytest.approx(75),
        pytest.approx(75),
    )
    (folder / "measured" / "sum.csv").write_text(LOG.replace(", utilization.gpu [%]", "").replace("%", ""))
    (row,) = correlate(find_programs(folder / "results", folder / "measured")).kernels.to_dicts()
    assert row["measured"] == pytest.approx((30.1 + 70 + 80) / 3)  # of all samples
    assert "simt__power.avg" in page.html(found, "here")


def test_a_log_beside_a_profile(folder: Path) -> None:
    runs = folder / "measured" / "sum"
    runs.mkdir()
    (runs / "power.csv").write_text(LOG)
    (runs / "ncu.csv").write_text(
        '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","kernel","gpc__cycles_elapsed.max","cycle","4500"\n"1","kernel","gpc__cycles_elapsed.max","cycle","9000"\n'
    )
    found = correlate(find_programs(folder / "results", folder / "measured"))
    assert sorted(found.counters) == ["gpc__cycles_elapsed.max", POWER]


def test_a_log_without_watts_is_refused(folder: Path) -> None:
    (folder / "measured" / "sum.csv").write_text("power.draw [W]\n[N/A]\n")
    with pytest.raises(ProfileError, match=r"no power in power\.draw \[W\]"):
        find_programs(folder / "results", folder / "measured")


def test_a_table_of_programs(folder: Path) -> None:
    (folder / "table.csv").write_text("program,watts,joules\nsum,60,0.00075\n")
    found = correlate(find_programs(folder / "results", folder / "table.csv"))
    rows = {row["counter"]: row for row in found.kernels.to_dicts()}
    assert rows[POWER]["simulated"] == pytest.approx(75)
    assert rows[POWER]["measured"] == 60
    assert rows[ENERGY]["simulated"] == pytest.approx(2 * 75 * 4.5e-6)
    agreement = found.only([POWER]).agreement().to_dicts()[0]
    assert agreement["mae"] == pytest.approx(0.25)
