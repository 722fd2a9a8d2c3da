"""Launches with their initial and final memory, and a GPU that exposes them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt.cuda import PtxModule
from simt.errors import DebugError, LaunchError, ProgramFault
from simt.gpu import GPU
from simt.program import find_program, run_program

if TYPE_CHECKING:
    from simt import _engine
    from simt.engine_types import MachineFacts
    from simt.gpu import DeviceArray
    from simt.gpu.module import Launcher

Index = tuple[int, int, int]
Program = str | os.PathLike[str] | Callable[[GPU], Any]
"""A program as `simt run` takes it, or a function of a GPU."""


@dataclass(frozen=True)
class RecordedAllocation:
    """One allocation of device memory.

    label: the name, for a variable.
    by_kernel: from a kernel's malloc.
    dtype, shape: of an array; None and () if unknown.
    content: its bytes; None if only their digest is known.
    """

    address: int
    size: int
    label: str
    by_kernel: bool
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    content: bytes | None
    digest: str

    @staticmethod
    def digest_of(content: bytes) -> str:
        return hashlib.blake2b(content, digest_size=16).hexdigest()


Memory = tuple[RecordedAllocation, ...]
"""All that is allocated, by address."""


@dataclass(frozen=True)
class WatchedLaunch:
    """A launch, with everything needed to run it again on another executor.

    index: from 1.
    module: name of the PTX.
    ptx: its text.
    variables: addresses of the module's variables, including texture references.
    machine: the properties of the GPU that the engine needs.
    source_text: returns a source line, for messages.
    """

    index: int
    kernel: str
    grid: Index
    block: Index
    cluster: Index
    shared: int
    parameters: bytes
    pointers: tuple[int, ...]
    module: str
    ptx: str
    variables: dict[str, int]
    machine: MachineFacts
    before: Memory
    source_text: Callable[[str, int], str] = field(default=lambda file, line: "", compare=False)

    @property
    def id(self) -> int:
        return self.index

    @property
    def name(self) -> str:
        return self.kernel

    @property
    def threads_per_block(self) -> int:
        x, y, z = self.block
        return x * y * z

    @property
    def threads(self) -> int:
        x, y, z = self.grid
        return x * y * z * self.threads_per_block

    def block_of(self, thread: int) -> Index:
        """Index of the CTA of a thread, from its number in the grid."""
        return _unravel(thread // self.threads_per_block, self.grid)

    def number_of(self, block: Index) -> int:
        """Number of a CTA in the grid. Raises DebugError if there is no such CTA."""
        if any(not 0 <= index < size for index, size in zip(block, self.grid, strict=True)):
            raise DebugError(
                f"launch {self.index} (`{self.kernel}`) has no block {block}: its grid is {self.grid}"
            )
        x, y, z = block
        return (z * self.grid[1] + y) * self.grid[0] + x

    def thread_of(self, thread: int) -> Index:
        """Index of a thread in its CTA, from its number in the grid."""
        return _unravel(thread % self.threads_per_block, self.block)


@dataclass(frozen=True)
class LaunchOutcome:
    """The result of a launch on an executor: the memory after it, or the program's fault."""

    after: Memory
    fault: str = ""


Watcher = Callable[[WatchedLaunch, LaunchOutcome], None]


class WatchedGPU(GPU):
    """A GPU that computes values and passes each launch, with the memory before and after it, to `watch`.

    run: executes launches in place of our own engine.
    """

    def __init__(
        self,
        gpu: str | os.PathLike[str],
        watch: Watcher,
        run: Callable[[WatchedLaunch], LaunchOutcome] | None = None,
    ) -> None:
        super().__init__(gpu, functional=True)
        self._watch = watch
        self._run = run
        self._arrays: dict[int, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._shown = 0

    def empty(
        self,
        shape: Any,
        dtype: npt.DTypeLike = np.float32,
        *,
        unbacked: bool = False,
        name: str | None = None,
    ) -> DeviceArray:
        if unbacked:
            raise DebugError("unbacked arrays have no values to compare; leave `unbacked` out")
        array = super().empty(shape, dtype, name=name)
        self._arrays[array.address] = (array.dtype, array.shape)
        return array

    def run_values(
        self,
        launcher: Launcher,
        parameters: bytes,
        launch_id: int,
        memory: _engine.functional.DeviceMemory | None = None,
        until: tuple[int, int, int] | None = None,
    ) -> bytes:
        if launcher.cooperative:
            raise DebugError(f"kernel `{launcher.kernel.name}`: cooperative launches cannot be debugged")
        kernel = launcher.kernel
        ptx, native = kernel.module.image, kernel.module.native
        if not isinstance(ptx, PtxModule):
            raise DebugError(
                f"kernel `{kernel.name}` of {ptx.name}: machine code cannot be debugged, only PTX"
            )
        self._shown += 1
        launch = WatchedLaunch(
            index=self._shown,
            kernel=kernel.name,
            grid=launcher.grid,
            block=launcher.block,
            cluster=launcher.cluster,
            shared=launcher.shared,
            parameters=parameters,
            pointers=tuple(
                int.from_bytes(parameters[p.offset : p.offset + 8], "little") if p.bytes == 8 else 0
                for p in kernel.parameters
            ),
            module=ptx.name,
            ptx=ptx.text,
            variables={
                name: address for name, (address, _) in {**native.variables, **native.references}.items()
            },
            machine=self.machine_facts,
            before=self.snapshot(),
            source_text=ptx.source_text,
        )
        if self._run is not None:
            outcome = self._run(launch)
            for allocation in outcome.after:
                if allocation.content is not None:
                    self.memory.write(allocation.address, allocation.content)
            self._watch(launch, outcome)
            if outcome.fault:
                raise ProgramFault(outcome.fault)
            return b""
        try:
            state = super().run_values(launcher, parameters, launch_id, memory, until)
        except ProgramFault as fault:
            self._watch(launch, LaunchOutcome(self.snapshot(), str(fault)))
            raise
        self._watch(launch, LaunchOutcome(self.snapshot()))
        return state

    def snapshot(self) -> Memory:
        """All allocations, with their contents."""
        found = []
        for address, size, label, by_kernel in self.memory.allocations():
            content = self.memory.read(address, size)
            dtype, shape = self._arrays.get(address, (None, ()))
            if not label.startswith("array "):
                dtype, shape = None, ()
            found.append(
                RecordedAllocation(
                    address,
                    size,
                    label,
                    by_kernel,
                    dtype,
                    shape,
                    content,
                    RecordedAllocation.digest_of(content),
                )
            )
        return tuple(found)


def run_watched(
    program: Program,
    gpu: str | os.PathLike[str],
    watch: Watcher,
    driver: Path | None = None,
    size: int | None = None,
    run: Callable[[WatchedLaunch], LaunchOutcome] | None = None,
) -> None:
    """Runs a program on our executor or, launch by launch, on another (`run`), and passes on its launches.

    Raises LaunchError if there is no such program; exceptions of the program propagate.
    """
    device = WatchedGPU(gpu, watch, run)
    if callable(program):
        program(device)
        return
    found = find_program(Path(program))
    if found is None:
        raise LaunchError(
            f"{program}: neither a program (.py, .cu, .ptx) nor the name of an example or a workload"
        )
    run_program(found, device, driver, size)


def check_same_program(ours: WatchedLaunch, reference: WatchedLaunch) -> str:
    """How two launches differ; empty if they are the same except for their code."""
    for what in ("kernel", "grid", "block", "cluster", "shared"):
        a, b = getattr(ours, what), getattr(reference, what)
        if a != b:
            return f"its {what} is {a} in ours, {b} in the reference"
    return ""


def content_of(allocation: RecordedAllocation) -> bytes:
    if allocation.content is None:
        raise DebugError(f"the contents of `{allocation.label}` were not recorded, only their digest")
    return allocation.content


def _unravel(number: int, sizes: Index) -> Index:
    x, y, _ = sizes
    return number % x, number // x % y, number // (x * y)
