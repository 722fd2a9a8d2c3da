"""Writes instruction traces: of kernels that another tool recorded, or that a script describes."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import zstandard

FULL = 0xFFFFFFFF
SHARED_BASE = 0x7F2000000000
LOCAL_BASE = 0x7F2002000000

Addresses = Sequence[int | None]
"""One address per lane, None where the lane does not access memory."""


class Warp:
    """The instructions of one warp, in program order.

    `pc` is the address of the next instruction; set it back to repeat a loop's instructions.
    """

    def __init__(self) -> None:
        self.pc = 0
        self.lines: list[str] = []

    def op(
        self,
        opcode: str,
        destination: int | None = None,
        sources: Iterable[int] = (),
        immediate: int = 0,
        mask: int = FULL,
    ) -> None:
        """Appends an instruction without addresses. Registers are numbers."""
        self._line(mask, _operands(destination, opcode, sources), "0 ", immediate)

    def memory(
        self,
        opcode: str,
        addresses: Addresses,
        width: int,
        destination: int | None = None,
        sources: Iterable[int] = (),
        immediate: int = 0,
    ) -> None:
        """Appends an access of `width` bytes by each lane that has an address; its mask follows from them."""
        mask = sum(1 << lane for lane, a in enumerate(addresses) if a is not None)
        coded = _coded([a for a in addresses if a is not None], mask)
        self._line(mask, _operands(destination, opcode, sources), f"{width} {coded} ", immediate)

    def bulk(self, opcode: str, addresses: Sequence[int], immediate: int = 0) -> None:
        """Appends a TMA instruction, executed by one lane, that copies from or to `addresses`."""
        steps = "".join(f" {b - a}" for a, b in pairwise(addresses))
        payload = f"16 4 0x{addresses[0]:x} {len(addresses)}{steps} "
        self._line(1, _operands(None, opcode, ()), payload, immediate)

    def _line(self, mask: int, operands: str, payload: str, immediate: int) -> None:
        self.lines.append(f"{self.pc:04x} {mask:08x} {operands}{payload}{immediate} \n")
        self.pc += 16


def _operands(destination: int | None, opcode: str, sources: Iterable[int]) -> str:
    registers = [f"R{s}" for s in sources]
    written = "0 " if destination is None else f"1 R{destination} "
    return f"{written}{opcode} {' '.join([str(len(registers)), *registers])} "


def _coded(addresses: list[int], mask: int) -> str:
    if not addresses:
        return "2 0x0"
    steps = [b - a for a, b in pairwise(addresses)]
    run = mask >> ((mask & -mask).bit_length() - 1)
    if steps and run & (run + 1) == 0 and len(set(steps)) == 1:
        return f"1 0x{addresses[0]:x} {steps[0]}"
    return " ".join([f"2 0x{addresses[0]:x}", *map(str, steps)])


@dataclass(frozen=True)
class LaunchShape:
    """The header of a kernel trace."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    sm: int
    shared_bytes: int = 0
    registers: int = 32
    id: int = 1
    stream: int = 0


class KernelWriter:
    """Writes one kernel trace as version 5 text; compresses by the name's suffix (.xz, .gz, .zst)."""

    def __init__(self, path: Path, shape: LaunchShape) -> None:
        self.path = path
        self._raw = path.open("wb")
        self._file: BinaryIO | io.BufferedIOBase | lzma.LZMAFile | zstandard.ZstdCompressionWriter
        if path.suffix == ".xz":
            self._file = lzma.LZMAFile(self._raw, "wb", preset=6)  # noqa: SIM115
        elif path.suffix == ".gz":
            self._file = gzip.GzipFile("", "wb", fileobj=self._raw, mtime=0)
        elif path.suffix == ".zst":
            self._file = zstandard.ZstdCompressor(level=9).stream_writer(self._raw, closefd=False)
        else:
            self._file = self._raw
        self._file.write(_header(shape).encode())

    def __enter__(self) -> KernelWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._raw.close()

    def cta(self, position: tuple[int, int, int], warps: Sequence[Warp]) -> None:
        """Appends a thread block; warp i of the sequence is warp i of the block."""
        parts = ["\n#BEGIN_TB\n\nthread block = {},{},{}\n".format(*position)]
        for number, warp in enumerate(warps):
            parts.append(f"\nwarp = {number}\ninsts = {len(warp.lines)}\n")
            parts += warp.lines
        parts.append("\n#END_TB\n")
        self._file.write("".join(parts).encode())


def _header(shape: LaunchShape) -> str:
    def size(xyz: tuple[int, int, int]) -> str:
        return "({},{},{})".format(*xyz)

    lines = {
        "kernel name": shape.name,
        "kernel id": shape.id,
        "grid dim": size(shape.grid),
        "block dim": size(shape.block),
        "shmem": shape.shared_bytes,
        "nregs": shape.registers,
        "binary version": shape.sm,
        "cuda stream id": shape.stream,
        "shmem base_addr": f"0x{SHARED_BASE:016x}",
        "local mem base_addr": f"0x{LOCAL_BASE:016x}",
        "accelsim tracer version": 5,
        "enable lineinfo": 0,
    }
    text = "".join(f"-{key} = {value}\n" for key, value in lines.items())
    return text + "\n#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width ...\n"
