"""Triton's driver for simulated GPUs: `kernel[grid](tensors)` runs there, as it is.

Triton compiles for CUDA up to PTX, which the simulator executes; the step to machine code is left out.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
import triton
from triton import knobs
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.backends.driver import GPUDriver
from triton.runtime import _allocation

from simt.cuda.ptx_module import PtxModule
from simt.cuda.triton import scalar
from simt.errors import LaunchError
from simt.gpu.module import Kernel, Launcher, Module
from simt.gpu.triton_kernel import descriptor_arguments

from . import gpus

PACKED = {
    **{"i1": "b", "u1": "B", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I"},
    **{"i64": "q", "u64": "Q", "fp32": "f", "f32": "f", "fp64": "d"},
}
"""Formats of `struct`; other types go through `simt.cuda.triton.scalar`."""


_modules: dict[tuple[int, str], Module] = {}


def loaded(text: str, name: str, device: int) -> Module:
    """PTX in the memory of a device; the same text is loaded once."""
    found = _modules.get((device, text))
    if found is None:
        found = _modules[device, text] = Module(gpus.gpu_of(device).gpu, PtxModule.from_text(text, name))
    return found


class Utilities:
    """Triton's `driver.active.utils`."""

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[Any, Kernel, int, int, int]:
        """Loads PTX, which stands where Triton has machine code."""
        text = kernel.decode() if isinstance(kernel, bytes) else kernel
        module = loaded(text, name, device)
        found = module[name]
        return module, found, found.facts.registers, 0, 1024

    def unload_module(self, module: Any) -> None:
        """Modules are kept: another kernel may have the same PTX."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        spec = gpus.gpu_of(device).gpu.spec
        return {
            "max_shared_mem": spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta,
            "max_num_regs": spec.sm.register_file.registers,
            "multiprocessor_count": spec.sm.count,
            "warpSize": spec.sm.warp_size,
            "sm_clock_rate": round(spec.clock.core_mhz * 1000),
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    def set_printf_fifo_size(self, size: int) -> None:
        """What kernels print is not limited."""

    def is_stream_capturing(self, stream: int) -> bool:
        return gpus.gpu_of().capture is not None

    def cuOccupancyMaxActiveClusters(self, *arguments: Any) -> int:
        raise NotImplementedError("simt.torch: Triton's cuOccupancyMaxActiveClusters")

    def fill_tma_descriptor_tiled(self, *arguments: Any) -> Any:
        raise NotImplementedError("simt.torch: tensor maps are made by the launcher")


class KernelLauncher:
    """Launches one compiled kernel: Triton's `driver.active.launcher_cls`."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._types = tuple(source.signature.values())
        self._maps = tuple(getattr(metadata, "tensordesc_meta", None) or ())
        self._threads = 32 * metadata.num_warps
        self._shared = metadata.shared
        self._ctas = getattr(metadata, "num_ctas", 1)
        self._cooperative = bool(getattr(metadata, "launch_cooperative_grid", False))
        self._scratch = [
            (getattr(metadata, f"{kind}_size", 0), getattr(metadata, f"{kind}_align", 1))
            for kind in ("global_scratch", "profile_scratch")
        ]
        self._simple = not any(_is_complex(kind) for kind in self._types)
        self._launchers: dict[tuple[Any, ...], Launcher] = {}
        self._formats: struct.Struct | None = None

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        function: Kernel,
        kernel_metadata: Any,
        launch_metadata: Any,
        enter: Any,
        leave: Any,
        *arguments: Any,
    ) -> None:
        if x * y * z == 0:
            return
        if enter is not None:
            enter(launch_metadata)
        found = gpus.gpu_of(_ordinal(function))
        values = list(self._values(arguments))
        kinds = [kind for kind, _ in values]
        numbers = [value for _, value in values]
        keeps = [
            self._scratch_memory(size, align, x * y * z * self._ctas, stream) for size, align in self._scratch
        ]
        for kept in keeps[: max(0, len(function.parameters) - len(values))]:
            kinds.append("*i8")
            numbers.append(kept.data_ptr() if kept is not None else 0)
        block = self._packed(function, kinds, numbers)
        key = function.module, function.name, x, y, z, stream
        launcher = self._launchers.get(key)
        if launcher is None:
            launcher = Launcher(
                function,
                (x * self._ctas, y, z),
                (self._threads, 1, 1),
                self._shared,
                found.stream_of(stream),
                (self._ctas, 1, 1),
            )
            if self._cooperative:
                launcher = launcher.cooperatively()
            if len(self._launchers) > 256:
                self._launchers.clear()
            self._launchers[key] = launcher
        scratch = keeps if any(kept is not None for kept in keeps) else None
        found.launch(launcher, block, scratch, self._layout(function, kinds))
        if leave is not None:
            leave(launch_metadata)

    def _scratch_memory(self, size: int, align: int, ctas: int, stream: int) -> Any:
        if not size:
            return None
        return _allocation._allocator.get()(size * ctas, align, stream)

    def _values(self, arguments: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        if self._simple:
            for kind, value in zip(self._types, arguments, strict=False):
                if kind != "constexpr":
                    yield kind, _number(kind, value)
            return
        maps = iter(self._maps)
        for kind, value in zip(self._types, arguments, strict=False):
            yield from self._flat(kind, value, maps)

    def _flat(self, kind: Any, value: Any, maps: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(kind, tuple):
            for inner, item in zip(kind, value, strict=True):
                yield from self._flat(inner, item, maps)
        elif kind.startswith("tensordesc"):
            layout = next(maps) if self._maps else None
            rank = len(value.shape)
            found = descriptor_arguments(value, value.base.data_ptr(), layout, "of Triton")
            first = ["map"] if layout is not None else ["*", *["i64"] * (2 * rank), "i1", "i1"]
            yield from zip([*first, *["i32"] * rank, *["i64"] * rank], found, strict=True)
        elif kind != "constexpr":
            yield kind, _number(kind, value)

    @staticmethod
    def _layout(function: Kernel, kinds: list[str]) -> list[tuple[int, str]] | None:
        """Where in the parameter block arguments are, and their types; None if there are descriptors."""
        if "map" in kinds:
            return None
        return [(p.offset, kind) for p, kind in zip(function.parameters, kinds, strict=True)]

    def _packed(self, function: Kernel, kinds: list[str], numbers: list[Any]) -> bytes:
        parameters = function.parameters
        if len(parameters) != len(numbers):
            raise LaunchError(
                f"kernel `{function.name}` takes {len(parameters)} parameters, its arguments make "
                f"{len(numbers)}"
            )
        block = bytearray(max((p.offset + p.bytes for p in parameters), default=0))
        for parameter, kind, value in zip(parameters, kinds, numbers, strict=True):
            if kind[0] == "*":
                struct.pack_into("<Q", block, parameter.offset, value)
            elif kind == "map":
                raw = value.tobytes()
                block[parameter.offset : parameter.offset + len(raw)] = raw
            elif kind in PACKED:
                struct.pack_into("<" + PACKED[kind], block, parameter.offset, value)
            else:
                raw = scalar(value, kind).tobytes()
                block[parameter.offset : parameter.offset + len(raw)] = raw
        return bytes(block)


def _is_complex(kind: Any) -> bool:
    return isinstance(kind, tuple) or kind.startswith("tensordesc")


def _number(kind: str, value: Any) -> Any:
    """What is passed for an argument. Raises ValueError for a tensor that is not on a device."""
    if kind[0] != "*":
        return value
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.numel():
        raise ValueError(
            "Pointer argument cannot be accessed from Triton (cpu tensor?): move the tensor to the GPU first"
        )
    return value.data_ptr()


def _ordinal(function: Kernel) -> int:
    gpu = function.module.gpu
    return next(found.index for found in gpus.made() if found.gpu is gpu)


class SimulatedDriver(GPUDriver):  # type: ignore[misc]
    """Triton's driver: `triton.runtime.driver.active`."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = Utilities()
        self.launcher_cls = KernelLauncher

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        major, minor = torch.cuda.get_device_capability()
        return GPUTarget("cuda", 10 * major + minor, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", gpus.current())

    def get_device_interface(self) -> Any:
        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_benchmarker(self) -> Callable[..., Any]:
        return simulated_bench

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """As large as the L2: what evicts all of it."""
        spec = gpus.gpu_of().gpu.spec
        return torch.empty(2 * spec.l2_lines * spec.l2.slice.line_bytes // 4, dtype=torch.int, device="cuda")

    def clear_cache(self, cache: torch.Tensor) -> None:
        cache.zero_()


class NoTimeWarning(UserWarning):
    """Something was to be measured on a GPU without timing."""


_warned: set[gpus.SimulatedGpu] = set()
"""GPUs without timing on which something was to be measured."""


def simulated_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[torch.Tensor] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **others: Any,
) -> Any:
    """`triton.testing.do_bench` in simulated time, in milliseconds: to warm up, then with an empty L2.

    The same work always takes the same time, so repetitions (`warmup`, `rep`) would add nothing.
    On a GPU without timing nothing is executed and the time is not a number; a warning says so once.
    """
    found = gpus.gpu_of()
    if found.gpu.functional:
        if found not in _warned:
            _warned.add(found)
            warnings.warn(
                "times are measured on a GPU without timing: they are nan (simt.torch.use(timed=True))",
                NoTimeWarning,
                stacklevel=2,
            )
        times = [float("nan")]
    else:
        driver = triton.runtime.driver.active
        fn()
        found.synchronize()
        for x in grad_to_none or ():
            x.grad = None
        driver.clear_cache(driver.get_empty_cache_for_benchmark())
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        fn()
        end.record()
        found.synchronize()
        times = [begin.elapsed_time(end)]
    if quantiles is not None:
        measured = times * len(quantiles)
        return measured[0] if len(measured) == 1 else measured
    return times if return_mode == "all" else times[0]


def _stages(*given: Any) -> tuple[str, str] | None:
    """Triton's hook for stages of compilation: PTX is the last one.

    Without arguments it returns the key under which Triton keeps what it has compiled.
    """
    if not given:
        return "simt-ptx", "simt-ptx"
    stages = given[1]
    if "cubin" in stages:
        stages["cubin"] = lambda ptx, metadata: ptx.encode()
    return None


def install() -> None:
    """Makes the simulated GPUs Triton's active driver."""
    knobs.runtime.add_stages_inspection_hook = _stages
    for name, backend in backends.items():
        if name == "nvidia":
            backends[name] = replace(backend, driver=SimulatedDriver)
    triton.runtime.driver.set_active(SimulatedDriver())
