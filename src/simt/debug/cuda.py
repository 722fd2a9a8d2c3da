"""A real GPU as an executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simt.cuda.driver import Attribute, Device, DeviceModule
from simt.errors import DebugError, DriverError

from .executors import Scratch
from .instrument import HEADER, Program
from .launches import Allocation, Launch, Outcome, content_of


class CudaExecutor:
    """Runs launches on a GPU of this machine, from the memory that ours begins with, at the same addresses:
    so all pointers hold.

    The module's variables lie elsewhere; where their initialisers name other variables, the driver's
    addresses are kept. Memory from a kernel's own malloc is not compared.
    """

    exclude: frozenset[str] = frozenset({"time", "address", "order"})

    def __init__(self, device: Device) -> None:
        self._device = device
        major, minor = device.compute_capability
        self.name = f"{device.name} (compute capability {major}.{minor})"
        if not device.attribute(Attribute.VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED):
            raise DebugError(f"{self.name}: its driver cannot map memory at given addresses")

    @staticmethod
    def of(name: str) -> CudaExecutor:
        """The executor called "cuda" or "cuda:1". Raises DebugError, or DriverError where there is no GPU."""
        _, colon, ordinal = name.partition(":")
        if colon and not ordinal.isdecimal():
            raise DebugError(f"{name!r}: expected cuda or cuda:N, N being the number of a GPU")
        return CudaExecutor(Device(int(ordinal or 0)))

    def run(self, launch: Launch) -> Outcome:
        outcome, _ = self._execute(launch, launch.ptx, None)
        return outcome

    def run_instrumented(self, launch: Launch, ptx: str, scratch: Scratch) -> bytes:
        _, data = self._execute(launch, ptx, scratch)
        return data

    def _execute(self, launch: Launch, ptx: str, scratch: Scratch | None) -> tuple[Outcome, bytes]:
        device = self._device
        program = Program(launch.ptx, launch.module, launch.kernel)
        names = {address: name for name, address in launch.variables.items()}
        heap = [a for a in launch.before if a.address not in names]
        mapped = None
        if heap:
            first = heap[0].address
            mapped = device.map(first, heap[-1].address + max(1, heap[-1].size) - first)
        module = device.load(ptx, launch.module)
        buffer = device.allocate(max(1, len(scratch.content))) if scratch else 0
        places = {name: module.variable(name)[0] for name in launch.variables}
        fault, after, data = "", [], b""
        try:
            for a in launch.before:
                if a.address in names:
                    name = names[a.address]
                    content = self._variable(launch, program, name, content_of(a), places)
                    device.write(places[name], content)
                else:
                    device.write(a.address, content_of(a))
            if scratch is not None:
                device.write(buffer, scratch.content)
                header = module.variable(HEADER)[0]
                device.write(header, buffer.to_bytes(8, "little") + scratch.header[8:])
            module.kernel(launch.kernel).launch(
                launch.grid, launch.block, launch.parameters, launch.shared, launch.cluster
            )
            device.synchronize()
            if scratch is not None:
                data = device.read(buffer, len(scratch.content))
            else:
                after = [
                    self._after(launch, program, a, names.get(a.address, ""), places) for a in launch.before
                ]
        except DriverError as error:
            if not error.status:
                raise
            fault = str(error)
            device.reset()
            data = scratch.content if scratch else b""
            return Outcome((), fault), data
        self._clean_up(module, mapped, buffer)
        return Outcome(tuple(after), fault), data

    def _clean_up(self, module: DeviceModule, mapped: Any, buffer: int) -> None:
        module.unload()
        if buffer:
            self._device.free(buffer)
        if mapped is not None:
            mapped.release()

    def _after(
        self, launch: Launch, program: Program, a: Allocation, variable: str, places: Mapping[str, int]
    ) -> Allocation:
        if variable:
            content = self._device.read(places[variable], a.size)
            content = self._back(launch, program, variable, content_of(a), content, places)
        else:
            content = self._device.read(a.address, a.size)
        return Allocation(
            a.address,
            a.size,
            a.label,
            a.by_kernel,
            a.dtype,
            a.shape,
            content,
            Allocation.digest_of(content),
        )

    def _variable(
        self, launch: Launch, program: Program, name: str, ours: bytes, places: Mapping[str, int]
    ) -> bytes:
        """What a variable must hold there: addresses of variables as they are there, and the driver's own
        where ours is of a function."""
        content = bytearray(ours)
        theirs = self._device.read(places[name], len(ours))
        for at in program.relocations.get(name, ()):
            moved = _moved(int.from_bytes(ours[at : at + 8], "little"), launch.variables, places, launch)
            content[at : at + 8] = moved.to_bytes(8, "little") if moved else theirs[at : at + 8]
        return bytes(content)

    def _back(
        self,
        launch: Launch,
        program: Program,
        name: str,
        before: bytes,
        after: bytes,
        places: Mapping[str, int],
    ) -> bytes:
        """The contents of a variable with addresses as they are here, where they did not change."""
        content = bytearray(after)
        there = self._variable(launch, program, name, before, places)
        for at in program.relocations.get(name, ()):
            if after[at : at + 8] == there[at : at + 8] or len(after) - at < 8:
                content[at : at + 8] = before[at : at + 8]
        return bytes(content)


def _moved(value: int, ours: Mapping[str, int], theirs: Mapping[str, int], launch: Launch) -> int:
    """The address there of what an address here points to; 0 if that is no variable."""
    sizes = {a.address: a.size for a in launch.before}
    for name, address in ours.items():
        if address <= value < address + max(1, sizes.get(address, 0)):
            return theirs[name] + value - address
    return 0
