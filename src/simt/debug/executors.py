"""Executors, which run a launch again from its initial memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from simt import _engine
from simt.cuda import PtxModule
from simt.cuda.cubin_module import code_arch
from simt.errors import DebugError
from simt.gpu.programs import load_compiled

from .instrument import HEADER
from .launches import LaunchOutcome, Memory, RecordedAllocation, WatchedLaunch, content_of

_MARGIN = 64 << 20
_ALIGNMENT = 256  # of allocations, with as much between them


@dataclass(frozen=True)
class Scratch:
    """Memory for an instrumented kernel: its initial contents, and the header that names it.

    header: 64 bytes, the first 8 of which receive the address of the buffer.
    """

    header: bytes
    content: bytes


class InstrumentedExecutor(Protocol):
    """Runs instrumented code in place of a launch's own, from the memory in `launch.before`."""

    name: str
    exclude: frozenset[str]
    """Results in which it may differ from our own executor and be right: see `InstrumentedProgram.points`."""

    def run_instrumented(self, launch: WatchedLaunch, ptx: str, scratch: Scratch) -> bytes:
        """Runs the launch with other code and returns the scratch memory. A fault of the program only ends
        the
        launch.
        """
        ...


class Executor(InstrumentedExecutor, Protocol):
    """Also runs launches unmodified."""

    def run(self, launch: WatchedLaunch) -> LaunchOutcome:
        """Runs the launch with its own code and returns the memory after it."""
        ...


class Ours:
    """Our own executor, in this process."""

    name = "simt"
    exclude: frozenset[str] = frozenset({"time"})

    def run(self, launch: WatchedLaunch) -> LaunchOutcome:
        outcome, _ = self._execute(launch, launch.ptx, None)
        return outcome

    def run_instrumented(self, launch: WatchedLaunch, ptx: str, scratch: Scratch) -> bytes:
        _, data = self._execute(launch, ptx, scratch)
        return data

    def _load(
        self, ptx: str, name: str, memory: _engine.functional.DeviceMemory, places: Mapping[str, int]
    ) -> _engine.functional.Module:
        return _engine.functional.load(ptx, name, memory, dict(places))

    def _execute(
        self, launch: WatchedLaunch, ptx: str, scratch: Scratch | None
    ) -> tuple[LaunchOutcome, bytes]:
        base = 16 << 32  # where the engine's global memory begins
        end = max((a.address + a.size for a in launch.before), default=base)
        room = len(scratch.content) if scratch else 0
        memory = _engine.functional.DeviceMemory(end - base + room + _MARGIN)
        variables = set(launch.variables.values())
        for a in launch.before:
            if a.address not in variables and not memory.allocate_at(a.address, a.size, a.label, a.by_kernel):
                raise DebugError(f"no room for `{a.label}` at {a.address:#x}")
        # The header's variable must not take the place of one that follows it.
        places = {**launch.variables, HEADER: (end // _ALIGNMENT + 2) * _ALIGNMENT}
        module = self._load(ptx, launch.module, memory, places)
        for a in launch.before:
            memory.write(a.address, content_of(a))
        address = 0
        if scratch is not None:
            address = memory.allocate(max(1, room), "instrumentation")
            memory.write(address, scratch.content)
            memory.write(module.variables[HEADER][0], address.to_bytes(8, "little") + scratch.header[8:])
        fault = ""
        try:
            _engine.functional.Launch(
                module,
                module.kernels[launch.kernel]["index"],
                launch.grid,
                launch.block,
                launch.cluster,
                launch.shared,
                launch.machine,
            ).run(launch.parameters, launch.index)
        except _engine.functional.ProgramFault as error:
            fault = str(error)
        # Read while the module is loaded: its variables disappear with it.
        if scratch is not None:
            return LaunchOutcome((), fault), memory.read(address, room)
        return LaunchOutcome(_read(memory, launch.before), fault), b""


class MachineCode(Ours):
    """Our own executor, which runs the machine code that ptxas makes of the PTX for a device."""

    exclude: frozenset[str] = frozenset({"time", "address", "order"})

    def __init__(self, device: str) -> None:
        self._device = device
        self.name = f"machine code of {code_arch(device)}"

    def _load(
        self, ptx: str, name: str, memory: _engine.functional.DeviceMemory, places: Mapping[str, int]
    ) -> _engine.functional.Module:
        return load_compiled(PtxModule.from_text(ptx, name), self._device, memory, places)


def _read(memory: _engine.functional.DeviceMemory, before: Memory) -> Memory:
    """The allocations of `before` and later ones, with their current contents."""
    known = {a.address: a for a in before}
    found = []
    for address, size, label, by_kernel in memory.allocations():
        content = memory.read(address, size)
        old = known.get(address)
        found.append(
            RecordedAllocation(
                address,
                size,
                label,
                by_kernel,
                old.dtype if old else None,
                old.shape if old else (),
                content,
                RecordedAllocation.digest_of(content),
            )
        )
    return tuple(found)
