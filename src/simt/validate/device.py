"""The devices that microbenchmarks run on: simulated GPUs here, real ones in `silicon.py`, with the same
interface.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from simt.errors import SimtError
from simt.gpu import GPU
from simt.gpu import Kernel as LaunchableKernel
from simt.gpu.array import DeviceArray
from simt.spec import Spec

_INSTALLED = Path(__file__).parents[1] / "microbenchmarks"
SOURCES = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3] / "microbenchmarks"


class BenchmarkKernel(Protocol):
    """A kernel of a microbenchmark."""

    def __call__(self, grid: int, block: int, *arguments: Any, shared: int = 0, cluster: int = 1) -> float:
        """Launches the kernel and waits; returns core cycles from its first CTA's start to its end.

        Arguments are device arrays and NumPy scalars. shared: bytes of dynamic shared memory.
        """


class Device(Protocol):
    """A GPU as microbenchmarks see it."""

    name: str
    sm_version: int
    sms: int
    core_mhz: float
    l2_bytes: int
    shared_bytes_per_sm: int
    shared_bytes_per_cta: int
    threads_per_sm: int
    simulated: bool

    @property
    def provenance(self) -> dict[str, Any]:
        """Additional entries of a record about the device."""

    def kernel(
        self, source: str, name: str, defines: Mapping[str, str | int] | None = None
    ) -> BenchmarkKernel:
        """A kernel of a file in `microbenchmarks/`, compiled with these macros."""

    def period(self, source: str, name: str, launches: int) -> float:
        """Core cycles from one launch to the next, for a kernel of one warp without arguments."""

    def array(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Any:
        """A copy of host values in device memory."""

    def zeros(self, count: int, dtype: npt.DTypeLike) -> Any: ...

    def numpy(self, array: Any) -> npt.NDArray[Any]:
        """A copy of a device array on the host."""

    def copied(self, bytes_: int) -> float:
        """Time, ns, of a host-to-device copy of this many bytes. Raises SimtError on a simulated GPU, where
        copies take no time."""

    def free(self, array: Any) -> None: ...


class BenchmarkDevice:
    """Base of both kinds: a GPU that compiles programs, holds arrays and launches kernels."""

    def __init__(self, gpu: GPU) -> None:
        self._gpu = gpu
        self._kernels: dict[tuple[str, str, str], LaunchableKernel] = {}

    def compiled(
        self, source: str, name: str, defines: Mapping[str, str | int] | None = None
    ) -> LaunchableKernel:
        """A kernel of a file in `microbenchmarks/`, compiled once."""
        key = (source, name, repr(defines))
        if key not in self._kernels:
            text = (SOURCES / source).read_text(encoding="utf-8")
            module = self._gpu.compile(text, name=source, defines=defines, include=[SOURCES])
            self._kernels[key] = module[name]
        return self._kernels[key]

    def array(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        return self._gpu.array(values, dtype)

    def zeros(self, count: int, dtype: npt.DTypeLike) -> DeviceArray:
        return self._gpu.zeros(count, dtype)

    def numpy(self, array: DeviceArray) -> npt.NDArray[Any]:
        return np.asarray(array.numpy())

    def free(self, array: DeviceArray) -> None:
        array.free()


class SimulatedDevice(BenchmarkDevice):
    """A simulated GPU. gpu: a specification, its name or file; set: values to override."""

    simulated = True

    def __init__(
        self, gpu: str | os.PathLike[str] | Spec, set: Mapping[str, Any] | None = None, threads: int = 1
    ) -> None:
        simulated = GPU(gpu, set=set, threads=threads)
        super().__init__(simulated)
        self.spec: Spec = simulated.spec
        spec = self.spec
        self.name = spec.name
        self.sm_version = spec.sm_version
        self.sms = spec.sm.count
        self.core_mhz = spec.clock.core_mhz
        self.l2_bytes = spec.l2.slice.bytes * spec.address_map.slices
        self.shared_bytes_per_sm = spec.shared_memory.bytes
        self.shared_bytes_per_cta = spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta
        self.threads_per_sm = spec.sm.max_warps * spec.sm.warp_size
        self.provenance: dict[str, Any] = {"spec_hash": spec.hash, "overrides": dict(set or {})}

    def kernel(
        self, source: str, name: str, defines: Mapping[str, str | int] | None = None
    ) -> BenchmarkKernel:
        kernel = self.compiled(source, name, defines)

        def launch(grid: int, block: int, *arguments: Any, shared: int = 0, cluster: int = 1) -> float:
            done = kernel[grid, block, shared, None, cluster](*arguments)
            assert done is not None
            return float(done.cycles - done.launch_latency)

        return launch

    def copied(self, bytes_: int) -> float:
        raise SimtError("copies from the host take no time in the simulator; needs a real GPU")

    def period(self, source: str, name: str, launches: int) -> float:
        kernel = self.compiled(source, name)
        done = [kernel[1, 32]() for _ in range(launches)]
        assert done[0] is not None and done[-1] is not None
        return (done[-1].start_cycle - done[0].start_cycle) / (launches - 1)
