"""A real GPU as programs see a simulated one, so that one source runs on both."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from time import perf_counter
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from simt import _engine
from simt.cuda import PtxModule
from simt.cuda.driver import Attribute, Device, DeviceKernel, Driver, FunctionAttribute
from simt.errors import DriverError, LaunchError
from simt.gpu import GPU
from simt.gpu.arguments import Arguments
from simt.gpu.module import Launcher
from simt.result import Result
from simt.validate.device import SOURCES

_HOLD_NS = 500_000.0  # in which the host queues a launch and two events
_LONGEST_HOLD_NS = 50_000_000.0
_CLOCK_NS = 2_000_000
_ATTEMPTS = 5
_REPEATS = 11
_PERIOD_LAUNCHES = 33


@dataclass(frozen=True)
class LaunchTime:
    """A launch on a real GPU. shared_bytes: static and dynamic, of a CTA. registers: of a thread.

    nanoseconds: from its first CTA's start to its end; None where launches are not timed.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int
    nanoseconds: float | None


class HardwareGPU(GPU):
    """A GPU of this machine on which programs run that were written for a simulated one: they compile, make
    arrays and launch, and find the times of their launches in `times`.

    Launches run one after the other, whatever their streams. There is no specification, there are no
    counters, textures and recordings. A launch returns None, as without timing.

    A launch is timed by two events around it, while a kernel that was launched before still runs: the host's
    own time is not in it. From the time between the events that of an empty kernel is taken off.

    timed: False under a profiler, which takes times itself and should see the program's launches alone.

    Raises DriverError where there is no such GPU.
    """

    def __init__(self, ordinal: int = 0, *, timed: bool = True, driver: Driver | None = None) -> None:
        # A kernel that is loaded when it is launched first would be timed with its loading.
        os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
        self.device = Device(ordinal, driver)
        self.memory = _Memory(self.device)
        self.functional = False
        self.times: list[LaunchTime] = []
        self._with_times = timed
        self._streams = 0
        self._hold_ns = _HOLD_NS
        self._variables = _engine.functional.DeviceMemory(1 << 30)
        self._begin, self._end = self.device.event(), self.device.event()

    @property
    def arch(self) -> str:
        return self.device.arch

    def close(self) -> None:
        """Gives back the GPU and all memory."""
        self.memory.closed = True
        self.device.close()

    # --- programs and memory ----------------------------------------------------------------------------

    def load_native(self, ptx: PtxModule) -> _Loaded:
        return _Loaded(self, ptx)

    def scratch_module(self, ptx: PtxModule) -> Any:
        """The module as our engine reads it: how parameters lie."""
        return _engine.functional.load(ptx.text, ptx.name, self._variables)

    def write(self, address: int, values: npt.NDArray[Any]) -> None:
        self.device.write(address, values.tobytes())

    def synchronize(self) -> None:
        self.device.synchronize()

    def texture(self, *arguments: Any, **options: Any) -> NoReturn:
        raise LaunchError("textures, surfaces and samplers are of a simulated GPU only")

    surface = sampler = texture

    def trace(self, path: str | os.PathLike[str]) -> NoReturn:
        raise LaunchError("a real GPU records no trace; NVBit's tracer does (docs/trace-format.md)")

    def result(self, status: str = "complete") -> Result:
        raise LaunchError("a real GPU gives no Result; its launches are in `times`")

    # --- launches ---------------------------------------------------------------------------------------

    def launch(self, launcher: Launcher, arguments: Arguments) -> None:
        try:
            kernel = launcher.kernel.module.native.kernel(launcher.kernel.name)

            def put() -> None:
                kernel.launch(
                    launcher.grid, launcher.block, arguments.block, launcher.shared, launcher.cluster
                )

            nanoseconds = None
            if self._with_times:
                nanoseconds = max(0.0, self._between(put) - self.empty_ns)
            else:
                put()
            self.synchronize()
            self.times.append(
                LaunchTime(
                    launcher.kernel.name,
                    launcher.grid,
                    launcher.block,
                    kernel.attribute(FunctionAttribute.NUM_REGS),
                    kernel.attribute(FunctionAttribute.SHARED_SIZE_BYTES) + launcher.shared,
                    nanoseconds,
                )
            )
            arguments.copy_back()
        except BaseException:
            arguments.discard()
            raise

    @cached_property
    def core_mhz(self) -> float:
        """The core's clock under load, when it was asked for first."""
        return self.measure_clock()

    def measure_clock(self) -> float:
        """MHz of the core now: cycles of a kernel of 2 ms against the GPU's timer; the median of five."""
        return median(self._clock_under_load() for _ in range(_ATTEMPTS))

    @cached_property
    def empty_ns(self) -> float:
        """Time between two events around an empty kernel: the median of eleven."""
        return median(self._between(self._nothing) for _ in range(_REPEATS))

    @cached_property
    def launch_ns(self) -> float:
        """Time from one launch of an empty kernel to the next in a stream."""
        return self.period(self._nothing, _PERIOD_LAUNCHES)

    def period(self, put: Callable[[], None], launches: int) -> float:
        """Nanoseconds from one launch to the next, all of them queued before the first begins."""

        def several() -> None:
            for _ in range(launches):
                put()

        many = median(self._between(several, launches) for _ in range(_ATTEMPTS))
        return (many - median(self._between(put) for _ in range(_ATTEMPTS))) / (launches - 1)

    def _between(self, put: Callable[[], None], launches: int = 1) -> float:
        """Nanoseconds between two events around what `put` launches. Where the host is too slow to queue it
        while the GPU is held, it is held longer the next time."""
        self.synchronize()
        self._spin(self._hold_ns * launches)
        start = perf_counter()
        self._begin.record()
        put()
        self._end.record()
        queued_ns = 1e9 * (perf_counter() - start)
        self._hold_ns = max(self._hold_ns, min(4.0 * queued_ns / launches, _LONGEST_HOLD_NS))
        return 1e6 * self._end.milliseconds_since(self._begin)

    def _clock_under_load(self) -> float:
        self._spin(_CLOCK_NS)
        cycles, elapsed = np.frombuffer(self.device.read(self._elapsed, 16), np.int64)
        return 1e3 * float(cycles) / float(elapsed)

    def _spin(self, nanoseconds: float) -> None:
        """Keeps the GPU busy about so long."""
        khz = self.device.attribute(Attribute.CLOCK_RATE)
        cycles = int(nanoseconds * khz / 1e6)
        parameters = np.array([cycles, self._elapsed], np.int64).tobytes()
        self._own["spin"].launch((1, 1, 1), (32, 1, 1), parameters)

    def _nothing(self) -> None:
        self._own["nothing"].launch((1, 1, 1), (32, 1, 1))

    @cached_property
    def _elapsed(self) -> int:
        return self.device.allocate(16)

    @cached_property
    def _own(self) -> Mapping[str, DeviceKernel]:
        """Kernels by which clocks and launches are measured."""
        found = {}
        for file, name in (("spin.cu", "spin"), ("residency.cu", "nothing")):
            module = self.compile((SOURCES / file).read_text(encoding="utf-8"), name=file, include=[SOURCES])
            found[name] = module.native.kernel(name)
        return found


class _Memory:
    """Memory of a real GPU, as arrays use it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.closed = False

    def allocate(self, size: int, label: str) -> int:
        try:
            address = self._device.allocate(size)
        except DriverError as error:
            raise LaunchError(f"no room for {label}, {size:,} bytes: {error}") from None
        self._device.fill(address, 0, size)
        return address

    def read(self, address: int, size: int) -> bytes:
        return self._device.read(address, size)

    def free(self, address: int) -> None:
        if not self.closed:
            self._device.free(address)


class _Loaded:
    """A module that the driver has loaded, with what our engine knows of its kernels' parameters."""

    def __init__(self, gpu: HardwareGPU, ptx: PtxModule) -> None:
        self._facts = gpu.scratch_module(ptx)
        self._module = gpu.device.load(ptx.text, ptx.name)
        self._kernels: dict[str, DeviceKernel] = {}
        if self._facts.references:
            raise LaunchError(
                f"{ptx.name}: declares textures, surfaces or samplers: only a simulated GPU has them"
            )
        self.references: dict[str, Any] = {}

    @property
    def kernels(self) -> Any:
        return self._facts.kernels

    @property
    def variables(self) -> dict[str, tuple[int, int]]:
        """Address and size of those that the driver's compiler has kept."""
        found = {}
        for name in self._facts.variables:
            try:
                found[name] = self._module.variable(name)
            except DriverError:
                continue
        return found

    def kernel(self, name: str) -> DeviceKernel:
        if name not in self._kernels:
            self._kernels[name] = self._module.kernel(name)
        return self._kernels[name]
