"""Checkpoints of programs: the launches before a point are executed once; when the program is run again,
their effects on memory are restored instead (docs/checkpoints.md)."""

from __future__ import annotations

import ctypes
import hashlib
import os
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from simt import _engine
from simt.checkpoint.folder import PIECE, CheckpointReader, CheckpointWriter, Natural, Span
from simt.checkpoint.memory import Allocated, written
from simt.checkpoint.point import CTAS, Begun, CheckpointPoint, Size, engine_digest
from simt.errors import CheckpointError, ProgramFault
from simt.spec import Spec
from simt.spec.files import validate

if TYPE_CHECKING:
    from simt.gpu import GPU
    from simt.gpu.module import Launcher, Module

KIND = "program"
_CHANGES = "changes.zst"
_AT_ONCE = PIECE - (8 << 10)
"""Bytes of changes at a time, which may be exceeded by one page: they make one piece."""
_OF_HOST = ("cudaHostAlloc", "cudaHostRegister", "cudaMallocManaged", "staged copy")
"""Labels of memory that the program can write itself; it may hold what differs from run to run."""
_ADDR_NO_RANDOMIZE = 0x0040000
"""Of personality(2)."""

Execute = Callable[[_engine.functional.DeviceMemory], None]
"""Executes a launch without timing, on a copy of the GPU's memory."""


class _Launch(msgspec.Struct):
    """A launch before the point. module: digest of its PTX. freed, made: memory of the kernel's malloc.
    changes: of memory."""

    kernel: str
    module: str
    grid: Size
    block: Size
    cluster: Size
    shared: Natural
    cooperative: bool
    parameters: bytes
    printed: bytes = b""
    freed: list[Natural] = []
    made: list[Allocated] = []
    changes: list[Span] = []


_COMPARED = ("kernel", "module", "grid", "block", "cluster", "shared", "cooperative")


class _Digest(msgspec.Struct, array_like=True):
    """An allocation at the point, with a checksum of its contents."""

    address: Natural
    size: Natural
    label: str
    checksum: Natural


class _Inside(Begun):
    """A point within a launch. launch: the part of it that was executed."""

    launch: _Launch


class _State(msgspec.Struct):
    """launches: those before the point. memory: at the beginning of the next launch."""

    spec: dict[str, Any]
    launches: list[_Launch]
    memory: list[_Digest]
    inside: _Inside | None


class CheckpointWritten(Exception):
    """The point was reached, and the checkpoint is complete."""


class Steps(ABC):
    """The launches of a program before the point of a checkpoint.

    launch: number of the launch, from 1, in which the point is, or at whose beginning.
    """

    spec: Spec | None = None
    """What the program is told about its GPU; None: what it is."""

    def __init__(self, path: str | os.PathLike[str], launch: int) -> None:
        self.path = path
        self.launch = launch
        self.active = True
        """Whether the point is still to come."""
        self.count = 0
        """Launches made."""
        self._gpu: weakref.ref[GPU] | None = None
        self._digests: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()

    def begin(self, gpu: GPU, launcher: Launcher, parameters: bytes, printed: bytearray) -> Launcher:
        """A launch begins. At the point, `active` becomes False. Returns what is left to launch.

        Raises CheckpointError if several GPUs launch kernels before the point, CheckpointWritten.
        """
        if not self.active:
            return launcher
        if self._gpu is None:
            self._gpu = weakref.ref(gpu)
        if self._gpu() is not gpu:
            raise CheckpointError(
                f"{self.path}: several devices or processes of the program launch kernels before the point; "
                "a checkpoint can be made of one"
            )
        if self.count + 1 >= self.launch:
            self.active = False
            return self.arrived(gpu, launcher, parameters, printed)
        return launcher

    @abstractmethod
    def arrived(self, gpu: GPU, launcher: Launcher, parameters: bytes, printed: bytearray) -> Launcher:
        """The launch of the point begins. Returns what is left to launch."""

    @abstractmethod
    def run(
        self, gpu: GPU, launcher: Launcher, parameters: bytes, execute: Execute, printed: bytearray
    ) -> None:
        """Makes the effects of a launch on memory, and appends what it printed."""

    @abstractmethod
    def close(self) -> None:
        """The program has ended."""

    def require_arrived(self) -> None:
        """The program has ended normally. Raises CheckpointError if it did so before the point."""
        if self.active:
            raise CheckpointError(
                f"{self.path}: the program ended after {self.count:,} launches, before launch {self.launch:,}"
            )

    def described(self, launcher: Launcher, parameters: bytes) -> _Launch:
        module = launcher.kernel.module
        if module not in self._digests:
            self._digests[module] = hashlib.sha256(module.image.contents).hexdigest()
        return _Launch(
            launcher.kernel.name,
            self._digests[module],
            launcher.grid,
            launcher.block,
            launcher.cluster,
            launcher.shared,
            launcher.cooperative,
            parameters,
        )


class CheckpointRecording(Steps):
    """Executes the launches before the point, and writes the checkpoint there."""

    def __init__(self, path: str | os.PathLike[str], point: CheckpointPoint) -> None:
        super().__init__(path, point.launch)
        self._point = point
        self._writer = CheckpointWriter(path, KIND)
        self._launches: list[_Launch] = []

    def run(
        self, gpu: GPU, launcher: Launcher, parameters: bytes, execute: Execute, printed: bytearray
    ) -> None:
        before = len(printed)
        launch = self._recorded(gpu, launcher, parameters, execute)
        launch.printed = bytes(printed[before:])
        self._launches.append(launch)
        self.count += 1

    def _recorded(self, gpu: GPU, launcher: Launcher, parameters: bytes, execute: Execute) -> _Launch:
        memory, launch = gpu.memory.native, self.described(launcher, parameters)
        # What the launch writes stays in the copy, where it is found without observing any store.
        copy = memory.copy_on_write()
        execute(copy)
        was, now = ({(a[0], a[1]): Allocated(*a) for a in m.allocations() if a[3]} for m in (memory, copy))
        launch.freed = [address for address, size in was if (address, size) not in now]
        launch.made = [a for key, a in now.items() if key not in was]
        _allocate(memory, launch)
        found = _engine.functional.MemoryChanges(memory, copy)
        while changes := found.take(_AT_ONCE):
            launch.changes += self._writer.add(_CHANGES, changes)
        return launch

    def arrived(self, gpu: GPU, launcher: Launcher, parameters: bytes, printed: bytearray) -> Launcher:
        memory = list(_digests(gpu))
        inside = self._inside(gpu, launcher, parameters, printed) if self._point.is_inside else None
        self._writer.finish(_State(gpu.spec.values(), self._launches, memory, inside))
        raise CheckpointWritten

    def _inside(self, gpu: GPU, launcher: Launcher, parameters: bytes, printed: bytearray) -> _Inside:
        """Executes the part of a launch before the point."""
        until, before = self._point.within(launcher), len(printed)
        state = b""

        def execute(copy: _engine.functional.DeviceMemory) -> None:
            nonlocal state
            state = gpu.run_values(launcher, parameters, self.launch, copy, until)

        try:
            launch = self._recorded(gpu, launcher, parameters, execute)
        except ProgramFault as fault:
            raise CheckpointError(
                f"{self.path}: launch {self.launch} cannot reach the point: {fault}"
            ) from fault
        launch.printed = bytes(printed[before:])
        executed = launcher.kernel.module.executed
        return _Inside(until[0], self._writer.add(CTAS, state), engine_digest(), executed, launch)

    def close(self) -> None:
        self._writer.discard()


class Resumption(Steps):
    """Restores the effects of the launches before the point, and checks that the program makes the same."""

    def __init__(self, path: str | os.PathLike[str], functional: bool) -> None:
        self._reader = CheckpointReader(path, KIND)
        self._state = self._reader.state(_State)
        self._functional = functional
        super().__init__(path, len(self._state.launches) + 1)
        self.spec = validate(self._state.spec, {}, f"the specification in {path}")

    def run(
        self, gpu: GPU, launcher: Launcher, parameters: bytes, execute: Execute, printed: bytearray
    ) -> None:
        self.count = number = self.count + 1
        self._make(
            gpu, number, self._state.launches[number - 1], self.described(launcher, parameters), launcher
        )
        printed += self._state.launches[number - 1].printed

    def _make(self, gpu: GPU, number: int, launch: _Launch, now: _Launch, launcher: Launcher) -> None:
        """Makes the effects of a launch on memory, if it is the same now."""
        # Another architecture may have PTX of its own.
        same_arch = self.spec is not None and self.spec.sm_version == gpu.spec.sm_version
        for name in _COMPARED if same_arch else [name for name in _COMPARED if name != "module"]:
            was, found = getattr(launch, name), getattr(now, name)
            if was != found:
                what = "of another program" if name == "module" else f"with {name} {found}, was {was}"
                self._refuse(f"launch {number} is `{now.kernel}` {what}")
        if launch.parameters != now.parameters:
            self._refuse(f"launch {number} is `{now.kernel}` with {_different(launcher, launch, now)}")
        memory = gpu.memory.native
        if not _allocate(memory, launch):
            self._refuse(f"launch {number}, `{now.kernel}`, cannot allocate what it did")
        for span in launch.changes:
            self._change(memory, span)

    def arrived(self, gpu: GPU, launcher: Launcher, parameters: bytes, printed: bytearray) -> Launcher:
        found = {(d.address, d.size): d for d in _digests(gpu)}
        for was in self._state.memory:
            now = found.pop((was.address, was.size), None)
            if now is None or now.checksum != was.checksum:
                how = "was not allocated" if now is None else "has other contents"
                self._refuse(
                    f"`{was.label}` ({was.size:,} bytes at {was.address:#x}) {how} at launch {self.launch}"
                )
        if found:
            now = next(iter(found.values()))
            self._refuse(f"`{now.label}` ({now.size:,} bytes at {now.address:#x}) was not there")
        capacity = gpu.spec.dram.capacity_gib << 30
        used = sum(d.size for d in self._state.memory)
        if used > capacity:
            raise CheckpointError(
                f"{self.path}: the program has allocated {used:,} bytes, and {gpu.name} has {capacity:,}"
            )
        gpu.functional = self._functional
        if (inside := self._state.inside) is None:
            return launcher
        inside.require_usable(self._reader, gpu)
        self._make(gpu, self.launch, inside.launch, self.described(launcher, parameters), launcher)
        printed += inside.launch.printed
        return inside.rest_of(launcher, self._reader)

    def close(self) -> None:
        self._reader.close()

    def _change(self, memory: _engine.functional.DeviceMemory, span: Span) -> None:
        if not memory.apply_changes(self._reader.read(_CHANGES, [span])):
            self._reader.damaged(f"{_CHANGES}: the changes at byte {span[0]}")

    def _refuse(self, why: str) -> None:
        raise CheckpointError(
            f"{self.path}: the program behaves differently than when the checkpoint was made: {why}"
        )


def fixed_addresses() -> None:
    """Turns off the randomisation of addresses for programs that this process starts: what a program leaves
    uninitialised then differs less from run to run. Some containers do not allow it."""
    _libc.personality(_ADDR_NO_RANDOMIZE)


_libc = ctypes.CDLL(None)


def _allocate(memory: _engine.functional.DeviceMemory, launch: _Launch) -> bool:
    """Frees and allocates as the launch did. False if that is not possible."""
    return all(memory.free(address, by_kernel=True) for address in launch.freed) and all(
        memory.allocate_at(a.address, a.size, a.label, True) for a in launch.made
    )


def _digests(gpu: GPU) -> Iterator[_Digest]:
    """What the program cannot have written itself."""
    memory = gpu.memory.native
    for address, size, label, by_kernel in memory.allocations():
        if label in _OF_HOST and not by_kernel:
            continue
        begin, checksum = address - memory.base, 0
        for offset, data in written(memory.file, begin, begin + size):
            bare = data.lstrip(b"\0")  # zeros may be there or not
            at = offset + len(data) - len(bare)
            checksum = zlib.crc32(bare.rstrip(b"\0"), zlib.crc32(at.to_bytes(8, "little"), checksum))
        yield _Digest(address, size, label, checksum)


def _different(launcher: Launcher, was: _Launch, now: _Launch) -> str:
    """The first parameter that differs."""
    for number, p in enumerate(launcher.kernel.parameters, 1):
        part = slice(p.offset, p.offset + p.bytes)
        old, new = was.parameters[part], now.parameters[part]
        if old != new:
            if p.bytes > 8:
                return f"another parameter {number}, a structure"
            return "parameter {} {:#x}, was {:#x}".format(
                number, *(int.from_bytes(x, "little") for x in (new, old))
            )
    return "other parameters"
