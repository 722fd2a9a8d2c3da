"""The simulated GPUs that PyTorch sees, and their memory as tensors.

A tensor on "cuda:0" or "simt:0" is a plain `torch.Tensor` whose storage lies in a simulated GPU's memory.
That memory is mapped into this process at its own addresses, so `data_ptr()` is at once the address that
kernels get and one that the host can read.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch._C import DispatchKey, DispatchKeySet

from simt import _engine
from simt.errors import LaunchError, SimtError
from simt.gpu import GPU
from simt.gpu.arguments import LaunchArguments
from simt.gpu.module import Launcher
from simt.gpu.stream import Stream
from simt.options import DEFAULT_GPU
from simt.run.session import QueuedTransfer

if TYPE_CHECKING:
    from .recorded import Recorder

FIRST_ADDRESS, ADDRESSES = 16 << 32, 1 << 40
"""Start of device 0's memory, and distance between the memories of devices."""
_MAP_FIXED_NOREPLACE = 0x100000
_GRANULE = 512
"""Bytes that sizes of tensors are rounded up to, as by PyTorch's allocator for CUDA."""
DEVICE_TYPES = {"cpu": 1, "cuda": 2, "simt": 12}
"""DLPack's numbers of device types: kDLCPU, kDLCUDA, and kDLExtDev, which is PyTorch's PrivateUse1."""


_LENT = struct.Struct("<IIQQQQiiiIQQQqq")
"""`DLManagedTensorVersioned` of dlpack.h 1.0, and the only size and stride: major and minor version, context,
deleter, flags, data, type and number of the device, dimensions, type, addresses of sizes and strides, offset.
"""
_WORDS = _LENT.size // 4
_BYTES = 1 | 8 << 8 | 1 << 16
"""Unsigned integers of 8 bits, one lane."""
_MANY = 4096
_CPU = DispatchKeySet(DispatchKey.CPU)
"""Kernels that do not look at elements, and so serve every device."""
_COPIES = {
    "host_to_device": "Memcpy HtoD",
    "device_to_host": "Memcpy DtoH",
    "device": "Memcpy DtoD",
}
"""What profilers call copies, by what they occupy."""
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_INCREMENT = ctypes.cast(ctypes.CDLL(None).sem_post, ctypes.c_void_p).value
"""What PyTorch calls with the address of what it gives back. It comes from any thread, and while errors are
raised, so it must not be Python: a semaphore's count is a number that is incremented, here the version."""


class _Lent:
    """Descriptions of what tensors keep alive, which PyTorch marks when the last tensor is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: list[npt.NDArray[np.uint32]] = []
        self._rows: list[memoryview] = []
        self._used: list[int] = []
        self._keeps: list[list[Any]] = []
        self._places: list[int] = []
        self._free: list[tuple[int, int]] = []

    def lend(self, address: int, nbytes: int, device_type: int, index: int, keeps: Any) -> int:
        """The address of a description."""
        with self._lock:
            if not self._free:
                self._grow()
            table, row = self._free.pop()
            self._keeps[table][row] = keeps
            self._used[table] = max(self._used[table], row + 1)
        place = self._places[table] + row * _LENT.size
        _LENT.pack_into(
            self._rows[table], row * _LENT.size,
            1, 0, 0, _INCREMENT, 0, address, device_type, index, 1, _BYTES,
            place + _LENT.size - 16, place + _LENT.size - 8, 0, nbytes, 1,
        )  # fmt: skip
        return place

    def _grow(self) -> None:
        table = np.zeros(_MANY * _WORDS, np.uint32)
        self._tables.append(table[::_WORDS])
        self._rows.append(table.data.cast("B"))
        self._used.append(0)
        self._keeps.append([None] * _MANY)
        self._places.append(int(table.ctypes.data))
        number = len(self._tables) - 1
        self._free.extend((number, row) for row in reversed(range(_MANY)))

    def sweep(self) -> None:
        """Lets go of what PyTorch has given back."""
        while dropped := self._given_back():
            dropped.clear()  # which may give back more: storages that others share

    def _given_back(self) -> list[Any]:
        dropped = []
        with self._lock:
            for number, table in enumerate(self._tables):
                for row in (table[: self._used[number]] == 2).nonzero()[0].tolist():
                    table[row] = 0
                    dropped.append(self._keeps[number][row])
                    self._keeps[number][row] = None
                    self._free.append((number, row))
        return dropped


_lent = _Lent()


def wrapped(address: int, nbytes: int, type: str, index: int, keeps: Any) -> torch.Tensor:
    """Bytes at an address as a tensor on a device. keeps: what must live as long as its storage."""
    place = _lent.lend(address, nbytes, DEVICE_TYPES[type], index, keeps)
    tensor: torch.Tensor = torch._C._from_dlpack(_capsule(place, b"dltensor_versioned", None))
    return tensor


def view(
    flat: torch.Tensor, dtype: torch.dtype, size: Sequence[int], stride: Sequence[int], offset: int
) -> torch.Tensor:
    """Bytes of a device as a tensor of this type and layout. stride, offset: in elements."""
    if dtype is not torch.uint8:
        flat = torch.ops.aten.view.dtype.redispatch(_CPU, flat, dtype)
    found: torch.Tensor = torch.ops.aten.as_strided.default.redispatch(_CPU, flat, size, stride, offset)
    return found


class Block:
    """Device memory that is given back when nothing refers to it."""

    __slots__ = ("address", "gpu", "nbytes")

    def __init__(self, gpu: SimulatedGpu, address: int, nbytes: int) -> None:
        self.gpu, self.address, self.nbytes = gpu, address, nbytes

    def __del__(self) -> None:
        self.gpu.give_back(self.address, self.nbytes)


class Profiled(NamedTuple):
    """A launch or copy that a profiler has seen.

    time: of the host, in ns, since 1970. launch: its number, 0 for a copy.
    """

    name: str
    time: int
    launch: int
    stream: int
    transfer: QueuedTransfer | None = None


class _Gpu(GPU):
    """A GPU whose addresses no other of this process has."""

    def __init__(self, ordinal: int, options: dict[str, Any]) -> None:
        self._ordinal = ordinal
        super().__init__(**options)

    def _device_memory(self, capacity: int) -> _engine.functional.DeviceMemory:
        first = FIRST_ADDRESS + self._ordinal * ADDRESSES
        return _engine.functional.DeviceMemory(capacity, first, self.exact_bounds)


class SimulatedGpu:
    """One device of PyTorch."""

    def __init__(self, gpu: GPU, index: int) -> None:
        self.gpu, self.index = gpu, index
        self.base, self.capacity = int(gpu.memory.native.base), int(gpu.memory.native.capacity)
        _map(gpu)
        gpu.follows_streams = False  # without timing, events of PyTorch stand for no point
        self._free: OrderedDict[int, list[int]] = OrderedDict()
        self._late: list[tuple[int, int]] = []
        self._lock = threading.RLock()
        self.current = self.peak = self.reserved = self.peak_reserved = self.allocations = 0
        """Bytes in tensors, and held for them; number of allocations."""
        self.blocks = self.segments = 0
        """Number of tensors' blocks, and of those held for them."""
        self.fraction = 1.0
        """How much of the memory PyTorch may take."""
        self.streams: dict[int, Stream] = {}
        """Streams that the program has made, by handle. The default stream has handle 0."""
        self.stream = 0
        """Handle of the current stream."""
        self.capture: list[tuple[Any, ...]] | None = None
        """What a graph that is being captured launches."""
        self.captured: list[Block] | None = None
        """The memory that it takes, which is its own as long as it lasts."""
        self.recorder: Recorder | None = None
        """What follows the operator that is running."""
        self.host_operators: dict[str, int] = {}
        """Operators that were executed on the host, with how often."""
        self.annotation = ""
        self.watchers: set[Callable[[SimulatedGpu, Profiled], None]] = set()
        """What profilers call with each launch and copy."""

    # --- memory

    def storage(self, nbytes: int, type: str) -> torch.Tensor:
        """New bytes on this device. Raises OutOfMemoryError as PyTorch does."""
        return self.tensor(self.block(nbytes), nbytes, type)

    def block(self, nbytes: int) -> Block:
        """New memory on this device, given back when nothing refers to it. Raises OutOfMemoryError."""
        granule = _GRANULE if self.gpu.checking is None else 1  # bounds of tensors are checked
        size = max(granule, -(-nbytes // granule) * granule)
        with self._lock:
            # What PyTorch has given back is looked for when it matters: for memory, or for the peak.
            if not self._free.get(size) or self.current + size > self.peak:
                _lent.sweep()
            kept = self._free.get(size)
            address = kept.pop() if kept else self._allocate(size)
            self.current += size
            self.allocations += 1
            self.blocks += 1
            self.peak = max(self.peak, self.current)
        found = Block(self, address, size)
        if self.captured is not None:
            self.captured.append(found)
        if self.recorder is not None:
            self.recorder.allocated(address, nbytes)
        return found

    def tensor(self, block: Block, nbytes: int, type: str) -> torch.Tensor:
        """A block as bytes."""
        return wrapped(block.address, nbytes, type, self.index, block)

    def _allocate(self, size: int) -> int:
        try:
            address = self._new(size)
        except LaunchError:
            self.empty_cache()
            try:
                address = self._new(size)
            except LaunchError as error:
                raise torch.OutOfMemoryError(
                    f"CUDA out of memory. Tried to allocate {size / 2**20:.2f} MiB. GPU {self.index} has a "
                    f"total capacity of {self.capacity / 2**30:.2f} GiB ({error})"
                ) from None
        if (checking := self.gpu.checking) is not None:  # PyTorch's host writes tensors where they are
            checking.written(address, size)
        self.reserved += size
        self.segments += 1
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return address

    def _new(self, size: int) -> int:
        if self.fraction < 1 and self.reserved + size > self.fraction * self.capacity:
            raise LaunchError(f"{self.fraction:.0%} of it are allowed")
        return self.gpu.memory.allocate(size, "tensor", owned=True)

    def give_back(self, address: int, size: int) -> None:
        """Keeps memory for the next tensor of its size. Queued launches may still use it: then, later."""
        with self._lock:
            self.current -= size
            self.blocks -= 1
            if self.gpu.queued:
                self._late.append((address, size))
            else:
                self._free.setdefault(size, []).append(address)

    def empty_cache(self) -> None:
        """Frees what no tensor uses."""
        _lent.sweep()
        with self._lock:
            for size, addresses in self._free.items():
                for address in addresses:
                    self.gpu.exclusive.drop(address)
                    self.reserved -= size
                    self.segments -= 1
            self._free.clear()

    # --- order

    @property
    def used(self) -> int:
        """Bytes in tensors."""
        _lent.sweep()
        return self.current

    def stream_of(self, handle: int | None) -> Stream | None:
        """The stream of a handle; None for the default stream."""
        if not handle:
            return None
        try:
            return self.streams[handle]
        except KeyError:
            raise LaunchError(f"stream {handle:#x} is not one of {self.gpu.name}") from None

    def new_stream(self) -> int:
        """The handle of a new stream."""
        stream = self.gpu.stream()
        self.streams[stream.number] = stream
        return stream.number

    def point(self, handle: int) -> tuple[int | None, QueuedTransfer | None]:
        """A point in a stream, or after everything for the default stream; None without timing."""
        if self.gpu.functional:
            return None, None
        stream = self.stream_of(handle)
        after = self.gpu.queued if stream is None else stream.pending()
        made = QueuedTransfer(stream=None if stream is None else stream.number, after=after)
        return self.gpu.transfer(made), made

    def wait(self, handle: int, number: int) -> None:
        """Lets what follows in a stream wait for a point."""
        stream, event = self.stream_of(handle), self.gpu.event()
        if stream is not None:
            event.after = (number,)
            stream.wait(event)

    def synchronize(self) -> None:
        """Runs everything that is queued. Raises RuntimeError while a graph is captured."""
        if self.capture is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.not_recorded()
        self.gpu.synchronize()
        if self._late:
            with self._lock:
                for address, size in self._late:
                    self._free.setdefault(size, []).append(address)
                self._late.clear()

    def launch(
        self,
        launcher: Launcher,
        block: bytes,
        keeps: Any = None,
        layout: Sequence[tuple[int, str]] | None = None,
    ) -> None:
        """Launches a kernel in the stream of its launcher, or adds it to the graph that is captured.

        layout: where in its parameter block arguments are, and their types, as far as a record needs them.
        """
        if self.recorder is not None:
            if layout is None or keeps is not None:
                self.recorder.is_whole = False
            else:
                self.recorder.launched(launcher, block, layout)
        if self.capture is not None:
            self.capture.append((self._launch, launcher, block, keeps, self.annotation))
        else:
            self._launch(launcher, block, keeps, self.annotation)

    def _launch(self, launcher: Launcher, block: bytes, keeps: Any, annotation: str) -> None:
        arguments = LaunchArguments(block)
        arguments.keeps.append(keeps)
        if self.watchers:
            number = launcher.stream.number if launcher.stream is not None else 0
            name = launcher.kernel.name
            self._watched(Profiled(name, time.time_ns(), self.gpu.last_launch + 1, number))
        with self.gpu.annotate(annotation):
            self.gpu.launch(launcher, lambda: arguments)

    def transferred(self, link: str, nbytes: int) -> None:
        """Takes the time of a copy; values are copied by who calls this."""
        if self.gpu.functional or not nbytes:
            return
        stream = self.stream_of(self.stream)
        number = stream.number if stream else None
        self.queue(QueuedTransfer(link, nbytes * (2 if link == "device" else 1), number), _COPIES[link], True)

    def queue(self, transfer: QueuedTransfer, name: str, wait: bool) -> None:
        """Queues a copy or a memset. name: for profilers. wait: until it has ended."""
        if self.watchers:
            self._watched(Profiled(name, time.time_ns(), 0, transfer.stream or 0, transfer))
        number = self.gpu.transfer(transfer)
        if wait:
            self.gpu.synchronize(until=[number])

    def not_recorded(self) -> None:
        """Something is done that no record holds."""
        if self.recorder is not None:
            self.recorder.is_whole = False

    def _watched(self, row: Profiled) -> None:
        for watch in self.watchers:
            watch(self, row)

    def capture_or_do(self, act: Any, *arguments: Any) -> None:
        """Does what is no launch, now or whenever the graph that is captured is replayed."""
        self.not_recorded()
        if self.capture is not None:
            self.capture.append((act, *arguments))
        else:
            act(*arguments)


def _map(gpu: GPU) -> None:
    """Maps a GPU's memory at its own addresses. Raises SimtError where they are taken."""
    native = gpu.memory.native
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    base, size = int(native.base), int(native.capacity)
    flags = mmap.MAP_SHARED | _MAP_FIXED_NOREPLACE
    found = libc.mmap(base, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, native.file, 0)
    if found != base:
        raise SimtError(
            f"{gpu.name}: its memory cannot be mapped at {base:#x}: they are taken, by another GPU of "
            "simt.torch.use or by a library"
        )


_gpus: list[SimulatedGpu] = []
_chosen: list[tuple[Any, dict[str, Any]]] = [(DEFAULT_GPU, {})]
"""A GPU or its name, with options, for each device."""
_here = threading.local()


def choose(wanted: Sequence[tuple[Any, dict[str, Any]]]) -> None:
    """Sets the GPUs of this process; they are made when first used. Raises SimtError once they are."""
    if _gpus:
        raise SimtError(
            "the GPUs of PyTorch are in use already: call simt.torch.use before the first tensor on one"
        )
    _chosen[:] = wanted


def chosen() -> list[tuple[Any, dict[str, Any]]]:
    """A GPU or its name, with options, for each device."""
    return _chosen


def count() -> int:
    """Number of devices."""
    return len(_chosen)


def gpus() -> list[SimulatedGpu]:
    """All devices, which this call makes if need be."""
    if not _gpus:
        for index, (name, options) in enumerate(_chosen):
            made = name if isinstance(name, GPU) else _Gpu(index, {"gpu": name, **options})
            _gpus.append(SimulatedGpu(made, index))
    return _gpus


def made() -> list[SimulatedGpu]:
    """The devices that are in use."""
    return _gpus


def current() -> int:
    """This thread's current device."""
    return int(getattr(_here, "index", 0))


def set_current(index: int) -> None:
    """Raises RuntimeError for a device that is not there."""
    if not 0 <= index < count():
        raise RuntimeError(f"CUDA error: invalid device ordinal: {index}, there are {count()}")
    _here.index = index


def gpu_of(device: torch.device | int | None = None) -> SimulatedGpu:
    """A device; None or one without a number: this thread's current one."""
    index = device if isinstance(device, int) else device.index if device is not None else None
    index = current() if index is None or index < 0 else index
    found = gpus()
    if index >= len(found):
        raise RuntimeError(f"CUDA error: invalid device ordinal: {index}, there are {len(found)}")
    return found[index]
