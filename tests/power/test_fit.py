"""Fitting energies to measured power."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simt.cli import main
from simt.errors import PowerError
from simt.power import Energies, load_energies
from simt.power.fit import fit, mean_absolute, write_toml
from simt.power.measurements import PowerMeasurement, read_measurements, write_measurements

KEYS = ("power.board", "power.sm_active", "instructions.fp32_fma", "memory.dram_sector_read")


def changed(energies: Energies, factors: dict[str, float]) -> Energies:
    values = {
        key: replace(each, value=each.value * factors.get(key, 1.0)) for key, each in energies.values.items()
    }
    return replace(energies, values=values)


def rows(energies: Energies, count: int, noise: float = 0.0) -> list[PowerMeasurement]:
    """Loads of random intensity that use only KEYS, with the power that the energies give them."""
    random = np.random.default_rng(1)
    found = []
    for i in range(count):
        events = {
            "power.board": 1.0,
            "power.sm_active": float(random.uniform(1, 80)),
            "instructions.fp32_fma": float(random.uniform(0, 3e12)),
            "memory.dram_sector_read": float(random.uniform(0, 2e10)),
        }
        exact = PowerMeasurement(f"load {i}", events, 1.0, 1.0).predicted(energies)
        watts = exact * (1 + noise * random.standard_normal())
        found.append(PowerMeasurement(f"load {i}", events, 1.0, float(watts)))
    return found


def test_rows_determine_the_values_they_use_and_leave_the_others() -> None:
    prior = load_energies("qv100")
    truth = changed(prior, dict(zip(KEYS, (1.3, 0.8, 1.2, 0.7), strict=True)))
    found = fit(rows(truth, 40), prior, error=0.001)
    for key in KEYS:
        assert found.energies[key] == pytest.approx(truth[key], rel=0.01)
        assert found.energies.values[key].origin == "fitted"
        assert found.learned[key] > 0.95
    assert found.energies.values["memory.dram_refresh"] == prior.values["memory.dram_refresh"]
    assert set(found.learned) >= set(KEYS)
    assert mean_absolute(found.errors(rows(truth, 60))) < 0.01


@pytest.mark.slow
def test_stated_deviations_are_those_of_repeated_fits() -> None:
    """With noise, values scatter around the truth as their uncertainty says."""
    prior = load_energies("qv100")
    scattered = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        measured = [
            replace(row, watts=row.watts * (1 + 0.03 * random.standard_normal())) for row in rows(prior, 12)
        ]
        found = fit(measured, prior, error=0.03, widen=100)
        each = found.energies.values["memory.dram_sector_read"]
        scattered.append(
            (
                found.energies["memory.dram_sector_read"],
                each.uncertainty * found.energies["memory.dram_sector_read"],
            )
        )
    values, deviations = np.array(scattered).T
    assert values.std() == pytest.approx(deviations.mean(), rel=0.35)
    assert values.mean() == pytest.approx(
        prior["memory.dram_sector_read"], abs=3 * deviations.mean() / 40**0.5
    )


def test_without_enough_rows_the_prior_decides() -> None:
    """Two values that always occur together: the fit moves each in proportion to its own variance."""
    prior = load_energies("qv100")
    events = {"power.board": 1.0, "power.chip_idle": 1.0}
    found = fit([PowerMeasurement("idle", events, 1.0, 25.0)], prior, error=1e-4)
    board, chip = (found.energies[key] for key in events)
    assert board + chip == pytest.approx(25.0, rel=1e-3)
    moves = [prior[key] - found.energies[key] for key in events]
    variances = [(prior[key] * prior.values[key].uncertainty) ** 2 for key in events]
    assert moves[0] / moves[1] == pytest.approx(variances[0] / variances[1], rel=1e-3)


def test_energies_stay_physical() -> None:
    """No negative energy, and an instruction keeps at least its issue and registers."""
    prior = load_energies("qv100")
    events = {"power.board": 1.0, "instructions.fp32_fma": 1e12}
    low = [
        PowerMeasurement("low", events, 1.0, 1.0),
        PowerMeasurement("none", {"power.board": 1.0}, 1.0, 30.0),
    ]
    found = fit(low, prior, error=0.001, widen=50)
    assert found.energies["instructions.fp32_fma"] >= 0
    assert found.energies.unit_energy("instructions.fp32_fma") >= -1e-18


def test_fitted_energies_are_a_file(tmp_path: Path) -> None:
    prior = load_energies("qv100")
    found = fit(rows(changed(prior, {"power.board": 1.2}), 10), prior)
    write_toml(found.energies, tmp_path / "fitted.toml")
    again = load_energies(tmp_path / "fitted.toml")
    assert again.voltages == prior.voltages
    for key, each in found.energies.values.items():
        assert again[key] == pytest.approx(found.energies[key], rel=1e-5)
        assert again.values[key].source == each.source and again.values[key].origin == each.origin


def test_measurements_are_a_file_that_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    measured = rows(load_energies("qv100"), 3)
    write_measurements(file, measured, {"device": "none"})
    assert read_measurements(file) == measured
    data = json.loads(file.read_text())
    for change, message in (
        ({"watts": 0}, "must be positive"),
        ({"watts": "12"}, "expected a number"),
        ({"events": {"power.bord": 1.0}}, "unknown event 'power.bord'"),
        ({"hats": 1}, "hats"),
    ):
        broken = {**data, "rows": [{**data["rows"][0], **change}]}
        file.write_text(json.dumps(broken))
        with pytest.raises(PowerError, match=message):
            read_measurements(file)
    file.write_text("{}")
    with pytest.raises(PowerError, match=r"expected 'simt\.power/1'"):
        read_measurements(file)


def test_the_command_fits_some_rows_and_judges_by_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prior = load_energies("qv100")
    measured = rows(changed(prior, dict(zip(KEYS, (1.2, 0.9, 1.1, 0.8), strict=True))), 14)
    write_measurements(tmp_path / "rows.json", measured, {})
    command = ["simt", "power", "fit", str(tmp_path / "rows.json"), "--energies", "qv100", "--error", "0.001"]
    command += ["-o", str(tmp_path / "mine.toml")]

    def run(*more: str) -> str:
        monkeypatch.setattr(sys, "argv", [*command, *more])
        with pytest.raises(SystemExit) as end:
            main()
        shown = capsys.readouterr()
        return shown.err if end.value.code else shown.out

    shown = run("--rows", ",".join(f"load {i}" for i in range(10)))
    assert "mean absolute error of the 10 rows fitted to: " in shown
    assert "mean absolute error of the 4 rows that judge: " in shown
    found = load_energies(tmp_path / "mine.toml")
    assert mean_absolute([row.predicted(found) / row.watts - 1 for row in measured[10:]]) < 0.01
    assert found.values["power.board"].source.startswith("fitted to load 0, load 1, ")
    assert "no row 'load 99'; there are load 0, load 1" in run("--rows", "load 99")
