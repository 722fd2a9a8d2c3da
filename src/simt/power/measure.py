"""Measuring the power of energy microbenchmarks: on a real GPU through NVML, or on a simulated one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import Any, Protocol

import numpy as np

from simt.cuda.driver import Driver
from simt.errors import PowerError, ToolkitError
from simt.extras import install
from simt.power.benchmarks import EnergyBenchmark, MeasuredMachine
from simt.power.energies import SECTIONS, Energies
from simt.power.energy import LaunchEnergy
from simt.power.events import events
from simt.power.measurements import PowerMeasurement
from simt.power.operating_point import OperatingPoint
from simt.progress import Progress
from simt.result.launch import LaunchResult
from simt.validate.device import BenchmarkDevice, SimulatedDevice
from simt.validate.hardware import HardwareGPU

_LAUNCH_SECONDS = 0.05  # of a launch: the time between two is then negligible
_PARTS = 5  # of the measured time, whose powers give the deviation
_FIRST_REPEATS = 64
_MOST_REPEATS = 1 << 28
_TIMES = {"memory.dram_refresh", *(f"power.{key}" for key in SECTIONS["power"])}  # grow with time
IDLE = "idle"


@dataclass(frozen=True)
class Reading:
    """A measurement of a benchmark. repeats: of each launch. launches: in `seconds`. watts: board power, and
    its standard deviation. core_mhz, temperature: during it. conditions: further facts."""

    repeats: int
    launches: int
    seconds: float
    watts: float
    deviation: float
    core_mhz: float
    temperature: float | None
    conditions: Mapping[str, float] = field(default_factory=dict)


class Board(Protocol):
    """A GPU whose power can be measured."""

    name: str
    sms: int
    sm_version: int

    @property
    def provenance(self) -> dict[str, Any]:
        """Entries of the record about the device."""

    def measure(self, benchmark: EnergyBenchmark, machine: MeasuredMachine) -> Reading: ...

    def idle(self) -> Reading:
        """The power while nothing runs."""


def measure(
    board: Board,
    model: SimulatedDevice,
    energies: Energies,
    benchmarks: Sequence[EnergyBenchmark],
    progress: Callable[[Progress], None] | None = None,
) -> list[PowerMeasurement]:
    """Measures benchmarks and the idle board. Their events are those of the same programs on a simulated GPU.

    model: of the board's GPU. energies: tell which registers an instruction's energy includes, and how power
    changes with clock, voltage and temperature.

    Benchmarks that the GPU cannot run are left out. Raises PowerError and DriverError.
    """
    if model.sms != board.sms:
        raise PowerError(f"{board.name} has {board.sms} SMs and {model.name} {model.sms}: give its own model")
    machine = MeasuredMachine(model.sms, model.l2_bytes)
    idle = board.idle()
    nothing = {"power.board": 1.0, "power.chip_idle": 1.0, "power.sm_idle": float(model.sms)}
    rows = [_row(IDLE, nothing, idle, energies)]
    start = time.monotonic()
    for i, benchmark in enumerate(benchmarks):
        if progress is not None:
            elapsed = time.monotonic() - start
            progress(Progress(benchmark.name, i / len(benchmarks), elapsed, i, len(benchmarks)))
        if benchmark.sm_version > board.sm_version:
            continue
        reading = board.measure(benchmark, machine)
        rates = event_rates(benchmark, model, machine, energies, reading)
        rows.append(_row(benchmark.name, rates, reading, energies))
    return rows


def event_rates(
    benchmark: EnergyBenchmark,
    model: SimulatedDevice,
    machine: MeasuredMachine,
    energies: Energies,
    reading: Reading,
) -> dict[str, float]:
    """Events per second of the measured launches.

    Those of a launch follow from two simulated ones, as they grow linearly with its repetitions. The measured
    time says how often they happened; SMs and sub-cores are active for the same share of it as in the
    simulator.
    """
    launch = benchmark.prepare(model, machine)
    launch(benchmark.repeats)  # fills the caches
    once, twice = (_counts(launch(n * benchmark.repeats), energies) for n in (1, 2))
    more = reading.repeats / benchmark.repeats - 1
    each = {key: n + more * (twice[key] - n) for key, n in once.items()}
    per_second = reading.launches / reading.seconds
    return {key: n / each["power.board"] if key in _TIMES else n * per_second for key, n in each.items()}


def _counts(launch: LaunchResult, energies: Energies) -> Mapping[str, float]:
    return events(launch, energies).counts


def _row(name: str, rates: Mapping[str, float], reading: Reading, energies: Energies) -> PowerMeasurement:
    factors = OperatingPoint.of(energies, 1000 * reading.core_mhz, reading.temperature).factors(energies)
    happened = {key: n * reading.seconds * factors[key] for key, n in rates.items() if n}
    conditions = {"core_mhz": reading.core_mhz, "launches": reading.launches, "repeats": reading.repeats}
    if reading.temperature is not None:
        conditions["temperature"] = reading.temperature
    conditions |= reading.conditions
    return PowerMeasurement(name, happened, reading.seconds, reading.watts, reading.deviation, conditions)


class SimulatedBoard:
    """A simulated GPU that takes the power that energies give it.

    noise: relative standard deviation of a measurement. The launches have other numbers of repetitions than
    those that give the events.
    """

    def __init__(
        self, device: SimulatedDevice, energies: Energies, noise: float = 0.0, seed: int = 0
    ) -> None:
        self.name, self.sms, self.sm_version = device.name, device.sms, device.sm_version
        self.provenance: dict[str, Any] = {"simulated": True, "energies": energies.name, "noise": noise}
        self._device = device
        self._energies = energies
        self._noise = noise
        self._random = np.random.default_rng(seed)

    def measure(self, benchmark: EnergyBenchmark, machine: MeasuredMachine) -> Reading:
        repeats = 3 * benchmark.repeats
        run = benchmark.prepare(self._device, machine)
        run(benchmark.repeats)  # fills the caches
        launch = run(repeats)
        return self._reading(repeats, launch.seconds, LaunchEnergy(launch, self._energies).watts)

    def idle(self) -> Reading:
        of = self._energies
        watts = of["power.board"] + of["power.chip_idle"] + self.sms * of["power.sm_idle"]
        return self._reading(0, 1.0, watts)

    def _reading(self, repeats: int, seconds: float, watts: float) -> Reading:
        measured = watts * (1 + self._noise * float(self._random.standard_normal()))
        return Reading(repeats, 1, seconds, measured, self._noise * watts, self._device.core_mhz, None)


class RealBoard:
    """A GPU of this machine, with its power as NVML reports it.

    seconds: of a measurement, after `settle` seconds of the same load, in which clock, temperature and the
    sensor's average settle. nvml: the module `pynvml`, or a stand-in.

    Energy is read from the GPU's counter, or, where it has none, is the mean of its power readings.

    Raises DriverError and PowerError.
    """

    def __init__(
        self,
        ordinal: int = 0,
        *,
        seconds: float = 10.0,
        settle: float = 5.0,
        driver: Driver | None = None,
        nvml: Any = None,
    ) -> None:
        self._seconds, self._settle = seconds, settle
        self._gpu = HardwareGPU(ordinal, timed=False, driver=driver)
        self._programs = BenchmarkDevice(self._gpu)
        self._sensor = Sensor(self._gpu.device.pci_bus_id, nvml)
        self.name = self._gpu.device.name
        self.sms = self._gpu.device.attribute("MULTIPROCESSOR_COUNT")
        major, minor = self._gpu.device.compute_capability
        self.sm_version = 10 * major + minor

    @property
    def provenance(self) -> dict[str, Any]:
        return {
            "simulated": False,
            "device": self.name,
            "seconds": self._seconds,
            "settle": self._settle,
            **self._sensor.provenance,
        }

    def close(self) -> None:
        """Releases the GPU."""
        self._gpu.close()

    def idle(self) -> Reading:
        return self._observed(lambda: time.sleep(_LAUNCH_SECONDS), 0)

    def measure(self, benchmark: EnergyBenchmark, machine: MeasuredMachine) -> Reading:
        launch = benchmark.prepare(self._programs, machine)
        repeats = _FIRST_REPEATS
        while True:
            before = time.perf_counter()
            launch(repeats)
            took = time.perf_counter() - before
            if took > 0.5 * _LAUNCH_SECONDS or repeats >= _MOST_REPEATS:
                break
            grow = 0.8 * _LAUNCH_SECONDS / max(took, 1e-4)
            repeats = min(_MOST_REPEATS, max(2 * repeats, int(repeats * min(grow, 100.0))))
        return self._observed(lambda: launch(repeats), repeats)

    def _observed(self, run: Callable[[], object], repeats: int) -> Reading:
        end = time.perf_counter() + self._settle
        while time.perf_counter() < end:
            run()
        parts = [self._part(run) for _ in range(_PARTS)]
        seconds, launches = sum(p.seconds for p in parts), sum(p.launches for p in parts)
        watts = sum(p.joules for p in parts) / seconds
        return Reading(
            repeats,
            launches,
            seconds,
            watts,
            stdev(p.joules / p.seconds for p in parts) / math.sqrt(_PARTS),
            mean(p.core_mhz for p in parts),
            mean(p.temperature for p in parts),
            {"memory_mhz": parts[-1].memory_mhz},
        )

    def _part(self, run: Callable[[], object]) -> _Part:
        sensor, powers, launches = self._sensor, [], 0
        joules, start = sensor.joules(), time.perf_counter()
        while True:
            run()
            launches += 1
            elapsed = time.perf_counter() - start
            if joules is None:
                powers.append(sensor.watts())
            if elapsed >= self._seconds / _PARTS:
                break
        used = mean(powers) * elapsed if joules is None else (sensor.joules() or 0.0) - joules
        return _Part(launches, elapsed, used, sensor.core_mhz(), sensor.memory_mhz(), sensor.temperature())


@dataclass(frozen=True)
class _Part:
    launches: int
    seconds: float
    joules: float
    core_mhz: float
    memory_mhz: float
    temperature: float


class Sensor:
    """NVML's view of a GPU. Raises PowerError if NVML or the GPU's power reading is missing."""

    def __init__(self, pci_bus_id: str, nvml: Any = None) -> None:
        self._nvml = nvml = _import_nvml() if nvml is None else nvml
        try:
            nvml.nvmlInit()
            self._handle = nvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
            self.watts()
        except nvml.NVMLError as error:
            raise PowerError(f"NVML cannot read the power of GPU {pci_bus_id}: {error}") from None

    @property
    def provenance(self) -> dict[str, Any]:
        version = self._nvml.nvmlSystemGetDriverVersion()
        limit = self._nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle)
        return {
            "driver": version.decode() if isinstance(version, bytes) else version,
            "power_limit_w": limit / 1e3,
            "energy_counter": self.joules() is not None,
        }

    def watts(self) -> float:
        """The board's power now."""
        return float(self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1e3

    def joules(self) -> float | None:
        """The board's energy since the driver was loaded; None if it does not count it."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except self._nvml.NVMLError:
            return None

    def core_mhz(self) -> float:
        return float(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM))

    def memory_mhz(self) -> float:
        return float(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_MEM))

    def temperature(self) -> float:
        return float(self._nvml.nvmlDeviceGetTemperature(self._handle, self._nvml.NVML_TEMPERATURE_GPU))


def _import_nvml() -> Any:
    try:
        import pynvml
    except ModuleNotFoundError:
        raise ToolkitError(f"NVML needs nvidia-ml-py, which is not installed: {install('cuda')}") from None
    return pynvml
