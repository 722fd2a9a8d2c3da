"""The functions that `torch._C` of a CUDA build of PyTorch has, for simulated GPUs.

`torch.cuda` is Python code above them: with them in place it works as it is. A build for the CPU has none of
them, so nothing is replaced; what they do not do raises an error that names the function. For PyTorch 2.13.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import torch

from simt.errors import LaunchError
from simt.run.session import QueuedTransfer
from simt.spec import Spec

from . import gpus
from .imitation import properties

_CUDA_DEVICE = 1
"""c10::DeviceType::CUDA."""
VERSION = "13.0"
"""Of CUDA, as programs ask for it: what PyTorch 2.13 is built with."""


class Properties(SimpleNamespace):
    """`torch.cuda.get_device_properties`."""

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def device_properties(spec: Spec, total_memory: int, index: int) -> Properties:
    """From a specification."""
    found = vars(properties(spec))
    return Properties(
        **found,
        total_memory=total_memory,
        L2_cache_size=spec.l2_lines * spec.l2.slice.line_bytes,
        shared_memory_per_block=48 << 10,
        shared_memory_per_multiprocessor=spec.shared_memory.bytes,
        is_integrated=0,
        is_multi_gpu_board=0,
        pci_bus_id=index,
        pci_device_id=0,
        pci_domain_id=0,
        uuid=f"{index:08x}-0000-0000-0000-000000000000",
        clock_rate=round(spec.clock.core_mhz * 1000),
        memory_bus_width=0,
    )


def _device(index: int) -> torch.device:
    """A device by the name that they have in this process."""
    return torch.device(torch._C._accelerator_getAccelerator().type, index)


class StreamBase(torch._C.Stream):  # type: ignore[misc]
    """`torch._C._CudaStreamBase`."""

    priority: int

    def __new__(
        cls,
        priority: int = 0,
        stream_id: int = 0,
        device_index: int = 0,
        device_type: int = 0,
        stream_ptr: int = 0,
        **others: Any,
    ) -> StreamBase:
        if not device_type:
            device_index = gpus.current()
            stream_id = gpus.gpu_of(device_index).new_stream()
        self: StreamBase = super().__new__(
            cls, stream_id=stream_ptr or stream_id, device_index=device_index, device_type=_CUDA_DEVICE
        )
        self.priority = priority
        return self

    def __init__(self, *arguments: Any, **others: Any) -> None:
        pass

    def __enter__(self) -> StreamBase:
        self._outside = [*getattr(self, "_outside", []), (gpus.current(), self._gpu.stream)]
        _set_stream(self.stream_id, self.device_index, _CUDA_DEVICE)
        return self

    def __exit__(self, *raised: object) -> None:
        device, stream = self._outside.pop()
        self._gpu.stream = stream
        gpus.set_current(device)

    @property
    def cuda_stream(self) -> int:
        return int(self.stream_id)

    @property
    def device(self) -> torch.device:
        return _device(self.device_index)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -5

    def is_capturing(self) -> bool:
        return self._gpu.capture is not None

    def query(self) -> bool:
        stream = self._gpu.stream_of(self.stream_id)
        return stream.query() if stream is not None else not self._gpu.gpu.queued

    def synchronize(self) -> None:
        self._gpu.synchronize()

    @property
    def _gpu(self) -> gpus.SimulatedGpu:
        return gpus.gpu_of(self.device_index)

    def __eq__(self, other: object) -> bool:
        mine = self.device_index, self.stream_id
        return mine == (getattr(other, "device_index", None), getattr(other, "stream_id", None))

    def __hash__(self) -> int:
        return hash((self.device_index, self.stream_id))


class EventBase:
    """`torch._C._CudaEventBase`."""

    def __new__(cls, *arguments: Any, **settings: Any) -> EventBase:
        return super().__new__(cls)

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **others: Any
    ) -> None:
        if interprocess:
            raise NotImplementedError("simt.torch: events are not shared between processes")
        self.enable_timing = enable_timing
        self._gpu: gpus.SimulatedGpu | None = None
        self._number: int | None = None
        self._point: QueuedTransfer | None = None
        self.device = _device(gpus.current())

    @property
    def cuda_event(self) -> int:
        return id(self)

    def record(self, stream: Any = None) -> None:
        found = gpus.gpu_of(stream.device_index if stream is not None else None)
        self.device = _device(found.index)
        found.capture_or_do(self._record, found, stream.stream_id if stream is not None else found.stream)

    def _record(self, found: gpus.SimulatedGpu, handle: int) -> None:
        self._gpu, self._number, self._point = found, *found.point(handle)

    def wait(self, stream: Any = None) -> None:
        found = gpus.gpu_of(stream.device_index if stream is not None else None)
        found.capture_or_do(self._wait, found, stream.stream_id if stream is not None else found.stream)

    def _wait(self, found: gpus.SimulatedGpu, handle: int) -> None:
        if self._gpu is not found:
            self.synchronize()
        elif self._number is not None:
            found.wait(handle, self._number)

    def query(self) -> bool:
        if self._gpu is None or not self._gpu.gpu.queued:
            return True
        self._gpu.synchronize()
        return False

    def synchronize(self) -> None:
        if self._gpu is not None:
            self._gpu.synchronize()

    def elapsed_time(self, end: EventBase) -> float:
        if self._gpu is None or end._gpu is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self._gpu is not end._gpu:
            raise ValueError("events of different devices have no common time")
        self._gpu.synchronize()
        first, last = (0 if e._point is None else e._point.end_cycle or 0 for e in (self, end))
        return (last - first) / self._gpu.gpu.spec.clock.core_mhz / 1e3

    def ipc_handle(self) -> bytes:
        raise NotImplementedError("simt.torch: events are not shared between processes")


class _OfAccelerator(type):
    """The class of `torch.Stream` and `torch.Event`, which make streams and events of the accelerator."""

    known: tuple[type, ...]

    def __call__(cls, device: Any = None, *arguments: Any, **settings: Any) -> Any:
        settings.pop("stream_id", None)
        made = getattr(torch.cuda, cls.__name__)
        if cls.__name__ == "Stream":
            return made(device, *arguments, **settings)
        return made(*arguments, **settings)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.known)

    def __subclasscheck__(cls, found: type) -> bool:
        return issubclass(found, cls.known)


class AnyStream(metaclass=_OfAccelerator):
    """`torch.Stream`."""

    known = (torch._C.Stream,)


class AnyEvent(metaclass=_OfAccelerator):
    """`torch.Event`."""

    known = (torch._C.Event, EventBase)


AnyStream.__name__, AnyEvent.__name__ = "Stream", "Event"


class Graph:
    """`torch._C._CUDAGraph`: the launches and copies that a captured program makes, in order."""

    def __new__(cls, keep_graph: bool = False) -> Graph:
        return super().__new__(cls)

    def __init__(self, keep_graph: bool = False) -> None:
        self._work: list[tuple[Any, ...]] = []
        self._memory: list[gpus.Block] = []
        self._gpu: gpus.SimulatedGpu | None = None
        self._pool: Any = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        self._gpu = found = gpus.gpu_of()
        if found.capture is not None:
            raise RuntimeError("a graph is being captured already")
        self._stream = found.stream_of(found.stream)
        self._pool = pool or (0, id(self))
        found.capture, found.captured = [], self._memory

    def capture_end(self) -> None:
        assert self._gpu is not None and self._gpu.capture is not None
        self._work, self._gpu.capture, self._gpu.captured = self._gpu.capture, None, None

    def instantiate(self) -> None:
        """There is nothing to prepare."""

    def replay(self) -> None:
        if self._gpu is None:
            raise RuntimeError("called CUDAGraph::replay without a preceding successful capture.")
        found = self._gpu
        stream = found.stream_of(found.stream)
        for act, *arguments in self._work:
            if act == found._launch and arguments[0].stream is self._stream:
                arguments[0] = replace(arguments[0], stream=stream)
            act(*arguments)

    def reset(self) -> None:
        self._work, self._memory = [], []

    def pool(self) -> Any:
        return self._pool

    def enable_debug_mode(self) -> None:
        """Graphs are always kept."""

    def debug_dump(self, path: str) -> None:
        raise NotImplementedError("simt.torch: CUDAGraph.debug_dump")

    def raw_cuda_graph(self) -> int:
        raise NotImplementedError("simt.torch: CUDAGraph.raw_cuda_graph: there is no graph of the driver")


class _Error(int):
    success = 0


class Runtime:
    """`torch.cuda.cudart()`."""

    cudaError = _Error

    @staticmethod
    def cudaGetErrorString(error: int) -> str:
        return f"CUDA error {int(error)}"

    @staticmethod
    def cudaMemGetInfo(device: int) -> tuple[int, int]:
        found = gpus.gpu_of(device)
        return found.capacity - found.gpu.memory.used, found.capacity

    @staticmethod
    def cudaProfilerStart() -> int:
        for found in gpus.gpus():
            found.gpu.open_range("cudaProfilerApi")
        return 0

    @staticmethod
    def cudaProfilerStop() -> int:
        for found in gpus.gpus():
            found.gpu.close_range("cudaProfilerApi")
        return 0

    @staticmethod
    def cudaHostRegister(pointer: int, size: int, flags: int) -> int:
        return 0

    @staticmethod
    def cudaHostUnregister(pointer: int) -> int:
        return 0


def _init() -> None:
    """As the C++ does, sets what `torch.cuda` expects to find in itself."""
    torch.cuda.default_generators = tuple(torch.Generator() for _ in range(gpus.count()))
    torch.cuda._get_device_properties = _properties


def _properties(device: int) -> Properties:
    found = gpus.gpu_of(device)
    return device_properties(found.gpu.spec, found.capacity, device)


def _exchange_device(device: int) -> int:
    before = gpus.current()
    if device >= 0:
        gpus.set_current(device)
    return before


def _maybe_exchange_device(device: int) -> int:
    """Another function for the same: PyTorch's compiler tells functions apart."""
    return _exchange_device(device)


def _set_stream(stream_id: int, device_index: int, device_type: int) -> None:
    gpus.set_current(device_index)
    gpus.gpu_of(device_index).stream = stream_id


def _statistics(device: int) -> dict[str, Any]:
    found = gpus.gpu_of(device)
    used = found.used

    def every(current: int, peak: int) -> dict[str, dict[str, int]]:
        row = {"current": current, "peak": peak, "allocated": peak, "freed": peak - current}
        return {pool: dict(row) for pool in ("all", "large_pool", "small_pool")}

    return {
        "allocated_bytes": every(used, found.peak),
        "active_bytes": every(used, found.peak),
        "requested_bytes": every(used, found.peak),
        "reserved_bytes": every(found.reserved, found.peak_reserved),
        "inactive_split_bytes": every(0, 0),
        "inactive_split": every(0, 0),
        "allocation": every(found.blocks, found.allocations),
        "active": every(found.blocks, found.allocations),
        "segment": every(found.segments, found.segments),
        "oversize_allocations": {"current": 0, "peak": 0, "allocated": 0, "freed": 0},
        "oversize_segments": {"current": 0, "peak": 0, "allocated": 0, "freed": 0},
        "num_alloc_retries": 0,
        "num_ooms": 0,
    }


def _set_fraction(fraction: float, device: int) -> None:
    gpus.gpu_of(device).fraction = fraction


def _reset_peak(device: int) -> None:
    found = gpus.gpu_of(device)
    found.peak, found.peak_reserved = found.used, found.reserved


def _empty_cache() -> None:
    for found in gpus.made():
        found.empty_cache()


def _synchronize() -> None:
    gpus.gpu_of().synchronize()


def _sleep(cycles: int) -> None:
    raise NotImplementedError("simt.torch: torch.cuda._sleep")


class Nvtx:
    """`torch._C._nvtx`: ranges of the program on the current device, which `capture_range` chooses from."""

    _open: ClassVar[list[tuple[gpus.SimulatedGpu, str]]] = []
    _started: ClassVar[dict[int, tuple[gpus.SimulatedGpu, str]]] = {}
    _numbers = itertools.count(1)

    @classmethod
    def rangePushA(cls, message: str) -> int:
        cls._open.append(cls._begin(message))
        return len(cls._open) - 1

    @classmethod
    def rangePop(cls) -> int:
        if cls._open:
            cls._end(*cls._open.pop())
        return len(cls._open)

    @classmethod
    def rangeStartA(cls, message: str) -> int:
        number = next(cls._numbers)
        cls._started[number] = cls._begin(message)
        return number

    @classmethod
    def rangeEnd(cls, number: int) -> None:
        if number in cls._started:
            cls._end(*cls._started.pop(number))

    @staticmethod
    def markA(message: str) -> None:
        """A point in time of the host, of which there is none here."""

    @classmethod
    def deviceRangeStart(cls, message: str, stream: int) -> int:
        return cls.rangeStartA(message)

    @classmethod
    def deviceRangeEnd(cls, number: int, stream: int) -> None:
        cls.rangeEnd(number)

    @staticmethod
    def _begin(message: str) -> tuple[gpus.SimulatedGpu, str]:
        found = gpus.gpu_of()
        found.gpu.open_range(message)
        return found, message

    @staticmethod
    def _end(found: gpus.SimulatedGpu, message: str) -> None:
        found.gpu.close_range(message)


def _broadcast(tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
    return [tensor.to(torch.device("cuda", device)) for device in devices]


def _broadcast_all(
    tensors: Sequence[torch.Tensor], devices: Sequence[int], buffer_size: int
) -> list[list[torch.Tensor]]:
    return [[tensor.to(torch.device("cuda", device)) for tensor in tensors] for device in devices]


def _scatter(
    tensor: torch.Tensor, devices: Sequence[int], sizes: Sequence[int] | None, dim: int, streams: Any
) -> list[torch.Tensor]:
    chunks = tensor.split(list(sizes), dim) if sizes is not None else tensor.chunk(len(devices), dim)
    return [chunk.to(torch.device("cuda", device)) for chunk, device in zip(chunks, devices, strict=False)]


def _gather(tensors: Sequence[torch.Tensor], dim: int, destination: int | None) -> torch.Tensor:
    index = gpus.current() if destination is None else destination
    to = torch.device("cuda", index) if index >= 0 else torch.device("cpu")
    return torch.cat([tensor.to(to) for tensor in tensors], dim)


_FUNCTIONS: dict[str, Any] = {
    "_cuda_init": _init,
    "_cuda_getDeviceCount": gpus.count,
    "_cuda_getDevice": gpus.current,
    "_cuda_setDevice": gpus.set_current,
    "_cuda_exchangeDevice": _exchange_device,
    "_cuda_maybeExchangeDevice": _maybe_exchange_device,
    "_cuda_getCurrentStream": lambda device: (gpus.gpu_of(device).stream, device, _CUDA_DEVICE),
    "_cuda_getCurrentRawStream": lambda device: gpus.gpu_of(device).stream,
    "_cuda_getDefaultStream": lambda device: (0, device, _CUDA_DEVICE),
    "_cuda_getStreamFromExternal": lambda pointer, device: (pointer, device, _CUDA_DEVICE),
    "_cuda_setStream": _set_stream,
    "_cuda_synchronize": _synchronize,
    "_cuda_isInBadFork": lambda: False,
    "_cuda_getArchFlags": lambda: None,
    "_cuda_canDeviceAccessPeer": lambda device, peer: False,
    "_cuda_ipc_collect": lambda: None,
    "_cuda_getDriverVersion": lambda: 13000,
    "_cuda_getCompiledVersion": lambda: 13000,
    "_cuda_set_sync_debug_mode": lambda mode: None,
    "_cuda_get_sync_debug_mode": lambda: 0,
    "_cuda_emptyCache": _empty_cache,
    "_cuda_memoryStats": _statistics,
    "_cuda_resetPeakMemoryStats": _reset_peak,
    "_cuda_resetAccumulatedMemoryStats": _reset_peak,
    "_cuda_getAllocatorBackend": lambda: "native",
    "_cuda_isCurrentStreamCapturing": lambda: gpus.gpu_of().capture is not None,
    "_cuda_hasPrimaryContext": lambda device: any(found.index == device for found in gpus.made()),
    "_cuda_clearCublasWorkspaces": lambda: None,
    "_cuda_lock_mutex": lambda: None,
    "_cuda_unlock_mutex": lambda: None,
    "_cuda_sleep": _sleep,
    "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
    "_cuda_setMemoryFraction": _set_fraction,
    "_cuda_getMemoryFraction": lambda device: gpus.gpu_of(device).fraction,
    "_host_emptyCache": lambda: None,
    "_broadcast": _broadcast,
    "_broadcast_coalesced": _broadcast_all,
    "_scatter": _scatter,
    "_gather": _gather,
    "_graph_pool_handle": lambda: (0, 1),
}


def install() -> None:
    """Gives `torch._C` the functions, and `torch.cuda` the classes that are made from them.

    Raises LaunchError where PyTorch was built with CUDA.
    """
    if hasattr(torch._C, "_cuda_getDeviceCount"):
        if torch._C._cuda_getDeviceCount is gpus.count:
            return
        raise LaunchError("this PyTorch is built with CUDA; simt.torch needs the build for the CPU")
    names = torch._C.__dict__
    names.update(_FUNCTIONS)
    names.update(
        _CudaStreamBase=StreamBase,
        _CudaEventBase=EventBase,
        _CUDAGraph=Graph,
        _CudaDeviceProperties=Properties,
        _cuda_CUDAAllocator_AllocatorState=type("AllocatorState", (), {}),
        _has_cuda=True,
    )
    torch.version.cuda = VERSION
    cuda = torch.cuda
    streams, graphs = importlib.reload(cuda.streams), importlib.reload(cuda.graphs)
    for name in ("Event", "ExternalStream", "Stream"):
        setattr(cuda, name, getattr(streams, name))
    for name in (
        "CUDAGraph",
        "graph",
        "graph_pool_handle",
        "is_current_stream_capturing",
        "make_graphed_callables",
    ):
        setattr(cuda, name, getattr(graphs, name))
    torch.Stream, torch.Event = AnyStream, AnyEvent
    cuda._cudart = Runtime
    cuda.nvtx._nvtx = names["_nvtx"] = Nvtx
    cuda._exchange_device = _exchange_device
    cuda._maybe_exchange_device = _maybe_exchange_device
    cuda._CudaDeviceProperties = Properties
