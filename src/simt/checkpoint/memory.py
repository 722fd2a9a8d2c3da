"""Device memory in a checkpoint: its allocations, and the pieces of it that are not all zero."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from simt import _engine
from simt.errors import CheckpointError

from .folder import PIECE, CheckpointReader, CheckpointWriter, Natural, Span

FILE = "memory.zst"
_PAGE = 4096
_ZEROS = bytes(PIECE)


class Allocated(msgspec.Struct, array_like=True):
    """An allocation. by_kernel: made by a kernel's malloc."""

    address: Natural
    size: Natural
    label: str
    by_kernel: bool


class MemoryState(msgspec.Struct):
    """base, capacity: of the whole memory. pieces: offset in the memory, and where the bytes are."""

    base: Natural
    capacity: Natural
    allocations: list[Allocated]
    pieces: list[tuple[Natural, Span]]


def save_memory(writer: CheckpointWriter, memory: _engine.functional.DeviceMemory) -> MemoryState:
    """Writes what the engine's memory holds. Memory that was never written takes no space.

    Raises CheckpointError for the memory of a real GPU.
    """
    if not isinstance(memory, _engine.functional.DeviceMemory):
        raise CheckpointError("only the memory of a simulated GPU can be saved in a checkpoint")
    pieces = [
        (offset, span)
        for offset, data in written(memory.file, 0, memory.capacity)
        for span in writer.add(FILE, data)
    ]
    allocations = [Allocated(*a) for a in memory.allocations()]
    return MemoryState(memory.base, memory.capacity, allocations, pieces)


def restore_memory(
    reader: CheckpointReader, state: MemoryState, memory: _engine.functional.DeviceMemory
) -> None:
    """Allocates what is not yet allocated, at the same addresses, and restores all contents.

    Raises CheckpointError if the memory is too small, or the checkpoint is damaged.
    """
    present = {address for address, *_ in memory.allocations()}
    for a in state.allocations:
        if a.address not in present and not memory.allocate_at(a.address, a.size, a.label, a.by_kernel):
            reader.damaged(f"the allocations overlap at {a.address:#x}")
    for offset, span in state.pieces:
        data = reader.read(FILE, [span])
        if offset % _PAGE or offset + len(data) > memory.capacity:
            reader.damaged(f"contents at {memory.base + offset:#x}, outside of memory")
        try:
            while data:
                written = os.pwrite(memory.file, data, offset)
                data, offset = data[written:], offset + written
        except OSError as error:
            raise CheckpointError(
                f"{reader.path}: the host cannot hold the device's memory: {error.strerror}"
            ) from error


def require_room(
    reader: CheckpointReader, state: MemoryState, memory: _engine.functional.DeviceMemory, gpu: str
) -> None:
    """Raises CheckpointError if the allocations do not fit in this memory."""
    needed = max((a.address + a.size - state.base for a in state.allocations), default=0)
    if state.base != memory.base:
        reader.damaged(f"its memory begins at {state.base:#x}, expected {memory.base:#x}")
    if needed + memory.alignment > memory.capacity:  # which is kept free behind each allocation
        raise CheckpointError(
            f"{reader.path}: its memory needs {needed:,} bytes, and {gpu} has {memory.capacity:,}: choose a "
            "GPU with more, or pass memory="
        )


def written(file: int, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Offset and contents of the pieces of a sparse file, within these offsets, that are not all zero."""
    at = begin
    while at < end:
        try:
            at = os.lseek(file, at, os.SEEK_DATA)
        except OSError:  # no data from here on
            return
        next_piece = at // PIECE * PIECE + PIECE
        data = os.pread(file, max(0, min(next_piece, end) - at), at)
        if data != _ZEROS[: len(data)]:
            yield at, data
        at = next_piece
