"""A real GPU as a device for microbenchmarks, through NVIDIA's driver and NVRTC; no toolkit needed."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from simt.cuda.driver import Driver
from simt.errors import DriverError
from simt.gpu.array import DeviceArray
from simt.validate.device import BenchmarkDevice, BenchmarkKernel
from simt.validate.hardware import HardwareGPU, device_kernel

_CALLED = {
    "l2_bytes": "L2_CACHE_SIZE",
    "memory_mhz": "MEMORY_CLOCK_RATE",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
    "registers_per_sm": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "shared_bytes_per_sm": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "shared_bytes_per_cta": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "shared_bytes_reserved_per_cta": "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "threads_per_sm": "MAX_THREADS_PER_MULTIPROCESSOR",
    "ctas_per_sm": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "boost_mhz": "CLOCK_RATE",
}


class SiliconDevice(BenchmarkDevice):
    """A GPU of this machine. ordinal: its number among them, as the driver counts (CUDA_VISIBLE_DEVICES).

    Cycles of a launch are its time between two events (`HardwareGPU`) times the core clock, measured by the
    kernel before it. A launch is never repeated for timing: the contents of the caches affect a benchmark's
    result, so whole benchmarks are repeated instead.

    Raises DriverError if there is no such GPU.
    """

    simulated = False

    def __init__(self, ordinal: int = 0, driver: Driver | None = None) -> None:
        try:
            hardware = HardwareGPU(ordinal, driver=driver)
        except DriverError as error:
            raise DriverError(
                f"{error}; this needs a real GPU; --gpu NAME runs the same in the simulator",
                error.status,
            ) from None
        super().__init__(hardware)
        self._hardware = hardware
        device = hardware.device
        major, minor = device.compute_capability
        self.name = device.name
        self.sm_version = 10 * major + minor
        self.sms = device.attribute("MULTIPROCESSOR_COUNT")
        self.l2_bytes = device.attribute("L2_CACHE_SIZE")
        self.shared_bytes_per_sm = device.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")
        self.shared_bytes_per_cta = device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.threads_per_sm = device.attribute("MAX_THREADS_PER_MULTIPROCESSOR")
        self.core_mhz = hardware.measure_clock()
        self._evictor = 0

    @property
    def provenance(self) -> dict[str, Any]:
        """Driver and device as they report themselves, the core clock, and the overhead of a launch: the time
        of an empty kernel, and from one launch to the next. Clocks in MHz, times in ns."""
        hardware = self._hardware
        said = {name: hardware.device.attribute(attribute) for name, attribute in _CALLED.items()}
        return {
            "driver_cuda": hardware.device.driver.version,
            "ordinal": hardware.device.ordinal,
            "memory_bytes": hardware.device.memory_bytes,
            **{name: value / 1e3 if name.endswith("_mhz") else value for name, value in said.items()},
            "core_mhz_at_end": hardware.measure_clock(),
            "empty_kernel_ns": hardware.empty_ns,
            "launch_ns": hardware.launch_ns,
        }

    def close(self) -> None:
        """Releases the GPU."""
        self._hardware.close()

    def kernel(
        self, source: str, name: str, defines: Mapping[str, str | int] | None = None
    ) -> BenchmarkKernel:
        kernel, hardware = self.compiled(source, name, defines), self._hardware

        def launch(grid: int, block: int, *arguments: Any, shared: int = 0, cluster: int = 1) -> float:
            kernel[grid, block, shared, None, cluster](*arguments)
            return hardware.times[-1].cycles

        return launch

    def period(self, source: str, name: str, launches: int) -> float:
        kernel = device_kernel(self.compiled(source, name).module, name)
        nanoseconds, mhz = self._hardware.period(lambda: kernel.launch((1, 1, 1), (32, 1, 1)), launches)
        return nanoseconds * mhz / 1e3

    def copied(self, bytes_: int) -> float:
        array, values = super().zeros(bytes_, np.uint8), np.zeros(bytes_, np.uint8)
        self._hardware.synchronize()
        start = perf_counter()
        self._hardware.write(array.address, values)
        self._hardware.synchronize()
        elapsed = perf_counter() - start
        array.free()
        return 1e9 * elapsed

    def zeros(self, count: int, dtype: npt.DTypeLike) -> DeviceArray:
        """Zeros in device memory that are not in the L2, as in the simulator: twice the L2's size is written
        after them."""
        array = super().zeros(count, dtype)
        device = self._hardware.device
        if not self._evictor:
            self._evictor = device.allocate(2 * self.l2_bytes)
        device.fill(self._evictor, 0, 2 * self.l2_bytes)
        return array
