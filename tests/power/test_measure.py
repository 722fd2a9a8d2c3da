"""Energy microbenchmarks on devices whose energies are known, and the fit of what they measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simt.cuda import toolkit
from simt.cuda.driver import Driver
from simt.errors import PowerError
from simt.power import Energies, load_energies, measure
from simt.power.benchmarks import BENCHMARKS, MeasuredMachine, choose
from simt.power.fit import fit
from simt.power.measure import RealBoard, SimulatedBoard
from simt.power.measurements import PowerMeasurement
from simt.validate.device import SimulatedDevice
from support.fake_cuda import SimulatedCuda

pytestmark = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")

# A small GPU: an SM and a sector take what they take on a large one.
SMALL = {"sm.count": 8, "l2.slice.sets": 4}


def device() -> SimulatedDevice:
    return SimulatedDevice("qv100", SMALL)


def hidden(known: Energies) -> Energies:
    """Other energies than those known, within their uncertainty or so."""
    random = np.random.default_rng(5)
    values = {
        key: replace(each, value=each.value * float(random.uniform(0.7, 1.4)))
        for key, each in known.values.items()
    }
    return replace(known, values=values)


@pytest.fixture(scope="module")
def rows() -> list[PowerMeasurement]:
    """All microbenchmarks, without noise."""
    model, truth = device(), load_energies("qv100")
    return measure.measure(SimulatedBoard(model, truth), model, truth, choose(None))


@pytest.mark.slow
def test_microbenchmarks_give_back_the_energies_of_the_file(rows: list[PowerMeasurement]) -> None:
    """Row by row, the events explain the power; together, they give every energy that they can tell apart,
    although the fit begins with others."""
    truth = load_energies("qv100")
    for row in rows:
        assert row.predicted(truth) == pytest.approx(row.watts, rel=0.002), row.name
    found = fit(rows, hidden(truth), error=1e-4, widen=3)
    known = {key for key in found.learned if found.energies.values[key].uncertainty < 0.01}
    names = ("fp32_fma", "int_add", "fp64_fma", "fp16_fma", "sfu", "move", "load_store")
    assert known >= {f"instructions.{x}" for x in names}
    assert known >= {"memory.dram_sector_read", "memory.dram_sector_write", "tensor.fp16", "tensor.fp16_fp32"}
    assert len(known) >= 28
    for key in known:
        assert found.energies[key] == pytest.approx(truth[key], rel=0.02), key


@pytest.mark.slow
def test_known_energies_are_recovered_from_noisy_measurements(rows: list[PowerMeasurement]) -> None:
    noise, random = 0.0005, np.random.default_rng(7)
    known = load_energies("qv100")
    truth = hidden(known)
    noisy = [
        replace(row, watts=row.predicted(truth) * (1 + noise * float(random.standard_normal())))
        for row in rows
    ]
    found = fit(noisy, known, error=noise, widen=3)
    certain = {key for key in found.learned if found.energies.values[key].uncertainty < 0.02}
    assert len(certain) >= 20
    for key in certain:
        assert found.energies[key] == pytest.approx(truth[key], rel=0.05), key
    # Apart from each other they are not determined: both are on all the time.
    constant = ("power.board", "power.chip_idle")
    assert sum(found.energies[k] for k in constant) == pytest.approx(
        sum(truth[k] for k in constant), rel=0.05
    )


class NvmlError(Exception):
    pass


def nvml(watts: float, counter: bool) -> Any:
    """NVML's module for a GPU that takes constant power. Its clock is the host's."""
    from time import perf_counter

    def joules(handle: object) -> int:
        if not counter:
            raise NvmlError("Not Supported")
        return int(1e3 * watts * perf_counter())

    def handle(bus_id: bytes) -> object:
        if bus_id != b"0000:3b:00.0":
            raise NvmlError("Not Found")
        return object()

    return SimpleNamespace(
        NVMLError=NvmlError,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByPciBusId=handle,
        nvmlDeviceGetPowerUsage=lambda handle: int(1e3 * watts),
        nvmlDeviceGetTotalEnergyConsumption=joules,
        nvmlDeviceGetEnforcedPowerLimit=lambda handle: 250_000,
        nvmlDeviceGetClockInfo=lambda handle, kind: {1: 1290, 2: 877}[kind],
        nvmlDeviceGetTemperature=lambda handle, kind: 61,
        nvmlSystemGetDriverVersion=lambda: "550.1",
    )


@pytest.mark.parametrize("counter", [True, False])
def test_a_real_board_is_measured_with_its_conditions(counter: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind stand-ins for the driver and NVML. Launches are simulated, so they are short here."""
    monkeypatch.setattr(measure, "_LAUNCH_SECONDS", 0.001)
    library = SimulatedCuda("qv100", set={"sm.count": 1})
    board = RealBoard(0, seconds=0.05, settle=0.0, driver=Driver(library), nvml=nvml(120.0, counter))
    reading = board.measure(BENCHMARKS["fp32_fma"], MeasuredMachine(1, 1 << 20))
    assert reading.watts == pytest.approx(120.0, rel=0.02)
    assert (reading.core_mhz, reading.temperature) == (1290, 61)
    assert reading.conditions == {"memory_mhz": 877}
    assert reading.launches >= 5 and reading.repeats >= 64 and reading.seconds >= 0.05
    assert board.idle().repeats == 0
    said = board.provenance
    assert (said["driver"], said["power_limit_w"], said["energy_counter"]) == ("550.1", 250.0, counter)
    board.close()


def test_a_board_needs_its_own_model(tmp_path: Path) -> None:
    other = SimulatedDevice("qv100", {"sm.count": 4})
    board = SimulatedBoard(other, load_energies("qv100"))
    with pytest.raises(PowerError, match="has 4 SMs and qv100 8"):
        measure.measure(board, device(), load_energies("qv100"), [])
    with pytest.raises(PowerError, match="did you mean fp32_fma"):
        choose(["fp32_fms"])
