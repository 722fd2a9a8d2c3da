"""A real GPU with the interface of a simulated one, so that one source runs on both."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from time import perf_counter
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from simt import _engine
from simt.cuda import Image, PtxModule
from simt.cuda.driver import DeviceKernel, Driver, DriverDevice
from simt.errors import DriverError, LaunchError
from simt.gpu import GPU
from simt.gpu.arguments import LaunchArguments
from simt.gpu.exclusive import Exclusive
from simt.gpu.module import Launcher, Module
from simt.result import Result
from simt.validate.device import SOURCES

_HOLD_NS = 500_000.0  # time for the host to queue a launch and two events
_LONGEST_HOLD_NS = 5_000_000.0
_CLOCK_NS = 2_000_000
_CLOCKS = 5  # consecutive spins with the same clock
_SAME_CLOCK = 0.005
_MOST_CLOCKS = 1000
_ATTEMPTS = 5
_REPEATS = 11
_PERIOD_LAUNCHES = 33


@dataclass(frozen=True)
class LaunchTime:
    """A launch on a real GPU. shared_bytes: static and dynamic, per CTA. registers: per thread.

    nanoseconds: from its first CTA's start to its end; None if launches are not timed.
    core_mhz: the core clock just before it. late: whether the host was too slow, so that `nanoseconds` may
        include host time.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int
    nanoseconds: float | None
    core_mhz: float = math.nan
    late: bool = False

    @property
    def cycles(self) -> float:
        """Core cycles from its first CTA's start to its end; NaN if launches are not timed."""
        return math.nan if self.nanoseconds is None else self.nanoseconds * self.core_mhz / 1e3


@dataclass(frozen=True)
class _Between:
    """A timed section: nanoseconds between two events, the core clock just before, whether the host was
    late."""

    nanoseconds: float
    core_mhz: float
    late: bool


class HardwareGPU(GPU):
    """A GPU in this machine for programs written for a simulated one: they compile, make arrays and launch,
    and find the times of their launches in `times`.

    Launches run one after another, regardless of streams. There is no specification, and there are no
    counters, textures or recordings. A launch returns None, as without timing.

    A launch is timed by two events around it, queued while an earlier kernel is still running, so host time
    is not included. The time of an empty kernel is subtracted.

    timed: False under a profiler, which measures times itself and should see only the program's launches.

    Raises DriverError if there is no such GPU.
    """

    def __init__(self, ordinal: int = 0, *, timed: bool = True, driver: Driver | None = None) -> None:
        # If a kernel were loaded at its first launch, the launch's time would include loading.
        os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
        self.device = DriverDevice(ordinal, driver)
        self._memory = _Memory(self.device)
        self.memory = self._memory  # type: ignore[assignment]
        self.exclusive = Exclusive(self._memory.free)
        self._of_thread = threading.local()
        self.functional = False
        self.checking = None
        self.fmad = True  # as the driver's compiler does
        self.code = "ptx"
        self.tensor_arithmetic = "hardware"
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
        """Releases the GPU and all memory."""
        self._memory.closed = True
        self.device.close()

    def abandon(self) -> None:
        """Resets the GPU for this process after a kernel's fault; all memory and programs are lost."""
        self._memory.closed = True
        self.device.reset()
        self.device.close()

    # --- programs and memory ----------------------------------------------------------------------------

    def load_native(  # type: ignore[override]
        self, image: Image, places: Mapping[str, int]
    ) -> _Loaded:
        if not isinstance(image, PtxModule):
            raise LaunchError(f"{image.name}: machine code; a real GPU is given PTX")
        return _Loaded(self, image)

    def scratch_module(self, ptx: PtxModule) -> Any:
        """The module as parsed by our engine, for the layout of parameters."""
        return _engine.functional.load(ptx.text, ptx.name, self._variables)

    def peek(self, address: int, nbytes: int) -> bytes:
        return self.device.read(address, nbytes)

    def write(self, address: int, values: npt.NDArray[Any]) -> None:
        self.device.write(address, values.tobytes())

    def synchronize(self, until: Collection[int] | None = None) -> None:
        self.device.synchronize()

    def texture(self, *arguments: Any, **options: Any) -> NoReturn:
        raise LaunchError("only simulated GPUs support textures, surfaces and samplers")

    surface = sampler = texture

    def trace(
        self,
        path: str | os.PathLike[str],
        *,
        converged: bool = False,
        plain: bool = False,
        combined: bool = False,
        opcode: Callable[[str], str] | None = None,
    ) -> NoReturn:
        raise LaunchError("a real GPU does not record traces; NVBit's tracer does (docs/trace-format.md)")

    def result(self, status: str = "complete") -> Result:
        raise LaunchError("a real GPU has no Result; its launches are in `times`")

    # --- launches ---------------------------------------------------------------------------------------

    def launch(self, launcher: Launcher, arguments: Callable[[], LaunchArguments]) -> None:
        with self.exclusive:
            self._run_launch(launcher, arguments())

    def _run_launch(self, launcher: Launcher, arguments: LaunchArguments) -> None:
        try:
            kernel = device_kernel(launcher.kernel.module, launcher.kernel.name)

            def put() -> None:
                kernel.launch(
                    launcher.grid, launcher.block, arguments.block, launcher.shared, launcher.cluster
                )

            between = None
            if self._with_times:
                empty = self.empty_ns
                between = self._between(put)
            else:
                put()
            self.synchronize()
            registers = kernel.attribute("NUM_REGS")
            shared = kernel.attribute("SHARED_SIZE_BYTES") + launcher.shared
            time = LaunchTime(launcher.kernel.name, launcher.grid, launcher.block, registers, shared, None)
            if between is not None:
                nanoseconds = max(0.0, between.nanoseconds - empty)
                time = replace(time, nanoseconds=nanoseconds, core_mhz=between.core_mhz, late=between.late)
            self.times.append(time)
            arguments.copy_back()
        except BaseException:
            arguments.discard()
            raise

    @cached_property
    def empty_ns(self) -> float:
        """Time between two events around an empty kernel: the median of eleven."""
        return median(self._between(self._nothing).nanoseconds for _ in range(_REPEATS))

    @cached_property
    def launch_ns(self) -> float:
        """Time from one launch of an empty kernel to the next in the same stream."""
        return self.period(self._nothing, _PERIOD_LAUNCHES)[0]

    def measure_clock(self) -> float:
        """MHz of the core under load: cycles of a kernel of 2 ms against the GPU's timer.

        An idle GPU takes time to raise its clock, so the result is the median of the first five consecutive
        measurements that differ by less than 0.5 %, or of the last five after 2 s.
        """
        found: list[float] = []
        for _ in range(_MOST_CLOCKS):
            self._spin(_CLOCK_NS)
            found = [*found[1 - _CLOCKS :], self._spun_mhz()]
            if len(found) == _CLOCKS and max(found) - min(found) < _SAME_CLOCK * min(found):
                break
        return median(found)

    def period(self, put: Callable[[], None], launches: int) -> tuple[float, float]:
        """Time, ns, from one launch to the next, with all launches queued before the first begins; and the
        core clock just before."""

        def several() -> None:
            for _ in range(launches):
                put()

        many = [self._between(several, launches) for _ in range(_ATTEMPTS)]
        one = median(self._between(put).nanoseconds for _ in range(_ATTEMPTS))
        between = median(m.nanoseconds for m in many) - one
        return between / (launches - 1), median(m.core_mhz for m in many)

    def _between(self, put: Callable[[], None], launches: int = 1) -> _Between:
        """Times the launches made by `put` with two events around them. If the host is too slow to queue them
        while the GPU is held, the GPU is held longer from then on."""
        self.synchronize()
        self._spin(self._hold_ns * launches)
        start = perf_counter()
        self._begin.record()
        put()
        self._end.record()
        queued_ns = 1e9 * (perf_counter() - start)
        late = queued_ns > self._hold_ns * launches
        self._hold_ns = max(self._hold_ns, min(4.0 * queued_ns / launches, _LONGEST_HOLD_NS))
        nanoseconds = 1e6 * self._end.milliseconds_since(self._begin)
        return _Between(nanoseconds, self._spun_mhz(), late)

    def _spin(self, nanoseconds: float) -> None:
        """Keeps the GPU busy for about this long."""
        khz = self.device.attribute("CLOCK_RATE")
        cycles = int(nanoseconds * khz / 1e6)
        parameters = np.array([cycles, self._elapsed], np.int64).tobytes()
        self._own["spin"].launch((1, 1, 1), (32, 1, 1), parameters)

    def _spun_mhz(self) -> float:
        """The core clock while the GPU was last kept busy."""
        cycles, elapsed = np.frombuffer(self.device.read(self._elapsed, 16), np.int64)
        return 1e3 * float(cycles) / float(elapsed)

    def _nothing(self) -> None:
        self._own["nothing"].launch((1, 1, 1), (32, 1, 1))

    @cached_property
    def _elapsed(self) -> int:
        return self.device.allocate(16)

    @cached_property
    def _own(self) -> Mapping[str, DeviceKernel]:
        """The kernels that measure clocks and launches."""
        found = {}
        for file, name in (("spin.cu", "spin"), ("residency.cu", "nothing")):
            module = self.compile((SOURCES / file).read_text(encoding="utf-8"), name=file, include=[SOURCES])
            found[name] = device_kernel(module, name)
        return found


class _Memory:
    """Memory of a real GPU, as arrays use it."""

    def __init__(self, device: DriverDevice) -> None:
        self._device = device
        self.closed = False

    def allocate(self, size: int, label: str, *, owned: bool = False, unbacked: bool = False) -> int:
        del owned  # nobody looks for leaks on a real GPU
        if unbacked:
            raise LaunchError(f"{label}: a real GPU has no arrays without memory; leave `unbacked` out")
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


def device_kernel(module: Module, name: str) -> DeviceKernel:
    """The driver's kernel of a module that a HardwareGPU has loaded."""
    return cast("_Loaded", module.native).kernel(name)


class _Loaded:
    """A module loaded by the driver, with our engine's information about its kernels' parameters."""

    def __init__(self, gpu: HardwareGPU, ptx: PtxModule) -> None:
        self._facts = gpu.scratch_module(ptx)
        self._module = gpu.device.load(ptx.text, ptx.name)
        self._kernels: dict[str, DeviceKernel] = {}
        if self._facts.references:
            raise LaunchError(
                f"{ptx.name}: declares textures, surfaces or samplers, which only simulated GPUs support"
            )
        self.references: dict[str, Any] = {}
        self.is_machine_code = False
        self.hidden_variables: dict[str, Any] = {}

    @property
    def kernels(self) -> Any:
        return self._facts.kernels

    @property
    def variables(self) -> dict[str, tuple[int, int]]:
        """Address and size of the variables that the driver's compiler has kept."""
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
