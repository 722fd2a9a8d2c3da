"""A real GPU as an executor."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress

from simt.cuda.driver import DeviceModule, DriverDevice
from simt.errors import DebugError, DriverError

from .executors import Scratch
from .instrument import HEADER, InstrumentedProgram
from .launches import LaunchOutcome, RecordedAllocation, WatchedLaunch, content_of


class CudaExecutor:
    """Runs launches on a GPU in this machine, with the same initial memory at the same addresses, so that all
    pointers are valid.

    The module's variables have other addresses; initialisers that name other variables keep the driver's
    addresses. Memory from a kernel's own malloc is not compared.
    """

    exclude: frozenset[str] = frozenset({"time", "address", "order"})

    def __init__(self, device: DriverDevice) -> None:
        self._device = device
        major, minor = device.compute_capability
        self.name = f"{device.name} (compute capability {major}.{minor})"
        if not device.attribute("VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"):
            raise DebugError(f"{self.name}: its driver cannot map memory at given addresses")

    @staticmethod
    def of(name: str) -> CudaExecutor:
        """The executor called "cuda" or "cuda:1". Raises DebugError, or DriverError if there is no GPU."""
        _, colon, ordinal = name.partition(":")
        if colon and not ordinal.isdecimal():
            raise DebugError(f"{name!r}: expected cuda or cuda:N, N being the number of a GPU")
        return CudaExecutor(DriverDevice(int(ordinal or 0)))

    def run(self, launch: WatchedLaunch) -> LaunchOutcome:
        outcome, _ = self._execute(launch, launch.ptx, None)
        return outcome

    def run_instrumented(self, launch: WatchedLaunch, ptx: str, scratch: Scratch) -> bytes:
        _, data = self._execute(launch, ptx, scratch)
        return data

    def _execute(
        self, launch: WatchedLaunch, ptx: str, scratch: Scratch | None
    ) -> tuple[LaunchOutcome, bytes]:
        program = InstrumentedProgram(launch.ptx, launch.module, launch.kernel)
        if program.uses_textures:
            raise DebugError(
                f"{launch.module}: `{launch.kernel}` reads textures or surfaces; only simt's GPUs can"
            )
        with ExitStack() as cleanup:
            return self._execute_then(cleanup, launch, program, ptx, scratch)

    def _execute_then(
        self,
        cleanup: ExitStack,
        launch: WatchedLaunch,
        program: InstrumentedProgram,
        ptx: str,
        scratch: Scratch | None,
    ) -> tuple[LaunchOutcome, bytes]:
        device = self._device
        heap = [a for a in launch.before if a.address not in launch.variables.values()]
        if heap:
            first = heap[0].address
            mapped = device.map(first, heap[-1].address + max(1, heap[-1].size) - first)
            cleanup.callback(mapped.release)
        module = device.load(ptx, launch.module)
        cleanup.callback(module.unload)
        places = self._places(launch, module)
        names = {launch.variables[name]: name for name in places}
        for a in launch.before:
            if a.address in names:
                name = names[a.address]
                device.write(places[name], self._variable(launch, program, name, content_of(a), places))
            elif a.address not in launch.variables.values():
                device.write(a.address, content_of(a))
        buffer = 0
        if scratch is not None:
            buffer = device.allocate(max(1, len(scratch.content)))
            cleanup.callback(device.free, buffer)
            device.write(buffer, scratch.content)
            header = buffer.to_bytes(8, "little") + scratch.header[8:]
            device.write(module.variable(HEADER)[0], header)
        module.kernel(launch.kernel).launch(
            launch.grid, launch.block, launch.parameters, launch.shared, launch.cluster
        )
        try:
            device.synchronize()
        except DriverError as error:
            cleanup.pop_all()  # all is gone with the context
            device.reset()
            return LaunchOutcome((), str(error)), scratch.content if scratch else b""
        if scratch is not None:
            return LaunchOutcome(()), device.read(buffer, len(scratch.content))
        return (
            LaunchOutcome(
                tuple(
                    self._after(launch, program, a, names.get(a.address, ""), places) for a in launch.before
                )
            ),
            b"",
        )

    @staticmethod
    def _places(launch: WatchedLaunch, module: DeviceModule) -> dict[str, int]:
        """Addresses of the module's variables on the GPU; ptxas removes unused ones."""
        places = {}
        for name in launch.variables:
            with suppress(DriverError):
                places[name] = module.variable(name)[0]
        return places

    def _after(
        self,
        launch: WatchedLaunch,
        program: InstrumentedProgram,
        a: RecordedAllocation,
        variable: str,
        places: Mapping[str, int],
    ) -> RecordedAllocation:
        if variable:
            content = self._device.read(places[variable], a.size)
            content = self._back(launch, program, variable, content_of(a), content, places)
        elif a.address in launch.variables.values():
            content = content_of(a)  # nothing there can have changed it
        else:
            content = self._device.read(a.address, a.size)
        return RecordedAllocation(
            a.address,
            a.size,
            a.label,
            a.by_kernel,
            a.dtype,
            a.shape,
            content,
            RecordedAllocation.digest_of(content),
        )

    def _variable(
        self,
        launch: WatchedLaunch,
        program: InstrumentedProgram,
        name: str,
        ours: bytes,
        places: Mapping[str, int],
    ) -> bytes:
        """A variable's contents for the GPU: with the GPU's addresses of variables, and the driver's own
        where ours is of a function.
        """
        content = bytearray(ours)
        theirs = self._device.read(places[name], len(ours))
        for at in program.relocations.get(name, ()):
            moved = _moved(int.from_bytes(ours[at : at + 8], "little"), launch.variables, places, launch)
            content[at : at + 8] = moved.to_bytes(8, "little") if moved else theirs[at : at + 8]
        return bytes(content)

    def _back(
        self,
        launch: WatchedLaunch,
        program: InstrumentedProgram,
        name: str,
        before: bytes,
        after: bytes,
        places: Mapping[str, int],
    ) -> bytes:
        """The contents of a variable with our addresses, where they did not change."""
        content = bytearray(after)
        there = self._variable(launch, program, name, before, places)
        for at in program.relocations.get(name, ()):
            if after[at : at + 8] == there[at : at + 8] or len(after) - at < 8:
                content[at : at + 8] = before[at : at + 8]
        return bytes(content)


def _moved(value: int, ours: Mapping[str, int], theirs: Mapping[str, int], launch: WatchedLaunch) -> int:
    """The GPU's address of the variable that one of our addresses points to; 0 if it is not a variable."""
    sizes = {a.address: a.size for a in launch.before}
    for name, address in ours.items():
        if name in theirs and address <= value < address + max(1, sizes.get(address, 0)):
            return theirs[name] + value - address
    return 0
